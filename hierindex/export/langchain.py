"""Export to LangChain: documents of the nodes, and a retriever."""

from typing import Any, ClassVar

from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from pydantic import ConfigDict, InstanceOf

from hierindex.errors import extra
from hierindex.export.files import ordered_nodes, snapshot_of
from hierindex.index import HierarchicalIndex
from hierindex.node import PREFIX, Node
from hierindex.retrieve.levels import Level, ids_at
from hierindex.retrieve.retriever import HierarchyRetriever, RetrievedNode
from hierindex.store.rows import describe
from hierindex.text_node import from_text_node

with extra("langchain", "LangChain needs"):
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

Filter = MetadataFilters | dict[str, Any] | None


def to_langchain_documents(index: HierarchicalIndex, level: Level | None = None) -> list[Document]:
    """Return the nodes as LangChain documents, leaves first.

    Parameters
    ----------
    index : HierarchicalIndex
    level : int or str, optional
        Return only the nodes of this level: a number (0 for the chunks), "top", "documents",
        "sections" or "chunks" (see `HierarchyRetriever`). By default all nodes.

    Returns
    -------
    list[Document]
        A document has the id, text and metadata of its node. Keys with the prefix
        `hierindex_` hold the node's `title`, `level`, `level_max`, `kind`, `grounding`, `n_tokens`,
        `documents`, `more_documents`, `parents` (ids with weights), `children` (ids), `citations`
        and `sentences`.

    Raises
    ------
    InputError
        If there is no index, or it is empty.
    LevelError
        If the tree does not have the level.
    """
    snapshot = snapshot_of(index)
    nodes = ordered_nodes(snapshot)
    if level is not None:
        ids = ids_at(snapshot, level)
        nodes = [node for node in nodes if node.id in ids]
    return [*map(document_of, nodes)]


def document_of(node: Node, **more: Any) -> Document:
    """Convert a node to a document with additional metadata."""
    values = describe(node)
    keys = ("text", "id", "title", "metadata", "blocks")
    text, node_id, title, metadata, _ = (values.pop(key) for key in keys)
    own = {PREFIX + key: value for key, value in {**values, "title": title, **more}.items()}
    return Document(text, id=node_id, metadata={**metadata, **own})


class HierarchyDocumentRetriever(BaseRetriever):
    """A LangChain retriever that wraps a `HierarchyRetriever`.

    Parameters
    ----------
    retriever : HierarchyRetriever
    k : int, optional
        Maximum number of documents, instead of the retriever's `top_k`.
    filter : MetadataFilters or dict, optional
        Metadata filters that every document must pass, in addition to the retriever's own. A dict
        maps metadata keys to a value, or to a list of values of which one must match.

    Notes
    -----
    `invoke` and `ainvoke` also take `k`, which overrides the value above, and `filter`, which
    is applied in addition.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    retriever: InstanceOf[HierarchyRetriever]
    k: int | None = None
    filter: Filter = None

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Filter = None,  # noqa: A002 - LangChain's name
    ) -> list[Document]:
        return [_found(node) for node in self._narrowed(k, filter).retrieve(query)]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Filter = None,  # noqa: A002
    ) -> list[Document]:
        return [_found(node) for node in await self._narrowed(k, filter).aretrieve(query)]

    def _narrowed(self, k: int | None, also: Filter) -> HierarchyRetriever:
        top_k = self.k if k is None else k
        return self.retriever.narrowed(top_k, _filters(self.filter)).narrowed(None, _filters(also))


def to_langchain_retriever(index: HierarchicalIndex, **options: Any) -> HierarchyDocumentRetriever:
    """Return a LangChain retriever with sync and async methods.

    Parameters
    ----------
    index : HierarchicalIndex
    **options
        Options of `HierarchyRetriever`.

    Returns
    -------
    HierarchyDocumentRetriever
        Returns documents as `to_langchain_documents` does, with two more keys: `hierindex_score`,
        and `hierindex_path`, the ids of the ancestors, from the parent with the highest weight up
        to the root.

    Raises
    ------
    InputError
        If options cannot be combined.
    """
    return HierarchyDocumentRetriever(retriever=index.as_retriever(**options))


def _filters(given: Filter) -> MetadataFilters | None:
    """Return filters that match if each key has its value, or one of its values."""
    if not isinstance(given, dict):
        return given
    parts: list[MetadataFilter | MetadataFilters] = [
        MetadataFilter(
            key=key,
            value=value if isinstance(value, list) else [value],
            operator=FilterOperator.ANY,
        )
        for key, value in given.items()
    ]
    return MetadataFilters(filters=parts)


def _found(found: NodeWithScore) -> Document:
    path = found.path if isinstance(found, RetrievedNode) else []
    return document_of(from_text_node(found.node), score=found.score, path=path)
