"""Mode "document": retrieval of the chunks of the documents with the best summaries."""

from dataclasses import replace

from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter

from hierindex.errors import InputError
from hierindex.record import WHOLE_DOCUMENT, NodeRecord
from hierindex.retrieve.copies import best_texts
from hierindex.retrieve.question import Search, cuts, of_documents
from hierindex.store.filters import PREFIX
from hierindex.store.rows import documents_of

WHOLE = MetadataFilter(key=PREFIX + WHOLE_DOCUMENT, value="", operator=FilterOperator.GT)


def best_of_documents(search: Search, n: int, *, n_documents: int) -> list[NodeWithScore]:
    """Return the best chunks of the documents whose summaries are most similar to the question.

    Raises
    ------
    InputError
        If the tree has no summary of a whole document.
    """
    found = _documents(search, n_documents)
    return search.best(n, cuts([0]), of_documents(list(found)))


def all_of_documents(search: Search, *, n_documents: int) -> list[NodeWithScore]:
    """Return all chunks of those documents in reading order, the best document first.

    Each chunk has the score of its document.

    Raises
    ------
    InputError
        If the tree has no summary of a whole document.
    """
    found = _documents(search, n_documents)
    within = search.filters_within(cuts([0]), of_documents(list(found)))
    nodes = search.snapshot.nodes(filters=within)
    chunks = [(NodeRecord.from_metadata(node.metadata), node) for node in nodes]
    place = {document: i for i, document in enumerate(found)}
    named = [(documents_of(node, record)[0], record, node) for record, node in chunks]
    named.sort(key=lambda chunk: (place[chunk[0]], chunk[1].start))
    return [NodeWithScore(node=node, score=found[document]) for document, _, node in named]


def _documents(search: Search, n: int) -> dict[str, float]:
    """Return the scores of the best documents with a chunk that passes, and of their copies."""
    with_a_chunk = replace(search.by_meaning(), partial_summaries=True)
    found = best_texts(lambda most: with_a_chunk.best(most, WHOLE), n)
    has_summaries = found or replace(with_a_chunk, filters=None).best(1, WHOLE)
    if not has_summaries and search.snapshot.highest_level():
        raise InputError(
            "mode 'document' needs a tree with a summary of each document; build it with method "
            "semantic or document, or with RaptorHierarchy(scope='document')."
        )
    nodes = [(NodeRecord.from_metadata(node.metadata), node.get_score()) for node in found]
    return {record.whole_document: score for record, score in nodes}
