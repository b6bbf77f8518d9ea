"""Resolving an agent's ids to nodes, documents or passages, and their verbatim text."""

import re
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple
from urllib.parse import unquote

from hierindex.errors import InputError, NotFoundError
from hierindex.node import Span
from hierindex.retrieve.named import similar_documents
from hierindex.retrieve.question import cuts, of_documents
from hierindex.retrieve.sources import Chunk, SourcePassage, passages_at
from hierindex.serve.mcp.replies import MOST_CHARACTERS, SCHEME
from hierindex.store.filters import Filters
from hierindex.store.snapshot import Snapshot

PLACE = re.compile("(.+)#char=([0-9]{1,15}),([0-9]{1,15})", re.DOTALL)
MOST_LIKE = 3  # ids of a message
MOST_CHUNKS = 5000  # under a node
MOST_PASSAGES = 50  # of a part
COLUMNS = ("id", "level", "child_ids", "next_id", "record")


class Named(NamedTuple):
    """A node by its id, or characters `start` to `end` of a document, by default all."""

    node: str | None = None
    document: str = ""
    start: int = 0
    end: float = inf


def named(snapshot: Snapshot, text: str) -> Named:
    """Resolve an id: a document, `DOCUMENT#char=START,END`, or a prefix of a node id.

    A passage may also be given as a URL of `url_of`.

    Raises
    ------
    InputError
        If nothing or more than one node matches; the message has similar names.
    """
    if _is_document(snapshot, text):
        return Named(document=text)
    if text.startswith(SCHEME):
        text = unquote(text.removeprefix(SCHEME))
    place = PLACE.fullmatch(text)
    if place and _is_document(snapshot, place[1]):
        start, end = int(place[2]), int(place[3])
        if start >= end:
            raise InputError(f"A passage must start before it ends, got {start} to {end}.")
        return Named(None, place[1], start, end)
    ids = snapshot.ids_beginning(text) if text else []
    if text in ids or len(ids) == 1:
        return Named(text if text in ids else ids[0])
    if ids:
        some = ", ".join(map(repr, ids[:MOST_LIKE]))
        raise InputError(f"{len(ids)} nodes have an id that begins with {text!r}, such as {some}.")
    document = place[1] if place else text
    like = ", ".join(map(repr, similar_documents(document, snapshot)))
    there = f"similar are {like}" if like else "outline tells what there is"
    raise NotFoundError(f"No node and no document has the id {document!r}; {there}.")


def _is_document(snapshot: Snapshot, text: str) -> bool:
    filters = Filters((cuts([0]), of_documents([text])))
    return bool(snapshot.rows(filters=filters, columns=("id",)))


def extents(snapshot: Snapshot, what: Named) -> list[Span]:
    """Return the passages of documents that a name refers to; adjacent passages are joined.

    Raises
    ------
    InputError
        If the index does not hold them, or they span too many chunks.
    """
    if what.node:
        rows = _under(snapshot, what.node)
    else:
        filters = Filters((cuts([0]), of_documents([what.document])))
        rows = snapshot.rows(filters=filters, columns=COLUMNS)
    spans, next_id = list[Span](), ""
    for chunk in sorted(filter(None, map(Chunk.of, rows)), key=_place):
        span = chunk.sources[0]._replace(end=chunk.sources[-1].end)
        if (
            spans
            and spans[-1].document == span.document
            and (chunk.start <= spans[-1].end or chunk.id == next_id)
        ):
            spans[-1] = spans[-1]._replace(end=max(spans[-1].end, span.end))
        else:
            spans.append(span)
        next_id = chunk.next_id
    if what.node is None:
        parts = (
            span._replace(start=max(span.start, what.start), end=int(min(span.end, what.end)))
            for span in spans
        )
        spans = [part for part in parts if part.start < part.end]
    if not spans:
        raise InputError(
            "The index holds no text of a document there, or its chunks have no known position."
        )
    return spans


def passages(snapshot: Snapshot, spans: Sequence[Span], start: int) -> list[SourcePassage]:
    """Return the text of the passages from character `start` on, up to the size of one part."""
    parts, room = list[Span](), MOST_CHARACTERS
    for span in spans:
        first = span.start + start
        start = max(0, first - span.end)
        if first < span.end and room and len(parts) < MOST_PASSAGES:
            parts.append(span._replace(start=first, end=min(span.end, first + room)))
            room -= parts[-1].end - first
    return passages_at(snapshot, parts, 0)


def _under(snapshot: Snapshot, node_id: str) -> list[dict[str, Any]]:
    """Return the rows of the chunks under a node, or of the node itself if it is a chunk."""
    chunks, ids = list[dict[str, Any]](), [node_id]
    while ids:
        rows = snapshot.rows(ids, columns=COLUMNS)
        chunks += (row for row in rows if not row["level"])
        ids = [*dict.fromkeys(child for row in rows for child in row["child_ids"])]
        if len(ids) > MOST_CHUNKS:
            raise InputError(
                f"Over {MOST_CHUNKS:,} nodes are under {node_id!r}; `expand` it and read a child."
            )
    return [*{row["id"]: row for row in chunks}.values()]


def _place(chunk: Chunk) -> tuple[str, int]:
    return chunk.sources[0].document, chunk.start
