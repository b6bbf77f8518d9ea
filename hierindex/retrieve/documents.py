"""Mode "document": retrieval of the chunks of the documents with the best summaries."""

import re
from collections.abc import Sequence
from dataclasses import replace

from hierindex.errors import InputError
from hierindex.node import PREFIX, Found
from hierindex.retrieve.copies import best_texts
from hierindex.retrieve.question import Search, cuts, of_documents
from hierindex.store.filters import Filter, Op
from hierindex.store.rows import node_of

N_BEST = 5  # nodes whose documents may be meant
WROTE = re.compile(
    r"\b(?:authors?|autor(?:en|in|innen)?|geschrieben|verfasst|written by|wrote)\b", re.IGNORECASE
)
WHOLE = Filter(PREFIX + "whole_document", "", Op.GT)


def best_of_documents(search: Search, n: int, *, n_documents: int) -> list[Found]:
    """Return the best chunks of the documents whose summaries are most similar to the question.

    Raises
    ------
    InputError
        If the tree has no summary of a whole document.
    """
    found = _documents(search, n_documents)
    return search.best(n, cuts([0]), of_documents(list(found)))


def all_of_documents(search: Search, *, n_documents: int) -> list[Found]:
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
    place = {document: i for i, document in enumerate(found)}
    nodes.sort(key=lambda node: (place[node.documents[0]], node.start))
    return [Found(node, found[node.documents[0]]) for node in nodes]


def title_pages(search: Search, found: Sequence[Found]) -> list[Found]:
    """Return the first chunks of the best documents if a question asks who wrote something.

    They have the score of the best node.
    """
    if not WROTE.search(search.question) or not found:
        return []
    documents = dict.fromkeys(each for node, _ in found[:N_BEST] for each in node.documents)
    filters = search.filters_within(of_documents([*documents]))
    rows = search.snapshot.rows(filters=filters, where=search.snapshot.of_each_document)
    return [Found(node, found[0].score) for node in map(node_of, rows) if not node.previous]


def _documents(search: Search, n: int) -> dict[str, float]:
    """Return the scores of the best documents with a chunk that passes, and of their copies."""
    with_a_chunk = replace(search, by="dense", partial_summaries=True)
    found = best_texts(lambda most: with_a_chunk.best(most, WHOLE), n)
    has_summaries = found or replace(with_a_chunk, filters=None).best(1, WHOLE)
    if not has_summaries and search.snapshot.highest_level():
        raise InputError(
            "mode 'document' needs a tree with a summary of each document; build it with method "
            "semantic or document, or with RaptorHierarchy(scope='document')."
        )
    return {node.whole_document: score for node, score in found}
