"""Export to LangChain, which is imported on use."""

from typing import TYPE_CHECKING, Any

from hierindex.export.files import ordered_nodes
from hierindex.index import HierarchicalIndex
from hierindex.loading import extra
from hierindex.retrieve.levels import Level, ids_at

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from hierindex.export.langchain_retriever import HierarchyDocumentRetriever


def to_langchain_documents(
    index: HierarchicalIndex, level: Level | None = None
) -> "list[Document]":
    """Return the nodes as LangChain documents, leaves first.

    Parameters
    ----------
    index : HierarchicalIndex
    level : int or str, optional
        Return only the nodes of this level: a number (0 for the chunks), "top", "documents",
        "sections" or "chunks", see `HierarchyRetriever`. By default all nodes.

    Returns
    -------
    list[Document]
        A document has the id, text and metadata of its node. More metadata, with the prefix
        `hierindex_`, are the node's `title`, `level`, `level_max`, `kind`, `grounding`, `n_tokens`,
        `documents`, `more_documents`, `parents` (ids with weights), `children` (ids), `citations`
        and `sentences`.

    Raises
    ------
    InputError
        If langchain-core is not installed, there is no index, or it is empty.
    LevelError
        If the tree does not have the level.
    """
    with extra("langchain", "LangChain needs"):
        from hierindex.export.langchain_retriever import document_of
    snapshot = index.table.snapshot()
    nodes = ordered_nodes(snapshot)
    if level is not None:
        ids = ids_at(snapshot, level)
        nodes = [node for node in nodes if node.id in ids]
    return [*map(document_of, nodes)]


def to_langchain_retriever(
    index: HierarchicalIndex, **options: Any
) -> "HierarchyDocumentRetriever":
    """Return a LangChain retriever, sync and async.

    Parameters
    ----------
    index : HierarchicalIndex
    **options
        Options of `HierarchyRetriever`.

    Returns
    -------
    HierarchyDocumentRetriever
        Returns documents as `to_langchain_documents` does, with two more metadata:
        `hierindex_score`, and `hierindex_path`, the ids from the strongest parent up to the root.

    Raises
    ------
    InputError
        If langchain-core is not installed or options cannot be combined.
    """
    with extra("langchain", "LangChain needs"):
        from hierindex.export.langchain_retriever import HierarchyDocumentRetriever
    return HierarchyDocumentRetriever(retriever=index.as_retriever(**options))
