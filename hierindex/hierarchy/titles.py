"""Titles of nodes: headings, documents' titles, and phrases that tell nodes from their siblings."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import PurePath

from hierindex.core.titles import distinctive_phrases, first_words
from hierindex.hierarchy.whole_documents import Chunk, Chunks
from hierindex.node import TITLES_BETWEEN, Node, shared_section, titles_of

MAX_GIVEN = 100  # characters of a heading or a document's title


def note_given_titles(nodes: Sequence[Node], under: Mapping[str, Chunks], chunks: Chunks) -> None:
    """Set the titles of nodes that documents give.

    A node that is a whole document gets the document's title or the name of its file, and a node
    of all chunks of one section gets its heading. Others keep the title that a language model
    wrote with the summary, if there is one.

    Parameters
    ----------
    nodes : Sequence[Node]
        With `whole_document` set.
    under : Mapping
        See `chunks_of_one_document`. Of other nodes, those that have a title keep it.
    chunks : Chunks
    """
    sizes = _sizes_of_sections(chunks)
    for node in nodes:
        if below := [*under.get(node.id, {}).values()]:
            given = node.whole_document and _document_title(below[0])
            if given := given or _heading(below, sizes):
                node.title = given


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
