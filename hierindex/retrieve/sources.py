"""The passages of documents that a node cites, with the text around them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from hierindex.errors import NotFoundError
from hierindex.node import Node, Span
from hierindex.store.filters import CHUNKS, of_documents
from hierindex.store.rows import quotes_in
from hierindex.store.snapshot import Snapshot

COLUMNS = ("id", "next_id", "documents", "text", "record")
# The end of a line or of a sentence; white space is tried from its first character only.
BOUNDARY = re.compile("(?<!\\s)\\s*\n\\s*|[.!?\u2026]['\")\\]]*\\s+|[\u3002\uff01\uff1f]\\s*")
BLANK = re.compile(r"\s+")
# Up to an empty line; of a longer paragraph, up to the end of a line, or what there is room for.
PARAGRAPH = re.compile(r".{1,4000}?(?:\n(?:[^\S\n]*\n)+|\Z)|.{1,4000}\n|.{1,4000}", re.DOTALL)


@dataclass(frozen=True)
class SourcePassage:
    """A passage that a node cites: the `text` of `citation`, between `before` and `after`.

    The text is assembled from the chunks of the index. White space between chunks is not stored. It
    is shown as a line break if it was one character, otherwise as an empty line.
    """

    citation: Span
    before: str
    text: str
    after: str

    def to_json(self) -> dict[str, Any]:
        """Return the citation, the texts, and their offsets `before_start` and `after_end`."""
        return {
            **self.citation.to_json(),
            "before_start": self.citation.start - len(self.before),
            "before": self.before,
            "text": self.text,
            "after": self.after,
            "after_end": self.citation.end + len(self.after),
        }


class Stretch(NamedTuple):
    """A stretch of a document's text, from character `start`, that the index holds.

    `sources` are the spans of its chunks, each with its page, section and anchor.
    """

    start: int
    text: str
    sources: Sequence[Span] = ()

    @property
    def end(self) -> int:
        """The end of the stretch, exclusive."""
        return self.start + len(self.text)

    def paragraphs(self) -> Iterator[tuple[int, str]]:
        """Yield the start and text of each paragraph, including the gap after it."""
        for match in PARAGRAPH.finditer(self.text):
            yield self.start + match.start(), match[0]

    def span(self, start: int, end: int) -> Span:
        """Return a passage of the stretch, with the page, section and anchor of its start."""
        before = (source for source in self.sources if source.start <= start)
        place = max(before, key=lambda source: source.start, default=self.sources[0])
        return place._replace(start=start, end=end)

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
    """A chunk at a known position in its document.

    `next_id` is the id of the next chunk if only white space is between them, else "".
    `sources` are the spans of the chunk, each with its page, section and anchor.
    """

    start: int
    text: str
    id: str
    next_id: str
    sources: tuple[Span, ...]

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self | None:
        """Return the chunk of a row; None if its position is unknown or its text was edited."""
        quotes = quotes_in(row["record"])
        sources = tuple(quote.source for quote in quotes if quote.source)
        if not quotes or quotes[0].source is None or not quotes[0].verbatim:
            return None
        start = sources[0].start - quotes[0].at
        return cls(start, row.get("text", ""), row["id"], row["next_id"], sources)


def source_passages(snapshot: Snapshot, node: Node, context: int) -> list[SourcePassage]:
    """Return the passages that a node cites; those of one document are in reading order.

    Adjacent citations become one passage, with the page, section and anchor of its start.

    Parameters
    ----------
    snapshot : Snapshot
    node : Node
        A node of this snapshot.
    context : int
        Maximum number of characters before and after each passage.

    Raises
    ------
    NotFoundError
        If the index does not hold the text of any citation.
    """
    order = {document: i for i, document in enumerate(node.documents)}
    spans = sorted(
        node.citations, key=lambda span: (order.get(span.document, len(order)), span[:2])
    )
    stretches = _stretches(snapshot, {span.document for span in spans})
    found: list[tuple[Span, Stretch]] = []
    for span in spans:
        around = (s for s in stretches[span.document] if s.start <= span.start <= span.end <= s.end)
        stretch = next(around, None)
        if stretch is None:
            continue
        last, before = found[-1] if found else (span, None)
        if before is stretch and not stretch.part(last.end, span.start).strip():
            found[-1] = last._replace(end=max(last.end, span.end)), stretch
        else:
            found.append((span, stretch))
    if not found:
        raise NotFoundError(
            f"The sources of node {node.id!r} cannot be shown: its chunks have no known "
            "position in their documents. Build the index with the default splitter."
        )
    return [stretch.around(span, context) for span, stretch in found]


def stretches_of(snapshot: Snapshot, document: str) -> list[Stretch]:
    """Return the stretches of a document's text that the index holds, without the gaps.

    Raises
    ------
    NotFoundError
        If the index holds no text of the document at a known position.
    """
    if stretches := _stretches(snapshot, {document})[document]:
        return stretches
    raise NotFoundError(f"The index does not hold the text of {document!r}.")


def _stretches(snapshot: Snapshot, documents: set[str]) -> dict[str, list[Stretch]]:
    """Return the stretches of documents' texts, without the gaps."""
    where = CHUNKS & of_documents(documents)
    found = stretches_in(snapshot.select(*COLUMNS, where=where).to_pylist() if documents else [])
    return {document: found.get(document, []) for document in documents}


def stretches_in(rows: Iterable[dict[str, Any]]) -> dict[str, list[Stretch]]:
    """Return, by document, the stretches of text that chunks cover, given the chunks' rows."""
    chunks = defaultdict[str, list[Chunk]](list)
    for row in rows:
        if chunk := Chunk.of(row):
            chunks[chunk.sources[0].document].append(chunk)
    return {document: _joined(sorted(of)) for document, of in chunks.items()}


def _joined(chunks: Iterable[Chunk]) -> list[Stretch]:
    """Join the chunks of a document, which may overlap, unless text between them is missing."""
    runs, end, next_id = list[tuple[int, list[str], list[Span]]](), 0, ""
    for chunk in chunks:
        if not runs or (chunk.start > end and chunk.id != next_id):
            runs.append((chunk.start, [], []))
            end = chunk.start
        _, parts, sources = runs[-1]
        # White space is not stored; it ends a line and, from two characters on, a paragraph.
        n_blank = max(0, chunk.start - end)
        parts += [f"\n{' ' * (n_blank - 2)}\n"[:n_blank], chunk.text[max(0, end - chunk.start) :]]
        sources += chunk.sources
        end, next_id = max(end, chunk.start + len(chunk.text)), chunk.next_id
    return [Stretch(start, "".join(parts), sources) for start, parts, sources in runs]


def _without_start(text: str, is_cut: bool) -> str:
    """Remove a partial sentence, or partial word, from the start of a text."""
    for boundary in (BOUNDARY, BLANK) if is_cut else ():
        if (match := boundary.search(text)) and match.end() < len(text):
            return text[match.end() :]
    return text


def _without_end(text: str, is_cut: bool) -> str:
    """Remove a partial sentence, or partial word, from the end of a text."""
    for boundary in (BOUNDARY, BLANK) if is_cut else ():
        if ends := [match.end() for match in boundary.finditer(text) if match.start()]:
            return text[: ends[-1]].rstrip()
    return text
