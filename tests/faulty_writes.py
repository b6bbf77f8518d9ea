"""Calls that write to an index, some of which fail: those to LanceDB and to the cache."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

import pytest
from lancedb.db import AsyncConnection
from lancedb.merge import LanceMergeInsertBuilder
from lancedb.table import AsyncTable, AsyncTags

from hierindex.cache import Cache
from hierindex.store import table

TO_TABLE: Mapping[Any, str] = {
    AsyncConnection: "create_table drop_table",
    AsyncTable: (
        "add create_index delete drop_index optimize restore update update_field_metadata"
    ),
    AsyncTags: "create delete update",
    LanceMergeInsertBuilder: "execute",
}
"""Methods that change files, by what has them."""
TO_CACHE: Mapping[Any, str] = {Cache: "_transaction", table: "sweep"}
ALL = {**TO_TABLE, **TO_CACHE}


class Writes:
    """The names of the calls so far; the one at `fails_at`, counted from 0, raises `error`.

    With `on`, all later calls raise it as well, as on a disk that stays full.
    """

    def __init__(self, error: BaseException, fails_at: int | None, *, on: bool = False) -> None:
        self.error, self.fails_at, self.on = error, fails_at, on
        self.made: list[str] = []

    @property
    def have_failed(self) -> bool:
        """Whether a call has failed."""
        return self.fails_at is not None and len(self.made) > self.fails_at

    def note(self, name: str) -> None:
        """Note a call, which fails here if it is to."""
        self.made.append(name)
        if self.have_failed and (self.on or len(self.made) == 1 + self.fails_at):
            raise self.error


@contextmanager
def failing_writes(
    error: BaseException,
    fails_at: int | None,
    *,
    on: bool = False,
    methods: Mapping[Any, str] = ALL,
) -> Iterator[Writes]:
    """Let a write of the `with` block fail, or none but note them; see `Writes`."""
    writes = Writes(error, fails_at, on=on)
    with pytest.MonkeyPatch.context() as patch:
        for owner, names in methods.items():
            for name in names.split():
                patch.setattr(owner, name, _noted(getattr(owner, name), writes))
        yield writes


def _noted(method: Any, writes: Writes) -> Any:
    @wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        writes.note(method.__name__)
        return method(*args, **kwargs)

    @wraps(method)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        writes.note(method.__name__)
        return await method(*args, **kwargs)

    return awaited if iscoroutinefunction(method) else called
