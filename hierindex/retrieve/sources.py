"""The passages of documents that a node cites, with the text around them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, Self

from hierindex.errors import InputError
from hierindex.node import Node, Span
from hierindex.retrieve.question import cuts, of_documents
from hierindex.store.filters import Filters
from hierindex.store.rows import quotes_in
from hierindex.store.snapshot import Snapshot

MOST_KNOWN = 16  # documents
COLUMNS = ("id", "next_id", "documents", "text", "record")
# The end of a line or of a sentence; white space is tried from its first character only.
BOUNDARY = re.compile("(?<!\\s)\\s*\n\\s*|[.!?\u2026]['\")\\]]*\\s+|[\u3002\uff01\uff1f]\\s*")
BLANK = re.compile(r"\s+")


@dataclass(frozen=True)
class SourcePassage:
    """A passage that a node cites: `text` is that of `citation`, between `before` and `after`.

    The text is put together from the chunks of the index. White space between chunks is not
    stored: a character of it is shown as a line break, and more as an empty line.
    """

    citation: Span
    before: str
    text: str
    after: str

    def to_json(self) -> dict[str, Any]:
        """Return the citation and the texts; they are characters `before_start` to `after_end`."""
        return {
            **self.citation.to_json(),
            "before_start": self.citation.start - len(self.before),
            "before": self.before,
            "text": self.text,
            "after": self.after,
            "after_end": self.citation.end + len(self.after),
        }


class Stretch(NamedTuple):
    """A part of a document's text that the index holds, from character `start`."""

    start: int
    text: str

    @property
    def end(self) -> int:
        """The end of the part, exclusive."""
        return self.start + len(self.text)

    def part(self, start: int, end: int) -> str:
        """Return document[start:end], clipped to this stretch."""
        return self.text[max(0, start - self.start) : max(0, end - self.start)]

    def around(self, span: Span, context: int) -> SourcePassage:
        """Return a passage with up to `context` characters on both sides, in whole sentences."""
        before, after = span.start - context, span.end + context
        return SourcePassage(
            span,
            _without_start(self.part(before, span.start), before > self.start),
            self.part(span.start, span.end),
            _without_end(self.part(span.end, after), after < self.end),
        )


class Chunk(NamedTuple):
    """A chunk at a known place, and the id of the next one, if only white space is between.

    `sources` are its parts, each with its page, section and anchor.
    """

    start: int
    text: str
    id: str
    next_id: str
    sources: tuple[Span, ...]

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self | None:
        """Return the chunk of a row; None if its place is unknown or its text was edited."""
        quotes = quotes_in(row["record"])
        sources = tuple(quote.source for quote in quotes if quote.source)
        if not quotes or quotes[0].source is None or not quotes[0].verbatim:
            return None
        start = sources[0].start - quotes[0].at
        return cls(start, row.get("text", ""), row["id"], row["next_id"], sources)


def source_passages(snapshot: Snapshot, node: Node, context: int) -> list[SourcePassage]:
    """Return the passages that a node cites, those of one document in the order of its text.

    Adjoining citations are one passage, with the page, section and anchor of its start.

    Parameters
    ----------
    snapshot : Snapshot
    node : Node
        Of this snapshot.
    context : int
        Maximum characters before and after each passage.

    Raises
    ------
    InputError
        If the index does not hold the text of any citation.
    """
    order = {document: i for i, document in enumerate(node.documents)}
    spans = sorted(
        node.citations, key=lambda span: (order.get(span.document, len(order)), span[:2])
    )
    chunks = _chunks(snapshot, {span.document for span in spans}, *COLUMNS)
    passages = [
        stretch.around(span, context)
        for document, cited in groupby(spans, key=lambda span: span.document)
        for span, stretch in _joined(cited, [*_stretches(chunks[document])])
    ]
    if not passages:
        raise InputError(
            f"The sources of node {node.id!r} cannot be shown: its chunks have no known place "
            "in their documents. Build the index with the default splitter."
        )
    return passages


def passage_at(snapshot: Snapshot, span: Span, context: int) -> SourcePassage:
    """Return a passage of a document with the page, section and anchor at which it begins.

    Only the texts of the chunks that are shown are read.

    Raises
    ------
    InputError
        If the index does not hold it.
    """
    places = _places(snapshot, span.document)
    first = bisect_right(places, span.start - context, key=itemgetter(0)) - 2
    after = bisect_left(places, span.end + context, key=itemgetter(0)) + 1
    ids = [node_id for _, node_id in places[max(0, first) : after]]
    rows = snapshot.rows(ids, columns=COLUMNS)
    chunks = sorted(chunk for chunk in map(Chunk.of, rows) if chunk)
    for stretch in _stretches(chunks):
        if stretch.start <= span.start <= span.end <= stretch.end:
            sources = [source for chunk in chunks for source in chunk.sources]
            before = [source for source in sources if source.start <= span.start]
            place = max(before or sources[:1], key=lambda source: source.start)
            return stretch.around(place._replace(start=span.start, end=span.end), context)
    raise InputError(
        f"The index does not hold characters {span.start} to {span.end} of {span.document!r}."
    )


def _places(snapshot: Snapshot, document: str) -> list[tuple[int, str]]:
    """Return where each chunk of a document starts, and its id. Cached: of the last documents."""
    known: dict[str, list[tuple[int, str]]] = snapshot.known.setdefault("places in documents", {})
    places = known.get(document)
    if places is None:
        if len(known) >= MOST_KNOWN:
            known.clear()
        chunks = _chunks(snapshot, [document], "id", "next_id", "documents", "record")
        places = known[document] = [(chunk.start, chunk.id) for chunk in chunks[document]]
    return places


def _chunks(
    snapshot: Snapshot, documents: Collection[str], *columns: str
) -> dict[str, list[Chunk]]:
    """Return the chunks of documents in the order of the text; without text if it is not read."""
    filters = Filters((cuts([0]), of_documents([*documents])))
    rows = snapshot.rows(filters=filters, columns=columns) if documents else []
    found: dict[str, list[Chunk]] = {document: [] for document in documents}
    for row in rows:
        if chunk := Chunk.of(row):
            for document in found.keys() & row["documents"]:
                found[document].append(chunk)
    return {document: sorted(chunks) for document, chunks in found.items()}


def _stretches(chunks: Sequence[Chunk]) -> Iterator[Stretch]:
    """Yield the parts of a document between which text is missing; chunks may overlap."""
    parts: list[str] = []
    start = end = 0
    next_id = ""
    for chunk in chunks:
        if not parts or (chunk.start > end and chunk.id != next_id):
            if parts:
                yield Stretch(start, "".join(parts))
            parts, start, end = [], chunk.start, chunk.start
        parts += [_white_space(chunk.start - end), chunk.text[max(0, end - chunk.start) :]]
        end = max(end, chunk.start + len(chunk.text))
        next_id = chunk.next_id
    if parts:
        yield Stretch(start, "".join(parts))


def _white_space(n: int) -> str:
    r"""Return `n` characters of white space that end a line and, from two on, a paragraph.

    >>> _white_space(1), _white_space(2), _white_space(4)
    ('\n', '\n\n', '\n  \n')
    """
    return "\n" * n if n < 2 else f"\n{' ' * (n - 2)}\n"


def _joined(spans: Iterator[Span], stretches: Sequence[Stretch]) -> list[tuple[Span, Stretch]]:
    """Return the spans whose text is known; those with only white space between become one."""
    starts = [stretch.start for stretch in stretches]
    found: list[tuple[Span, Stretch]] = []
    for span in spans:
        i = bisect_right(starts, span.start) - 1
        if i < 0 or span.end > stretches[i].end:
            continue
        if found and found[-1][1] is stretches[i]:
            last = found[-1][0]
            if not stretches[i].part(last.end, span.start).strip():
                span = last._replace(end=max(last.end, span.end))
                found.pop()
        found.append((span, stretches[i]))
    return found


def _without_start(text: str, is_cut: bool) -> str:
    """Drop the part of a sentence, or of a word, with which a text begins."""
    for boundary in (BOUNDARY, BLANK) if is_cut else ():
        if (match := boundary.search(text)) and match.end() < len(text):
            return text[match.end() :]
    return text


def _without_end(text: str, is_cut: bool) -> str:
    """Drop the part of a sentence, or of a word, with which a text ends."""
    for boundary in (BOUNDARY, BLANK) if is_cut else ():
        if ends := [match.end() for match in boundary.finditer(text) if match.start()]:
            return text[: ends[-1]].rstrip()
    return text
