"""A tree as LlamaIndex's `DocumentSummaryIndex`."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

from llama_index.core import (
    DocumentSummaryIndex,
    MockEmbedding,
    StorageContext,
    load_index_from_storage,
)
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.llms import LLM, CustomLLM, LLMMetadata
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.errors import InputError
from hierindex.export.nodes import ordered_nodes
from hierindex.export.target import new
from hierindex.index import HierarchicalIndex
from hierindex.record import DETAILS, NodeRecord
from hierindex.retrieve.documents import WHOLE
from hierindex.store.schema import documents_of
from hierindex.store.snapshot import Snapshot
from hierindex.threads import wait_for


def to_document_summary_index(
    index: HierarchicalIndex, *, llm: LLM | None = None, embed_summaries: bool = True
) -> DocumentSummaryIndex:
    """LlamaIndex's `DocumentSummaryIndex` of the tree's chunks and documents' summaries.

    No model is asked. A document's summary is the node that holds all its chunks, with the
    vector that it has in the tree; a document of one chunk is its own summary. Where the tree
    has no node of a document alone, as in a corpus-wide RAPTOR tree, its summary is the extract
    that `DocumentHierarchy` would make, with the mean of its chunks' vectors.

    Parameters
    ----------
    index : HierarchicalIndex
    llm : LLM, optional
        Of the result's LLM retriever and of documents that are inserted. LlamaIndex's `Settings`
        are not asked, but its `as_query_engine` asks them unless it is given another.
    embed_summaries : bool
        Whether summaries have vectors; without, only the LLM retriever can be used.

    Returns
    -------
    DocumentSummaryIndex
        Its nodes keep ids, metadata and citations (`NodeRecord.from_metadata`), but no links
        to nodes that it does not hold.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, or it is empty.
    ModelError
        If summaries have vectors and the embedding model cannot be loaded by its name.
    """
    embed_model = index.embed_model if embed_summaries else MockEmbedding(embed_dim=1)
    loaded = load_index_from_storage(
        _storage(index, embed_summaries),
        llm=llm or NoLLM(),
        embed_model=embed_model,
        embed_summaries=embed_summaries,
    )
    return cast(DocumentSummaryIndex, loaded)


def persist_document_summary_index(
    index: HierarchicalIndex, folder: str | Path, *, embed_summaries: bool = True
) -> int:
    """Write the `DocumentSummaryIndex` to a new folder, for `load_index_from_storage`.

    Parameters
    ----------
    index : HierarchicalIndex
    folder : str or Path
    embed_summaries : bool
        See `to_document_summary_index`.

    Returns
    -------
    int
        How many nodes: chunks and summaries.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, it is empty, or the folder holds something or cannot be written.
    """
    with new(folder, folder=True) as partial:
        storage = _storage(index, embed_summaries)
        storage.persist(str(partial))
    return len(storage.docstore.docs)


class NoLLM(CustomLLM):
    """Stands where LlamaIndex would look for OpenAI's model, and refuses to answer."""

    @property
    def metadata(self) -> LLMMetadata:
        """Of no model."""
        return LLMMetadata(model_name="none")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise InputError("The index has no LLM; pass llm= where it is exported or loaded.")

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self.complete(prompt)


def _storage(index: HierarchicalIndex, embed_summaries: bool) -> StorageContext:
    """All that LlamaIndex keeps of its index; no model is needed for it."""
    storage, struct = StorageContext.from_defaults(), IndexDocumentSummary()
    snapshot = index.store.snapshot()
    chunks = _chunks(snapshot)
    for document, summary in _summaries(index, snapshot, chunks).items():
        beside = (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)
        members = [_alone(chunk, document, beside) for chunk in chunks[document]]
        told = _alone(summary, document)
        if told.node_id == members[0].node_id:
            told.id_ = f"{told.node_id}-summary"
        if embed_summaries:
            storage.vector_store.add([told.model_copy(update={"embedding": summary.embedding})])
        storage.docstore.add_documents([*members, told])
        struct.add_summary_and_nodes(told, members)
        if told.source_node is not None and told.source_node.hash:  # `refresh_ref_docs` asks
            storage.docstore.set_document_hash(document, told.source_node.hash)
    storage.index_store.add_index_struct(struct)
    return storage


def _chunks(snapshot: Snapshot) -> dict[str, list[TextNode]]:
    """The chunks of each document, in their order, blank ones left out."""
    chunks = defaultdict[str, list[TextNode]](list)
    for node in ordered_nodes(snapshot):
        record = NodeRecord.from_metadata(node.metadata)
        if record.level == 0 and node.text.strip():
            chunks[documents_of(node, record)[0]].append(node)
    return chunks


def _summaries(
    index: HierarchicalIndex, snapshot: Snapshot, chunks: Mapping[str, Sequence[TextNode]]
) -> dict[str, BaseNode]:
    """The summary of each document, with its vector."""
    whole = MetadataFilters(filters=[WHOLE])
    found: list[BaseNode] = [*wait_for(snapshot.nodes(filters=whole))]
    without = chunks.keys() - {_document(node) for node in found}
    ids = [chunk.node_id for document in sorted(without) for chunk in chunks[document]]
    if ids:
        from hierindex.hierarchy.transforms import DocumentHierarchy  # which few trees need

        extracting = DocumentHierarchy(
            embed_model=index.embed_model, parent_embedding="mean", max_levels=1
        )
        found += extracting(wait_for(snapshot.nodes(ids)))
    by_document = {_document(node): node for node in found}
    return {document: by_document[document] for document in chunks}


def _document(node: BaseNode) -> str:
    """The document whose summary a node is."""
    return NodeRecord.from_metadata(node.metadata).whole_document


def _alone(node: BaseNode, document: str, links: Collection[NodeRelationship] = ()) -> BaseNode:
    """A copy of a document's node without a vector, linked to its source and only so."""
    source = node.source_node or RelatedNodeInfo(node_id=document, node_type=ObjectType.DOCUMENT)
    beside = {kind: node.relationships[kind] for kind in links if kind in node.relationships}
    metadata = node.metadata
    if DETAILS in metadata:
        record = NodeRecord.from_metadata(metadata)
        metadata = metadata | replace(record, parents=()).to_metadata()
    return node.model_copy(
        update={
            "embedding": None,
            "metadata": metadata,
            "relationships": {NodeRelationship.SOURCE: source, **beside},
        }
    )
