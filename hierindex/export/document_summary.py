"""Export of a tree to LlamaIndex's `DocumentSummaryIndex`."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, cast

from llama_index.core import (
    DocumentSummaryIndex,
    StorageContext,
    load_index_from_storage,
)
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)

from hierindex.errors import InputError
from hierindex.export.files import new, ordered_nodes, snapshot_of
from hierindex.index import HierarchicalIndex
from hierindex.models.adapters import LLMLike, as_llm
from hierindex.store.filters import WHOLE
from hierindex.store.snapshot import Snapshot
from hierindex.text_node import from_text_node, to_text_node


def to_document_summary_index(
    index: HierarchicalIndex, *, llm: LLMLike | None = None
) -> DocumentSummaryIndex:
    """Convert the index to a LlamaIndex `DocumentSummaryIndex` of chunks and document summaries.

    No model is called. A document's summary has the text and the vector of the node that covers all
    its chunks; a document of one chunk is its own summary. If the tree has no such node, as in a
    RAPTOR tree with scope "corpus", the summary is an extract as in `DocumentHierarchy`, and its
    vector the mean of the chunks' vectors.

    Parameters
    ----------
    index : HierarchicalIndex
    llm : LLM or callable, optional
        For the result's LLM retriever and for documents that are inserted later. LlamaIndex's
        `Settings.llm` is not used here, but the result's `as_query_engine` uses it unless given an
        LLM.

    Returns
    -------
    DocumentSummaryIndex
        Its nodes keep their metadata and citations (see `Node`), but not the links to parents and
        children. Ids are kept, except that the summary of a one-chunk document has the chunk's id
        plus "-summary".

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, or it is empty.
    ModelError
        If the embedding model cannot be loaded by name.
    """
    loaded = load_index_from_storage(
        _storage(index), llm=as_llm(llm or no_llm), embed_model=index.embed_model
    )
    return cast(DocumentSummaryIndex, loaded)


def persist_document_summary_index(index: HierarchicalIndex, folder: str | Path) -> int:
    """Write the index to a new folder as a `DocumentSummaryIndex`, for `load_index_from_storage`.

    The embedding model is not stored; pass it as `embed_model` when you load the index.

    Parameters
    ----------
    index : HierarchicalIndex
    folder : str or Path

    Returns
    -------
    int
        Number of chunks and summaries.

    Raises
    ------
    IndexNotFoundError, InputError
        If the index is missing or empty, or the folder is not empty or cannot be written.
    """
    with new(folder, folder=True) as partial:
        storage = _storage(index)
        storage.persist(str(partial))
    return len(storage.docstore.docs)


def no_llm(prompt: str) -> NoReturn:
    """Raise InputError, so that LlamaIndex does not fall back to OpenAI's model."""
    raise InputError("The index has no LLM; pass llm= when exporting or loading it.")


def _storage(index: HierarchicalIndex) -> StorageContext:
    """Build the storage that LlamaIndex loads the index from."""
    storage, struct = StorageContext.from_defaults(), IndexDocumentSummary()
    snapshot = snapshot_of(index)
    chunks = _chunks(snapshot)
    for document, summary in _summaries(index, snapshot, chunks).items():
        beside = (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)
        members = [_alone(chunk, document, beside) for chunk in chunks[document]]
        node = _alone(summary, document)
        if node.node_id == members[0].node_id:
            node.id_ = f"{node.node_id}-summary"
        storage.vector_store.add([node.model_copy(update={"embedding": summary.embedding})])
        storage.docstore.add_documents([*members, node])
        struct.add_summary_and_nodes(node, members)
        if node.source_node is not None and node.source_node.hash:  # for `refresh_ref_docs`
            storage.docstore.set_document_hash(document, node.source_node.hash)
    storage.index_store.add_index_struct(struct)
    return storage


def _chunks(snapshot: Snapshot) -> dict[str, list[TextNode]]:
    """Return the chunks of each document in order, without blank ones."""
    chunks = defaultdict[str, list[TextNode]](list)
    for node in ordered_nodes(snapshot):
        if node.level == 0 and node.text.strip():
            chunks[node.documents[0]].append(to_text_node(node))
    return chunks


def _summaries(
    index: HierarchicalIndex, snapshot: Snapshot, chunks: Mapping[str, Sequence[TextNode]]
) -> dict[str, BaseNode]:
    """Return each document's summary with its vector; extract one if the tree has none."""
    whole = snapshot.nodes(where=WHOLE)
    summaries: dict[str, BaseNode] = {node.whole_document: to_text_node(node) for node in whole}
    without = sorted(chunks.keys() - summaries.keys())
    if ids := [chunk.node_id for document in without for chunk in chunks[document]]:
        from hierindex.tree.hierarchy import DocumentHierarchy  # rarely needed

        extracting = DocumentHierarchy(
            embed_model=index.embed_model, parent_embedding="mean", max_levels=1
        )
        made = extracting([*map(to_text_node, snapshot.nodes(ids))])
        summaries |= {from_text_node(node).whole_document: node for node in made}
    return {document: summaries[document] for document in chunks}


def _alone(node: BaseNode, document: str, links: Collection[NodeRelationship] = ()) -> BaseNode:
    """Copy a node without its vector and links, except those to its source and in `links`."""
    source = node.source_node or RelatedNodeInfo(node_id=document, node_type=ObjectType.DOCUMENT)
    beside = {kind: node.relationships[kind] for kind in links if kind in node.relationships}
    alone = to_text_node(replace(from_text_node(node), parents=(), vector=None))
    alone.relationships = {NodeRelationship.SOURCE: source, **beside}
    return alone
