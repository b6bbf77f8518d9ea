"""Verbatim text of nodes and documents, in parts."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.errors import InputError
from hierindex.record import Span
from hierindex.retrieve.question import cuts, of_documents
from hierindex.retrieve.sources import Chunk, SourcePassage, passage_at
from hierindex.serve.mcp.names import Named
from hierindex.serve.mcp.replies import MOST_CHARACTERS
from hierindex.store.snapshot import Snapshot

MOST_CHUNKS = 5000  # under a node
MOST_PASSAGES = 50  # of a part
COLUMNS = ("id", "level", "child_ids", "next_id", "record")


async def extents(snapshot: Snapshot, what: Named) -> list[Span]:
    """Return the passages of documents that a name stands for, those that adjoin as one.

    Raises
    ------
    InputError
        If the index does not hold them, or they are of too many chunks.
    """
    rows = await (_under(snapshot, what.node) if what.node else _inside(snapshot, what.document))
    chunks = sorted(filter(None, map(Chunk.of, rows)), key=_place)
    spans, next_id = list[Span](), ""
    for chunk in chunks:
        first, last = chunk.sources[0], spans[-1] if spans else None
        span = first._replace(end=chunk.sources[-1].end)
        adjoins = last is not None and (chunk.start <= last.end or chunk.id == next_id)
        if last is not None and adjoins and last.document == span.document:
            spans[-1] = last._replace(end=max(last.end, span.end))
        else:
            spans.append(span)
        next_id = chunk.next_id
    if what.node is None:
        spans = [part for part in map(what.part_of, spans) if part.start < part.end]
    if not spans:
        raise InputError(
            "The index holds no text of a document there, or its chunks have no known place."
        )
    return spans


async def passages(snapshot: Snapshot, spans: Sequence[Span], start: int) -> list[SourcePassage]:
    """Return the text of passages from character `start` of all, as much as one part holds."""
    found, room = list[SourcePassage](), MOST_CHARACTERS
    for span in spans:
        first = span.start + start
        start = max(0, first - span.end)
        if first < span.end and room and len(found) < MOST_PASSAGES:
            part = span._replace(start=first, end=min(span.end, first + room))
            found.append(await passage_at(snapshot, part, 0))
            room -= part.end - part.start
    return found


async def _inside(snapshot: Snapshot, document: str) -> list[dict[str, Any]]:
    """Return the rows of a document's chunks."""
    filters = MetadataFilters(filters=[cuts([0]), of_documents([document])])
    return await snapshot.rows(filters=filters, columns=COLUMNS)


async def _under(snapshot: Snapshot, node_id: str) -> list[dict[str, Any]]:
    """Return the rows of the chunks under a node, or of the chunk that it is."""
    chunks, ids = list[dict[str, Any]](), [node_id]
    while ids:
        rows = await snapshot.rows(ids, columns=COLUMNS)
        chunks += (row for row in rows if not row["level"])
        ids = [*dict.fromkeys(child for row in rows for child in row["child_ids"])]
        if len(ids) > MOST_CHUNKS:
            raise InputError(
                f"Over {MOST_CHUNKS:,} nodes are under {node_id!r}; `expand` it and read a child."
            )
    return [*{row["id"]: row for row in chunks}.values()]


def _place(chunk: Chunk) -> tuple[str, int]:
    return chunk.sources[0].document, chunk.start
