"""Nodes in their two forms, ours and LlamaIndex's."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document

from hierindex import HierarchyStore, Node
from hierindex.node import HEADINGS, Maker
from hierindex.read.markdown import headings_and_tables
from hierindex.read.split import split_documents
from hierindex.store.rows import to_table
from hierindex.text_node import chunk_of, to_text_node
from hierindex.text_node import metadata_of as entries
from hierindex.tree.nodes import make_leaves


def metadata_of(maker: Maker = Maker(), **fields: Any) -> dict[str, Any]:  # noqa: B008
    """Return the metadata entries that store attributes of a node."""
    return entries(Node("", "", maker=maker, **fields))


def as_chunks(nodes: Iterable[Node | BaseNode]) -> list[Node]:
    """Return chunks as a growth takes them."""
    return [node if isinstance(node, Node) else chunk_of(node) for node in nodes]


def markdown(name: str, text: str, **metadata: Any) -> Document:
    """Return a document with its headings, as it is read; no model sees its metadata."""
    headings = [list(heading) for heading in headings_and_tables(text)[0]]
    metadata |= {HEADINGS: headings} if headings else {}
    hidden = [*metadata]
    return Document(
        id_=name,
        text=text,
        metadata=metadata,
        excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=hidden,
    )


def chunks_of(documents: Iterable[Document], splitter: NodeParser) -> list[Node]:
    """Return chunks of documents, as a build makes them."""
    return split_documents([*documents], splitter)


def leaves_of(nodes: Iterable[Node | BaseNode]) -> list[Node]:
    """Return the leaves that a growth makes of chunks."""
    return make_leaves(as_chunks(nodes), "", Maker())


def as_text_nodes(nodes: Iterable[Node]) -> list[BaseNode]:
    """Return nodes as LlamaIndex has them."""
    return [*map(to_text_node, nodes)]


def as_plain(nodes: Iterable[Node | BaseNode]) -> list[dict[str, Any]]:
    """Return all that is known of each node, by id, its vector included."""
    given = (to_text_node(node) if isinstance(node, Node) else node for node in nodes)
    return sorted((node.to_dict() for node in given), key=lambda node: node["id_"])


def replace_all(
    store: HierarchyStore,
    nodes: Sequence[Node | BaseNode],
    report: dict[str, Any] | None = None,
    **options: Any,
) -> int:
    """Replace all nodes of a store, as a build does."""
    rows = to_table(_ours(nodes)).to_reader() if nodes else None
    return store.table.replace(rows, report or {}, **options)


def revise(
    store: HierarchyStore,
    nodes: Sequence[Node | BaseNode],
    gone: Collection[str] = (),
    report: dict[str, Any] | None = None,
    **options: Any,
) -> int:
    """Replace nodes by id and remove others, as an update does."""
    rows = to_table(_ours(nodes)) if nodes else None
    return store.table.revise(rows, gone, report or {}, **options)


def _ours(nodes: Sequence[Node | BaseNode]) -> list[Node]:
    return [node if isinstance(node, Node) else Node.of(node) for node in nodes]
