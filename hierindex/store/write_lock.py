"""The write lock of an index."""

import json
import os
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock, get_ident

from hierindex.errors import GenerationError, HierindexError, InputError
from hierindex.store.connection import AccessError, Connection

LOCK = ".writer.lock"  # locked by the operating system, which frees it when the process ends
HOLDER = ".writer.json"  # describes the writer; one that fails or is killed leaves it behind
PATIENCE = 60.0  # seconds that a short write waits for other writers
A_MOMENT = 0.005  # seconds between two attempts

_remote: defaultdict[str, Lock] = defaultdict(Lock)  # by URI; writers of this process only


class WriteLock:
    """The lock of an index, which one writer at a time holds, in one thread.

    In an object store, it excludes the writers of this process. Those of other processes are
    stopped when they write, see `check_alone` and `Table`.

    Parameters
    ----------
    connection : Connection
    recover : callable
        Undoes what a failed writer has left.
    newest : callable
        Returns the number of the newest generation.

    Attributes
    ----------
    what : str
        What the writer does.
    generation : int
        The newest that the writer knows, of an object store.
    """

    def __init__(
        self, connection: Connection, recover: Callable[[], None], newest: Callable[[], int]
    ) -> None:
        self.what = ""
        self.generation = 0
        self._connection = connection
        self._recover = recover
        self._newest = newest
        self._thread: int | None = None  # of the writer

    def check_alone(self, newest: int) -> None:
        """Raise AccessError if the newest generation is one that another process has published.

        In a folder, the lock excludes that.
        """
        if self._connection.folder is None and newest != self.generation:
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
        if self._thread == get_ident():
            yield
            return
        is_remote = self._connection.folder is None
        with self._connection.named_refusals():
            release, is_left = self._acquired(what, PATIENCE if patience is None else patience)
        failed = True
        try:
            self._thread, self.what = get_ident(), what
            if is_left:
                self._recover()
            if is_remote:
                self.generation = self._newest()
            yield
            failed = False
        except HierindexError as error:
            failed = isinstance(error, AccessError)  # others refuse a write before it begins
            if is_remote and isinstance(error, GenerationError) and error.__cause__:
                raise self._connection.conflict() from error  # another writer removed it
            raise
        finally:
            self._thread = None
            release(failed)

    def _acquired(self, what: str, patience: float) -> tuple[Callable[[bool], None], bool]:
        """Acquire the lock; return what releases it, and whether a failed writer has left it."""
        folder = self._connection.folder
        if folder is None:
            lock = _remote[self._connection.uri]
            if not lock.acquire(timeout=patience):
                raise self._refusal(None)
            return lambda _: lock.release(), False
        from filelock import FileLock, Timeout

        new = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        file, holder = FileLock(folder / LOCK, thread_local=False), folder / HOLDER
        try:
            file.acquire(timeout=patience, poll_interval=A_MOMENT)
        except Timeout:
            raise self._refusal(holder) from None
        is_left = holder.exists()
        writer = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "what": what,
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        try:
            holder.write_text(json.dumps(writer))
        except OSError:
            file.release()
            raise

        def release(failed: bool) -> None:
            with suppress(OSError):  # the folder may be gone, or another writer may have come
                if not failed:  # or else the next writer tidies up
                    holder.unlink(missing_ok=True)
                if [path.name for path in folder.iterdir()] == [LOCK]:
                    (folder / LOCK).unlink()
                    for path in new:
                        path.rmdir()
            file.release()

        return release, is_left

    def _refusal(self, holder: Path | None) -> InputError:
        """Return an error that names the writer that holds the lock."""
        who = "another process"
        if holder is not None:
            with suppress(OSError, ValueError, TypeError, KeyError):  # it begins or ends just now
                writer = json.loads(holder.read_text())
                since = datetime.fromisoformat(writer["since"]).astimezone()
                who = (
                    f"process {writer['process']} on {writer['host']} "
                    f"({writer['what']}, since {since:%H:%M})"
                )
        return InputError(
            f"The index {self._connection.uri!r} is being written by {who}; try again when it has "
            "finished."
        )
