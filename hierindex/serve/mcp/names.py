"""What an id of an agent names: a node, a document, or a place in a document."""

import re
from typing import NamedTuple
from urllib.parse import unquote

from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.errors import InputError
from hierindex.record import Span
from hierindex.retrieve.named import similar_documents
from hierindex.retrieve.question import cuts, of_documents
from hierindex.serve.mcp.replies import SCHEME
from hierindex.store.snapshot import Snapshot

PLACE = re.compile("(.+)#char=([0-9]{1,15}),([0-9]{1,15})", re.DOTALL)
LIKE = 6  # first characters that ids have in common with one that they are like
MOST_LIKE = 3


class Named(NamedTuple):
    """A node by its id, or characters `start` to `end` of a document, by default all."""

    node: str | None = None
    document: str = ""
    start: int = 0
    end: int | None = None

    def part_of(self, span: Span) -> Span:
        """Return the part of a passage of the document that is named; it may be empty."""
        end = span.end if self.end is None else min(span.end, self.end)
        start = max(span.start, self.start)
        return span._replace(start=start, end=max(start, end))


async def named(snapshot: Snapshot, text: str) -> Named:
    """Return what an id names: a document, `DOCUMENT#char=START,END`, or a node by a prefix.

    A place may also be written as `url_of` does.

    Raises
    ------
    InputError
        If it names nothing, or several nodes; has similar names.
    """
    if await _is_document(snapshot, text):
        return Named(document=text)
    if text.startswith(SCHEME):
        text = unquote(text.removeprefix(SCHEME))
    place = PLACE.fullmatch(text)
    if place and await _is_document(snapshot, place[1]):
        start, end = int(place[2]), int(place[3])
        if start >= end:
            raise InputError(f"A place begins before it ends, got {start} to {end}.")
        return Named(None, place[1], start, end)
    ids = await snapshot.ids_beginning(text) if text else []
    if text in ids or len(ids) == 1:
        return Named(text if text in ids else ids[0])
    if ids:
        raise InputError(
            f"{len(ids)} nodes have an id that begins with {text!r}, such as {_listed(ids)}."
        )
    document = place[1] if place else text
    like = await similar_documents(document, snapshot)
    like += await snapshot.ids_beginning(text[:LIKE]) if len(text) > LIKE else []
    there = f"similar are {_listed(like)}" if like else "outline tells what there is"
    raise InputError(f"No node and no document has the id {document!r}; {there}.")


async def _is_document(snapshot: Snapshot, text: str) -> bool:
    filters = MetadataFilters(filters=[cuts([0]), of_documents([text])])
    return bool(await snapshot.rows(filters=filters, columns=("id",)))


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:MOST_LIKE]))
