"""Owners of files at a service: the name of a file says whose it is."""

import re
import time
from functools import cached_property
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Protocol, Self

from hierindex.core.identity import digest

if TYPE_CHECKING:
    from openai.types import FileObject

NAME = re.compile(r"hierindex-([0-9a-f]{16})-([0-9a-f]{16})-\d+\.jsonl")  # index and call
ABANDONED = 2 * 86_400.0  # seconds; a batch ends within one day

_active = set[str]()  # calls of this process that have not ended


class Memory(Protocol):
    """What an index remembers; see `TextCache`."""

    def noted(self, key: str) -> str:
        """Return the note under a key, or ""."""

    def note(self, key: str, text: str) -> None:
        """Store a note."""

    def note_first(self, key: str, text: str) -> str:
        """Store a note unless there is one, and return the one that is there."""


class Owner:
    """A call that sends files for an index, while its `with` block lasts.

    An index has one writer at a time. So a file of the index whose call is none of this process,
    or has ended, was left by a build that has ended. Files of other indexes, and of calls without
    a memory, may be of a build that runs: they are left only if they are old.

    Parameters
    ----------
    service : str
        Its address.
    memory : Memory, optional
        Of the index. It has a note as long as the service may have files of the index.
    """

    def __init__(self, service: str, memory: Memory | None) -> None:
        self._memory = memory
        self._key = digest("files of batches", service)
        self._call = token_hex(8)
        self._numbers = count()

    def __enter__(self) -> Self:
        _active.add(self._call)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _active.discard(self._call)

    @property
    def has_sent(self) -> bool:
        """Whether the service may have files of the index."""
        return self._memory is not None and self._memory.noted(self._key) != ""

    @cached_property
    def index(self) -> str:
        """Random name of the index, which its memory has from here on."""
        if self._memory is None:
            return self._call
        return self._memory.note_first(self._key, self._call)

    def has_sent_nothing(self) -> None:
        """Note that the service has no files of the index."""
        if self._memory is not None:
            self._memory.note(self._key, "")

    def new_name(self) -> str:
        """Return a name that no other file has."""
        return f"hierindex-{self.index}-{self._call}-{next(self._numbers)}.jsonl"

    def is_of_index(self, file: "FileObject") -> bool:
        """Return whether a file was sent for this index."""
        return _named(file)[0] == self.index

    def may_delete(self, file: "FileObject") -> bool:
        """Return whether no other call needs a file whose batch does not run."""
        index, call = _named(file)
        if index == self.index:
            return call == self._call or call not in _active
        return time.time() - (file.created_at or time.time()) > ABANDONED


def is_ours(file: "FileObject") -> bool:
    """Return whether hierindex has sent a file."""
    return NAME.fullmatch(file.filename or "") is not None


def _named(file: "FileObject") -> tuple[str, ...]:
    """Return the index and the call in the name of a file of ours."""
    match = NAME.fullmatch(file.filename)
    return match.groups() if match else ("", "")
