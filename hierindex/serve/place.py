"""A place in a document, as replies have it."""

from typing import Required

from typing_extensions import TypedDict  # before Python 3.12, pydantic reads no other


class Place(TypedDict, total=False):
    """Characters `start` to `end` (exclusive) of a document; page and section are its start's."""

    document: Required[str]
    start: Required[int]
    end: Required[int]
    page: int
    page_label: str
    section: list[str]
    anchor: str
