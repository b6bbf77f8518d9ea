"""Turns to write: one writer at a time, which is told apart from others by what it does."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar

from hierindex.errors import GenerationError, HierindexError
from hierindex.store.connection import AccessError, Connection
from hierindex.store.writer import WriterLock
from hierindex.threads import wait_for

PATIENCE = 60.0  # seconds that a short write waits for other writers
A_MOMENT = 0.005  # seconds

_held: ContextVar[Mapping["Turns", WriterLock]] = ContextVar("held", default={})  # noqa: B039
"""Tables whose lock is held in this context."""


class Turns(Connection):
    """A connection through which one writer writes at a time."""

    @property
    def doing(self) -> str:
        """What the writer does whose turn it is in this context."""
        return _held.get()[self].what

    def check_alone(self, newest: int) -> None:
        """Raise AccessError if the newest generation is one that another process has published.

        In a folder, the lock excludes that.
        """
        if self.folder is None and newest != _held.get()[self].generation:
            raise self.conflict()

    def note_published(self, generation: int) -> None:
        """Note that the writer whose turn it is in this context has published a generation."""
        _held.get()[self].generation = generation

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Exclude all other writers for the `with` block; see `HierarchyStore.writing`."""
        with self._holding(wait_for(self._locked(what, patience=0))):
            yield

    @asynccontextmanager
    async def turn(self, what: str) -> AsyncIterator[None]:
        """Exclude all other writers for a short write, which waits for its turn."""
        if self in _held.get():
            yield
            return
        with self._holding(await self._locked(what, PATIENCE)):
            yield

    @abstractmethod
    async def generations(self) -> list[int]:
        """Return the numbers of the generations that the table holds, in ascending order."""

    @abstractmethod
    async def _recover(self) -> None:
        """Undo what a failed writer has left."""

    async def _locked(self, what: str, patience: float) -> WriterLock:
        """Return the acquired lock of the index; undo what a failed writer has left.

        Raises
        ------
        InputError
            If another writer holds it for longer than some seconds.
        """
        lock, until = WriterLock(self.uri, self.folder, what), time.monotonic() + patience
        with self.named_refusals():
            while not lock.acquire():
                if time.monotonic() >= until:
                    raise lock.refusal()
                await asyncio.sleep(A_MOMENT)
        with ExitStack() as failing:
            failing.callback(lock.release, failed=True)
            if lock.after_failure:
                await self._recover()
            if self.folder is None:
                lock.generation = max(await self.generations(), default=0)
            failing.pop_all()
        return lock

    @contextmanager
    def _holding(self, lock: WriterLock) -> Iterator[None]:
        """Mark the table as being written in this context, and release the lock at the end."""

        def end(kind: type[BaseException] | None, *_: object) -> None:
            # Other errors of hierindex refuse a write before it begins.
            failed = kind is not None and (
                issubclass(kind, AccessError) or not issubclass(kind, HierindexError)
            )
            lock.release(failed=failed)

        with ExitStack() as ending:
            ending.push(end)
            token = _held.set({**_held.get(), self: lock})
            ending.callback(_held.reset, token)
            try:
                yield
            except GenerationError as error:
                if self.folder is None and error.__cause__:  # another writer removed its files
                    raise self.conflict() from error
                raise
