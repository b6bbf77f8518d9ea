"""The parts of a reply, which cursors tell apart."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import NotRequired, TypedDict, TypeVar

from hierindex.errors import InputError
from hierindex.store.snapshot import Snapshot

T = TypeVar("T")
CURSOR = re.compile("([0-9]{1,15})-([0-9]{1,15})-([0-9a-f]{8})")


class Next(TypedDict):
    """What to do after a part, and the cursor of the one that follows, if there is one."""

    next_step: str
    cursor: NotRequired[str]


class Paging:
    """A part of what one call replies; all parts are from one generation.

    Parameters
    ----------
    snapshot : Snapshot
    cursor : str, optional
        Of the part; by default the first.
    tool : str
    *arguments : object
        The others.

    Attributes
    ----------
    generation : int
    start : int
        Where the part begins.

    Raises
    ------
    InputError
        If the cursor is of another generation or call, or is none.
    """

    def __init__(
        self, snapshot: Snapshot, cursor: str | None, tool: str, *arguments: object
    ) -> None:
        call = repr((snapshot.state, tool, arguments)).encode()
        self.generation = snapshot.generation
        self._tool = tool
        self._call = blake2b(call, digest_size=4).hexdigest()
        self.start = self._start(cursor) if cursor else 0

    def rest(self, items: Sequence[T]) -> Sequence[T]:
        """Return the items from the start of the part on."""
        return items[self.start :]

    def next(self, end: int, total: int, step: str) -> Next:
        """Return what to do after a part that ends there, and the cursor of the following part."""
        if end >= total:
            return {"next_step": step}
        cursor = f"{self.generation}-{end}-{self._call}"
        more = f'`{self._tool}` again with cursor "{cursor}" for what follows.'
        return {"next_step": f"{step} {more}".strip(), "cursor": cursor}

    def _start(self, cursor: str) -> int:
        parts = CURSOR.fullmatch(cursor)
        if parts is None:
            raise InputError("This is no cursor; pass one as it was given, or none.")
        if int(parts[1]) != self.generation:
            raise InputError(
                f"The cursor is of generation {parts[1]}, and the index has changed to generation "
                f"{self.generation}; repeat the call without a cursor to begin again."
            )
        if parts[3] != self._call:
            raise InputError(
                "The cursor is of another call; pass it with the arguments of the call that gave "
                "it, or repeat the call without a cursor."
            )
        return int(parts[2])
