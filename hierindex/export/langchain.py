"""A tree for LangChain: its nodes as documents, and a retriever."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hierindex.errors import InputError
from hierindex.export.nodes import ordered_nodes
from hierindex.index import HierarchicalIndex
from hierindex.record import NodeRecord
from hierindex.retrieve.retriever import check_level

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from hierindex.export.langchain_retriever import HierarchyDocumentRetriever


def to_langchain_documents(index: HierarchicalIndex, level: int | None = None) -> "list[Document]":
    """The nodes as LangChain documents, the leaves first.

    Parameters
    ----------
    index : HierarchicalIndex
    level : int, optional
        Only this cut of the tree, 0 for the chunks; all nodes by default.

    Returns
    -------
    list[Document]
        With the nodes' ids. The metadata are JSON: those of the node, and over them `level`,
        `level_max`, `kind`, `grounding`, `n_tokens`, `documents`, `parents` (ids with weights),
        `children` (ids) and `citations`.

    Raises
    ------
    InputError
        If langchain-core is not installed, there is no index, or it is empty.
    LevelError
        If the tree has no such level.
    """
    with _installed():
        from hierindex.export.langchain_retriever import document_of
    nodes = ordered_nodes(index.store.snapshot())
    if level is not None:
        records = [NodeRecord.from_metadata(node.metadata) for node in nodes]
        check_level(level, max(record.level_max for record in records))
        within = [record.level <= level <= record.level_max for record in records]
        nodes = [node for node, is_within in zip(nodes, within, strict=True) if is_within]
    return [document_of(node) for node in nodes]


def to_langchain_retriever(
    index: HierarchicalIndex, **options: Any
) -> "HierarchyDocumentRetriever":
    """A LangChain retriever, to be invoked alone or in a chain, sync and async.

    Parameters
    ----------
    index : HierarchicalIndex
    **options
        As for `HierarchyRetriever`.

    Returns
    -------
    HierarchyDocumentRetriever
        Its documents are those of `to_langchain_documents`, and their metadata also tell the
        `score` and the `path`, the ids from the strongest parent up to the root.

    Raises
    ------
    InputError
        If langchain-core is not installed, or options do not go together.
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
