"""Export to LangChain, which is imported on use."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hierindex.errors import InputError
from hierindex.export.nodes import ordered_nodes
from hierindex.index import HierarchicalIndex
from hierindex.retrieve.levels import check_level

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from hierindex.export.langchain_retriever import HierarchyDocumentRetriever


def to_langchain_documents(index: HierarchicalIndex, level: int | None = None) -> "list[Document]":
    """Return the nodes as LangChain documents, leaves first.

    Parameters
    ----------
    index : HierarchicalIndex
    level : int, optional
        Return only the nodes at this level, 0 for the chunks; by default all nodes.

    Returns
    -------
    list[Document]
        Documents with the nodes' ids. Their JSON metadata are the node's, overridden by
        `level`, `level_max`, `kind`, `grounding`, `n_tokens`, `documents`, `parents` (ids with
        weights), `children` (ids), `citations` and `node_title`.

    Raises
    ------
    InputError
        If langchain-core is not installed, there is no index, or it is empty.
    LevelError
        If the tree does not have the level.
    """
    with _installed():
        from hierindex.export.langchain_retriever import document_of
    documents = [document_of(node) for node in ordered_nodes(index.store.snapshot())]
    if level is not None:
        check_level(level, max(d.metadata["level_max"] for d in documents))
        documents = [
            d for d in documents if d.metadata["level"] <= level <= d.metadata["level_max"]
        ]
    return documents


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
        Retrieves the documents of `to_langchain_documents` with two more metadata: `score`, and
        `path`, the ids from the strongest parent up to the root.

    Raises
    ------
    InputError
        If langchain-core is not installed or options cannot be combined.
    """
    with _installed():
        from hierindex.export.langchain_retriever import HierarchyDocumentRetriever
    return HierarchyDocumentRetriever(retriever=index.as_retriever(**options))


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError("LangChain needs `pip install 'hierindex[langchain]'`.") from error
