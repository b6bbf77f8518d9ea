"""Resolving an agent's ids to nodes, documents or passages, and their verbatim text."""

import re
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple
from urllib.parse import unquote

from hierindex.errors import InputError, NotFoundError
from hierindex.node import Span
from hierindex.retrieve.named import similar_documents
from hierindex.retrieve.search import cuts, of_documents
from hierindex.retrieve.sources import COLUMNS, Stretch, stretches_in, stretches_of
from hierindex.serve.mcp.replies import MOST_CHARACTERS, SCHEME
from hierindex.store.filters import Filters
from hierindex.store.snapshot import Snapshot

PLACE = re.compile("(.+)#char=([0-9]{1,15}),([0-9]{1,15})", re.DOTALL)
MOST_LIKE = 3  # ids of a message
MOST_CHUNKS = 5000  # under a node
MOST_PASSAGES = 50  # of a part


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


def extents(snapshot: Snapshot, what: Named) -> list[tuple[Stretch, int, int]]:
    """Return the stretches of text that a name refers to, each with its first and last character.

    Raises
    ------
    InputError
        If the index does not hold them, or they span too many chunks.
    """
    if what.node:
        by_document = stretches_in(_under(snapshot, what.node))
        found = [stretch for document in sorted(by_document) for stretch in by_document[document]]
    else:
        found = stretches_of(snapshot, what.document)
    parts = (
        (stretch, max(stretch.start, what.start), int(min(stretch.end, what.end)))
        for stretch in found
    )
    held = [(stretch, start, end) for stretch, start, end in parts if start < end]
    if not held:
        raise InputError(
            "The index holds no text of a document there, or its chunks have no known position."
        )
    return held


def passages(held: Sequence[tuple[Stretch, int, int]], skipped: int) -> list[tuple[Span, str]]:
    """Return the passages after the first `skipped` characters, up to the size of one part."""
    found, room = list[tuple[Span, str]](), MOST_CHARACTERS
    for stretch, first, end in held:
        start = first + skipped
        skipped = max(0, start - end)
        if start < end and room and len(found) < MOST_PASSAGES:
            last = min(end, start + room)
            found.append((stretch.span(start, last), stretch.part(start, last)))
            room -= last - start
    return found


def _under(snapshot: Snapshot, node_id: str) -> list[dict[str, Any]]:
    """Return the rows of the chunks under a node, or of the node itself if it is a chunk."""
    chunks, ids = set[str](), [node_id]
    while ids:
        rows = snapshot.rows(ids, columns=("id", "level", "child_ids"))
        chunks |= {row["id"] for row in rows if not row["level"]}
        ids = [*dict.fromkeys(child for row in rows for child in row["child_ids"])]
        if len(ids) > MOST_CHUNKS:
            raise InputError(
                f"Over {MOST_CHUNKS:,} nodes are under {node_id!r}; `expand` it and read a child."
            )
    return snapshot.rows([*chunks], columns=COLUMNS)
