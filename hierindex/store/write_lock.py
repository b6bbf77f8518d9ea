"""The write lock of an index."""

import json
import os
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock, RLock

from hierindex.errors import GenerationError, HierindexError, InputError
from hierindex.store.connection import AccessError, Connection

LOCK = ".writer.lock"  # locked by the operating system, which frees it when the process ends
HOLDER = ".writer.json"  # describes the writer; one that fails or is killed leaves it behind
PATIENCE = 60.0  # seconds that a short write waits for other writers
A_MOMENT = 0.005  # seconds

_remote: defaultdict[str, Lock] = defaultdict(Lock)  # by URI; writers of this process only
_held: ContextVar[Mapping["WriteLock", "Writer"]] = ContextVar("held", default={})  # noqa: B039
"""Locks that are held in this context, and by whom."""


class Writer:
    """A writer that waits for the lock of an index, or holds it.

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
        self.one_write = RLock()  # of threads that this writer has started
        self.is_released = False

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


class WriteLock:
    """The lock of an index, which one writer at a time holds.

    In an object store, it excludes the writers of this process. Those of other processes are
    stopped when they write, see `check_alone` and `Table`.

    Parameters
    ----------
    connection : Connection
    recover : callable
        Undoes what a failed writer has left.
    newest : callable
        Returns the number of the newest generation.
    """

    def __init__(
        self, connection: Connection, recover: Callable[[], None], newest: Callable[[], int]
    ) -> None:
        self._connection = connection
        self._recover = recover
        self._newest = newest

    @property
    def writer(self) -> Writer:
        """The writer that holds the lock in this context."""
        return _held.get()[self]

    def check_alone(self, newest: int) -> None:
        """Raise AccessError if the newest generation is one that another process has published.

        In a folder, the lock excludes that.
        """
        if self._connection.folder is None and newest != self.writer.generation:
            raise self._connection.conflict()

    @contextmanager
    def held(self, what: str, patience: float | None = None) -> Iterator[None]:
        """Exclude all other writers for the `with` block, which may be inside another one.

        Parameters
        ----------
        what : str
            Shown to a writer that is refused, and in `generations`.
        patience : float, optional
            Seconds to wait for other writers; by default a minute.

        Raises
        ------
        InputError
            If another writer holds the lock for longer.
        """
        outer = _held.get().get(self)
        if outer is not None:
            with outer.one_write:
                if not outer.is_released:  # as where an async write goes on after it was cancelled
                    yield
                    return
        writer = self._acquired(what, PATIENCE if patience is None else patience)

        def end(kind: type[BaseException] | None, *_: object) -> None:
            # Other errors of hierindex refuse a write before it begins.
            failed = kind is not None and (
                issubclass(kind, AccessError) or not issubclass(kind, HierindexError)
            )
            with writer.one_write:
                writer.is_released = True
                writer.release(failed=failed)

        with ExitStack() as ending:
            ending.push(end)
            token = _held.set({**_held.get(), self: writer})
            ending.callback(_held.reset, token)
            try:
                yield
            except GenerationError as error:
                if self._connection.folder is None and error.__cause__:  # another writer removed it
                    raise self._connection.conflict() from error
                raise

    def _acquired(self, what: str, patience: float) -> Writer:
        """Return the writer that holds the lock; undo what a failed one has left."""
        folder, until = self._connection.folder, time.monotonic() + patience
        writer = Writer(self._connection.uri, folder, what)
        with self._connection.named_refusals():
            while not writer.acquire():
                if time.monotonic() >= until:
                    raise writer.refusal()
                time.sleep(A_MOMENT)
        with ExitStack() as failing:
            failing.callback(writer.release, failed=True)
            if writer.after_failure:
                self._recover()
            if folder is None:
                writer.generation = self._newest()
            failing.pop_all()
        return writer
