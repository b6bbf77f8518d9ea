"""Nodes that hold chunks of one document, and those that summarise it whole."""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from hierindex.node import FILE_NAME, SECTION, TITLE, Node


class Chunk(NamedTuple):
    """What a chunk says of its document: `section` is the path of its headings, "" for none."""

    document: str
    section: str
    title: Any
    file_name: Any

    @classmethod
    def of(cls, leaf: Node) -> Self:
        """Return what a leaf says."""
        metadata = leaf.metadata
        section = metadata.get(SECTION)
        return cls(
            leaf.documents[0],
            section if isinstance(section, str) else "",
            metadata.get(TITLE),
            metadata.get(FILE_NAME),
        )


Chunks = Mapping[str, Chunk]
"""Chunks by id, in order."""


def chunks_of(nodes: Iterable[Node]) -> dict[str, Chunk]:
    """Return the chunks among nodes."""
    return {node.id: Chunk.of(node) for node in nodes if node.level == 0}


def documents_alone(nodes: Iterable[Node]) -> set[str]:
    """Return the documents of the nodes that have text of one document only."""
    return {d.documents[0] for d in nodes if len(d.documents) == 1}


def chunks_of_one_document(
    nodes: Sequence[Node], documents: Container[str], chunks: Chunks
) -> dict[str, Chunks]:
    """Return the chunks under each node that holds chunks of a single document.

    Parameters
    ----------
    nodes : Sequence[Node]
        All nodes above the chunks that hold chunks of one of the documents alone, children before
        their parents. Others are ignored.
    documents : Container[str]
    chunks : Chunks
        All chunks of these documents.

    Returns
    -------
    dict[str, Chunks]
        By the node's id, each chunk once, in order. A chunk is under itself.
    """
    under: dict[str, Chunks] = {}
    for node in nodes:
        if len(node.documents) > 1 or node.documents[0] not in documents:
            continue
        if node.level == 0:
            under[node.id] = {node.id: chunks[node.id]}
            continue
        found: dict[str, Chunk] = {}
        for child in node.children:
            found |= under[child] if child in under else {child: chunks[child]}
        under[node.id] = found
    return under


def note_whole_documents(
    nodes: Sequence[Node], under: Mapping[str, Collection[str]], chunks: Chunks
) -> None:
    """Set `whole_document` on the highest node that holds all chunks of one document only.

    Parameters
    ----------
    nodes : Sequence[Node]
    under : Mapping
        See `chunks_of_one_document`; other nodes stay as they are.
    chunks : Chunks
    """
    n_chunks = Counter(chunk.document for chunk in chunks.values())
    for node in nodes:
        if node.id not in under:
            continue
        document = node.documents[0]
        is_highest = not any(parent in under for parent, _ in node.parents)
        is_whole = is_highest and len(under[node.id]) == n_chunks[document]
        node.whole_document = document if is_whole else ""
