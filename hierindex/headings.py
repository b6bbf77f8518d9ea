"""Headings of a document, as a reader writes them into its metadata."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hierindex.record import PAGE_LABELS, PAGES

HEADINGS = "headings"  # metadata key of a document's headings, see `Heading`


class Heading(NamedTuple):
    """A heading of a document; `level` counts from 1, `start` is its first character's offset.

    `anchor` is the nearest anchor of an HTML page at or before the heading. A document's metadata
    holds headings in the order of the text, as lists.
    """

    level: int
    title: str
    start: int
    anchor: str = ""


def headings_in(metadata: Mapping[str, Any]) -> list[Heading]:
    """Return the headings that a reader wrote into a document's metadata.

    >>> [heading.title for heading in headings_in({"headings": [[1, "Aims", 0]]})]
    ['Aims']
    """
    entries = metadata.get(HEADINGS)
    if isinstance(entries, list | tuple) and all(map(_is_heading, entries)):
        return [Heading(*entry) for entry in entries]
    return []


def _is_heading(entry: Any) -> bool:
    match entry:
        case [int(), str(), int()] | [int(), str(), int(), str()]:
            return True
    return False


def for_chunks(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document's metadata without the lists of its headings and page labels."""
    lists = {HEADINGS} if headings_in(metadata) else set()
    if PAGES in metadata:
        lists.add(PAGE_LABELS)
    return {key: value for key, value in metadata.items() if key not in lists}
