"""Which nodes are whole documents, and the titles of nodes.

Titles are headings, documents' titles, and phrases that tell nodes from their siblings.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import accumulate
from pathlib import PurePath
from typing import Any, NamedTuple, Self

from hierindex.core.titles import distinctive_phrases, first_words
from hierindex.node import (
    FILE_NAME,
    SECTION,
    TITLE,
    TITLES_BETWEEN,
    Node,
    shared_section,
    titles_of,
)

MAX_GIVEN = 100  # characters of a heading or a document's title


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


def note_documents(nodes: Sequence[Node], documents: Set[str], chunks: Chunks) -> None:
    """Note which nodes are whole documents, and the titles that documents give them.

    `whole_document` is set on the highest node that holds all chunks of one document only. It gets
    the document's title or the name of its file, and a node of all chunks of one section gets its
    heading. Others keep the title that a language model wrote with the summary, if there is one.

    Parameters
    ----------
    nodes : Sequence[Node]
        All nodes above the chunks that hold chunks of one of the documents alone, children before
        their parents. Others stay as they are.
    documents : Set[str]
    chunks : Chunks
        All chunks of these documents, and maybe of others.
    """
    under = _chunks_under(nodes, documents, chunks)
    n_chunks, sizes = Counter(c.document for c in chunks.values()), _sizes_of_sections(chunks)
    for node in nodes:
        if node.id not in under:
            continue
        document, below = node.documents[0], [*under[node.id].values()]
        is_highest = not any(parent in under for parent, _ in node.parents)
        is_whole = is_highest and len(below) == n_chunks[document]
        node.whole_document = document if is_whole else ""
        given = _document_title(below[0]) if is_whole else ""
        node.title = given or _heading(below, sizes) or node.title


def _chunks_under(
    nodes: Sequence[Node], documents: Set[str], chunks: Chunks
) -> dict[str, dict[str, Chunk]]:
    """Return the chunks under each node that holds chunks of one of the documents alone.

    They are by the node's id, each once, in order. A chunk is under itself.
    """
    under: dict[str, dict[str, Chunk]] = {}
    for node in nodes:
        if len(node.documents) > 1 or node.documents[0] not in documents:
            continue
        if node.level == 0:
            under[node.id] = {node.id: chunks[node.id]}
            continue
        found = dict[str, Chunk]()
        for child in node.children:
            found |= under[child] if child in under else {child: chunks[child]}
        under[node.id] = found
    return under


def note_phrases(nodes: Sequence[Node]) -> None:
    """Set the titles that are missing to phrases that tell nodes from their siblings.

    Siblings are the nodes with the same strongest parent, or the roots.

    Parameters
    ----------
    nodes : Sequence[Node]
        In reading order within each level, with all siblings of those that have no title.
    """
    siblings = defaultdict[str, list[Node]](list)
    for node in nodes:
        siblings[next((parent for parent, _ in node.parents), "")].append(node)
    for group in siblings.values():
        if all(node.title for node in group):
            continue
        phrases = distinctive_phrases([node.text for node in group])
        for node, phrase in zip(group, phrases, strict=True):
            node.title = node.title or phrase


def _document_title(chunk: Chunk) -> str:
    """Return the title or the file name of a chunk's document, or nothing."""
    names = chunk.title, PurePath(str(chunk.file_name or "")).stem
    titles = (first_words(name, MAX_GIVEN) for name in names if isinstance(name, str))
    return next(filter(None, titles), "")


def _heading(under: Sequence[Chunk], sizes: Mapping[tuple[str, str], int]) -> str:
    """Return the heading of the section that has exactly these chunks, or nothing."""
    path = shared_section(chunk.section for chunk in under)
    is_section = path and sizes[under[0].document, path] == len(under)
    return first_words(titles_of(path)[-1], MAX_GIVEN) if is_section else ""


def _sizes_of_sections(chunks: Chunks) -> Counter[tuple[str, str]]:
    """Count the chunks in each section of each document, those of its subsections included."""
    return Counter(
        (chunk.document, path)
        for chunk in chunks.values()
        for path in accumulate(titles_of(chunk.section), lambda *two: TITLES_BETWEEN.join(two))
    )
