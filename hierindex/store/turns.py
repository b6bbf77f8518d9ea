"""Turns to write: one writer at a time, which holds the lock of the index."""

import json
import os
import socket
import time
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from hierindex.errors import GenerationError, HierindexError, InputError
from hierindex.store.connection import AccessError, Connection

LOCK = ".writer.lock"  # locked by the operating system, which frees it when the process ends
HOLDER = ".writer.json"  # describes the writer; one that fails or is killed leaves it behind
PATIENCE = 60.0  # seconds that a short write waits for other writers
A_MOMENT = 0.005  # seconds

_remote: defaultdict[str, Lock] = defaultdict(Lock)  # by URI; writers of this process only
_held: ContextVar[Mapping["Turns", "WriterLock"]] = ContextVar("held", default={})  # noqa: B039
"""Tables whose lock is held in this context."""


class WriterLock:
    """A lock that excludes all other writers of an index.

    In an object store, it excludes the writers of this process. Those of other processes are
    stopped when they write, see `Turns.check_alone` and `Table`.

    Parameters
    ----------
    uri : str
        Of the index, for error messages.
    folder : Path or None
        Folder of the index; None for an object store.
    what : str
        What the writer does, for other writers to read.
    """

    def __init__(self, uri: str, folder: Path | None, what: str) -> None:
        self.what = what
        self.after_failure = False  # whether the last writer was killed or has failed
        self.generation = 0  # the newest, of an object store
        self._uri = uri
        self._folder = folder
        self._made: list[Path] = []  # folders

    def acquire(self) -> bool:
        """Return whether the lock is acquired now; this never waits.

        Raises
        ------
        OSError
            If the folder cannot be written.
        """
        if self._folder is None:
            return _remote[self._uri].acquire(blocking=False)
        from filelock import FileLock, Timeout

        folders = (self._folder, *self._folder.parents)
        self._made = [*self._made, *(path for path in folders if not path.exists())]
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file = FileLock(self._folder / LOCK, thread_local=False)
        try:
            self._file.acquire(blocking=False)
        except Timeout:
            return False
        holder = self._folder / HOLDER
        self.after_failure = holder.exists()
        writer = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "what": self.what,
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        try:
            holder.write_text(json.dumps(writer))
        except OSError:
            self._file.release()
            raise
        return True

    def release(self, *, failed: bool = False) -> None:
        """Release the lock, and remove the folders that were made for it if they stay empty.

        The next writer tidies up what a failed one has left.
        """
        if self._folder is None:
            _remote[self._uri].release()
            return
        with suppress(OSError):  # the folder may be gone, or another writer may have come
            if not failed:
                (self._folder / HOLDER).unlink(missing_ok=True)
            if [path.name for path in self._folder.iterdir()] == [LOCK]:
                (self._folder / LOCK).unlink()
                for folder in self._made:
                    folder.rmdir()
        self._file.release()

    def refusal(self) -> InputError:
        """Return an error that names the writer that holds the lock."""
        who = "another process"
        if self._folder is not None:
            try:
                writer = json.loads((self._folder / HOLDER).read_text())
                since = datetime.fromisoformat(writer["since"]).astimezone()
                who = (
                    f"process {writer['process']} on {writer['host']} "
                    f"({writer['what']}, since {since:%H:%M})"
                )
            except (OSError, ValueError, TypeError, KeyError):  # begins or ends at this moment
                pass
        return InputError(
            f"The index {self._uri!r} is being written by {who}; try again when it has finished."
        )


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
        with self._holding(self._locked(what, patience=0)):
            yield

    @contextmanager
    def turn(self, what: str) -> Iterator[None]:
        """Exclude all other writers for a short write, which waits for its turn."""
        if self in _held.get():
            yield
            return
        with self._holding(self._locked(what, PATIENCE)):
            yield

    @abstractmethod
    def generations(self) -> list[int]:
        """Return the numbers of the generations that the table holds, in ascending order."""

    @abstractmethod
    def _recover(self) -> None:
        """Undo what a failed writer has left."""

    def _locked(self, what: str, patience: float) -> WriterLock:
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
                time.sleep(A_MOMENT)
        with ExitStack() as failing:
            failing.callback(lock.release, failed=True)
            if lock.after_failure:
                self._recover()
            if self.folder is None:
                lock.generation = max(self.generations(), default=0)
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
