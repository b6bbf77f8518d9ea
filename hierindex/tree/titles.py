"""Titles of nodes, and which nodes are whole documents.

The title of a document is its own title or its file name, and the title of a section is its
heading. Other parts of a document are named by their headings, by phrases that they repeat or by
their first words, and groups of documents by phrases from their documents' titles.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import accumulate
from typing import NamedTuple, Self

from hierindex.core.titles import (
    CUT,
    MAX_TITLE,
    first_words,
    group_names,
    listed,
    topic_names,
    without_markup,
    without_shared_prefix,
)
from hierindex.node import SECTION, TITLES_BETWEEN, TITLES_SPAN, Node, shared_section, titles_of
from hierindex.summarize.extractive import MIN_WORDS, SPEAKER
from hierindex.summarize.summary import Budget
from hierindex.text.sentences import tokens

MAX_GIVEN = 100  # characters of a heading or a document's title
MAX_TITLES = 100  # of the documents of a group
WIDTHS = 60, 40, 30, 20, 10  # characters of a name in a list


class Chunk(NamedTuple):
    """A chunk's document and section: `section` is the path of its headings, "" for none.

    `name` is the document's title, or its file name.
    """

    document: str
    section: str
    name: str


Chunks = Mapping[str, Chunk]
"""Chunks by id, in order."""


class Part(NamedTuple):
    """The sections that a part of a document contains.

    `above` are the titles above all of these sections, and `titles` are the titles of the sections
    themselves. If the part has only some chunks of a section, the titles that all these chunks
    share below it are added. Text before the first of the sections, such as an introduction, is
    ignored.
    """

    above: list[str]
    titles: list[str]
    is_section: bool  # whether it has all chunks of one section, and no other
    is_run: bool  # whether it has all chunks from its first to its last

    @classmethod
    def of(
        cls, chunks: Chunks, sizes: Mapping[tuple[str, str], int], number: Mapping[str, int]
    ) -> Self:
        """Return the part with these chunks, given the sizes of sections and an order."""
        ids = sorted(chunks, key=number.__getitem__)
        is_run = number[ids[-1]] - number[ids[0]] < len(ids)
        document, inside = chunks[ids[0]].document, [chunks[i].section for i in ids]
        while True:
            path = shared_section(inside)
            titles, deeper = titles_of(path), [each for each in inside if each != path]
            if not deeper or sizes[document, path] == len(inside):
                return cls(titles[:-1], titles[-1:], sizes[document, path] == len(chunks), is_run)
            if len(deeper) == len(inside):
                break
            inside = deeper
        sections, own = defaultdict[str, list[str]](list), list[str]()
        for each in inside:
            sections[titles_of(each)[len(titles)]].append(each)
        for title, those in sections.items():
            is_whole = sizes[document, TITLES_BETWEEN.join([*titles, title])] == len(those)
            shared = [title] if is_whole else titles_of(shared_section(those))[len(titles) :]
            own.append(TITLES_BETWEEN.join(shared))
        return cls(titles, own, False, is_run)

    @property
    def path(self) -> list[str]:
        """The titles that all of its sections share."""
        return [*self.above, *self.titles] if len(self.titles) == 1 else self.above

    def name(self, outer: Sequence[str]) -> str:
        """Return a name from its titles, below the titles `outer` of its parent.

        The name has all titles, the first and the last, or the first few, depending on their
        length.
        """
        titles = [title for title in self.titles if any(map(str.isalpha, title))]
        name = ", ".join(titles)
        if len(titles) > 1 and len(name) > MAX_TITLE:
            span = TITLES_SPAN.join((titles[0], titles[-1]))
            name = span if self.is_run and len(span) <= MAX_GIVEN else listed(titles)
        longer = (TITLES_BETWEEN.join([*outer[i:], name]) for i in range(len(outer)) if name)
        return next(
            (each for each in longer if len(each) <= MAX_GIVEN), first_words(name, MAX_GIVEN)
        )


def chunks_of(nodes: Iterable[Node]) -> dict[str, Chunk]:
    """Return the chunks among nodes."""
    return {
        node.id: Chunk(node.documents[0], node.section, node.document_name)
        for node in nodes
        if node.level == 0
    }


def documents_alone(nodes: Iterable[Node]) -> set[str]:
    """Return the documents of the nodes with text of only one document."""
    return {d.documents[0] for d in nodes if len(d.documents) == 1}


def note_documents(
    nodes: Sequence[Node],
    documents: Set[str],
    chunks: Chunks,
    text_of: Callable[[str], str] | None = None,
) -> None:
    """Set `whole_document` and the titles of nodes within documents.

    `whole_document` is set on the highest node over all chunks of one document and no others. Its
    title is the document's title or file name. The title of a node over all chunks of one section
    is the section's heading. Other nodes keep the title that a language model wrote with the
    summary, if any. Without one, they get the headings of their sections, below headings that their
    parent's sections do not share: "Part 1 › Chapter 2". If these are the same as their parent's,
    they are named by phrases that their chunks repeat, or by their first words. A chunk has the
    headings of its sections if it has several, else its first words.

    Parameters
    ----------
    nodes : Sequence[Node]
        All nodes above the chunks whose chunks are of a single one of the documents, children
        before parents. Other nodes are not changed.
    documents : Set[str]
    chunks : Chunks
        All chunks of these documents; there may be others.
    text_of : callable, optional
        Returns the text of a chunk by its id; by default, all chunks are among the nodes.
    """
    text_of = text_of or {node.id: node.text for node in nodes if node.level == 0}.__getitem__
    under = _chunks_under(nodes, documents, chunks)
    n_chunks, sizes = Counter(c.document for c in chunks.values()), _sizes_of_sections(chunks)
    number = {chunk_id: i for i, chunk_id in enumerate(chunks)}
    parts = {node_id: Part.of(below, sizes, number) for node_id, below in under.items()}
    unnamed = defaultdict[str, list[Node]](list)  # by document
    for node in nodes:
        if node.id not in under:
            continue
        document, below, part = node.documents[0], under[node.id], parts[node.id]
        is_highest = not any(parent in under for parent, _ in node.parents)
        is_whole = is_highest and len(below) == n_chunks[document]
        node.whole_document = document if is_whole else ""
        name = first_words(next(iter(below.values())).name, MAX_GIVEN)
        parent = next((parts[i].path for i, _ in node.parents[:1] if i in parts), [])
        outer = [title for title in part.above[len(parent) :] if node.level and title != name]
        is_new = node.level and len(part.above) >= len(parent)
        headings = part.name(outer) if is_new or part.is_section else ""
        own = headings if part.is_section else node.written_title or headings
        node.title = (is_whole and name) or own
        is_bare = node.title == node.file_stem and not any(each.section for each in below.values())
        if node.level == 0:
            node.title = node.title or _headings(node) or _first_words(node)
        elif not node.title or is_bare:
            unnamed[document].append(node)
    of_document = defaultdict[str, list[str]](list)
    for chunk_id, chunk in chunks.items():
        of_document[chunk.document].append(chunk_id)
    for document, group in unnamed.items():
        position = {chunk_id: i for i, chunk_id in enumerate(of_document[document])}
        texts = [SPEAKER.sub("", text_of(chunk_id)) for chunk_id in position]
        topics = topic_names(texts, [[position[i] for i in under[node.id]] for node in group])
        for node, topic in zip(group, topics, strict=True):
            node.title = ": ".join(filter(None, (node.title, topic))) or _first_words(node)


def _chunks_under(
    nodes: Sequence[Node], documents: Set[str], chunks: Chunks
) -> dict[str, dict[str, Chunk]]:
    """Return the chunks under each node whose chunks are of a single one of the documents.

    They are by the node's id, each once, in order. A chunk counts as under itself.
    """
    under: dict[str, dict[str, Chunk]] = {}
    for node in nodes:
        if len(node.documents) > 1 or node.documents[0] not in documents:
            continue
        found = dict[str, Chunk]()
        for child in node.children or [node.id]:
            found |= under.get(child) or {child: chunks[child]}
        under[node.id] = found
    return under


def note_names(nodes: Sequence[Node], made: Set[str] | None = None) -> None:
    """Name the groups of several documents by phrases that distinguish them from their siblings.

    Siblings are the nodes with the same strongest parent, or the roots. A title from a language
    model is kept. Groups of parts of the same documents get their first words.

    Parameters
    ----------
    nodes : Sequence[Node]
        The nodes to name, and all their siblings.
    made : Set[str]
        Ids of the parents whose children are named, in addition to the roots; by default all.
    """
    siblings = defaultdict[str, list[Node]](list)
    for node in nodes:
        siblings[next((parent for parent, _ in node.parents), "")].append(node)
    for parent, group in siblings.items():
        if made is not None and parent and parent not in made:
            continue
        for node, name in zip(group, _names(group), strict=True):
            if len(node.documents) > 1:
                node.title = name or _first_words(node)


def names_in_list(children: Sequence[Node], budget: Budget) -> list[str]:
    """Return the names of the children of a group, for a list of them.

    Names are cut so that they take at most about half of a budget. They are empty within one
    document, and for children whose document has no title.
    """
    if len({document for child in children for document in child.documents}) < 2:
        return [""] * len(children)
    names = without_shared_prefix(_names(children))
    for width in WIDTHS:
        cut = [first_words(name, width).rstrip(" ,:;") for name in names]
        if 2 * budget.count(["\n".join(dict.fromkeys(cut))])[0] <= budget.max_tokens:
            break
    return cut


def titles_under(children: Sequence[Node]) -> tuple[str, ...]:
    """Return the titles of a group's documents; if there are many, some at even intervals."""
    titles = dict[tuple[str, str], None]()
    for child in children:
        of = "" if child.titles else child.documents[0]  # two documents may have one title
        titles |= dict.fromkeys((of, title) for title in child.titles or [child.document_name])
    named = [title for _, title in titles if title]
    step = max(1.0, len(named) / MAX_TITLES)
    return tuple(named[int(i * step)] for i in range(min(len(named), MAX_TITLES)))


def _names(children: Sequence[Node]) -> list[str]:
    """Return the names of sibling groups; "" for groups that mostly share their documents."""
    names = group_names([child.titles or [child.document_name] for child in children])
    having = Counter(document for child in children for document in child.documents)
    called = Counter(name for name, _ in {(c.document_name, c.documents) for c in children})
    for i, child in enumerate(children):
        if len(child.documents) == 1:
            name = child.document_name
            names[i] = child.documents[0] if name and called[name] > 1 else name
        elif child.written_title:
            names[i] = child.written_title
        elif 2 * sum(having[each] > 1 for each in child.documents) > len(child.documents):
            names[i] = ""
    return names


def _headings(node: Node) -> str:
    """Return the headings of the sections of a chunk, if it has text of several, else ""."""
    sections = [span.section for span in node.citations if span.section]
    shared = len(titles_of(shared_section(sections)))
    below = [title for each in sections for title in titles_of(each)[shared : shared + 1]]
    titles = [title for title in dict.fromkeys(below) if any(map(str.isalpha, title))]
    return listed(titles) if len(titles) > 1 else ""


def _first_words(node: Node) -> str:
    """Return the heading that a text begins with, or the first words of a line that is no stub."""
    lines = [*filter(None, map(str.strip, without_markup(node.text).split("\n")))]
    heading = titles_of(str(node.metadata.get(SECTION) or ""))[-1:]
    if heading and lines[:1] == heading:
        return first_words(lines[0])
    said = (SPEAKER.sub("", line) for line in lines)
    telling = (line for line in said if len(tokens(line)) >= MIN_WORDS)
    text = " ".join((next(telling, "") or node.text).split())
    if len(text) <= MAX_TITLE:
        return text
    return first_words(text, MAX_TITLE - len(CUT)).rstrip(" ,:;") + CUT


def _sizes_of_sections(chunks: Chunks) -> Counter[tuple[str, str]]:
    """Count the chunks in each section of each document, those of its subsections included."""
    return Counter(
        (chunk.document, path)
        for chunk in chunks.values()
        for path in accumulate(titles_of(chunk.section), lambda *two: TITLES_BETWEEN.join(two))
    )
