"""The lock that the writer of an index holds, and the file that says who holds it."""

import json
import os
import socket
from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from hierindex.errors import InputError

LOCK = ".writer.lock"  # locked by the operating system, which frees it when the process ends
HOLDER = ".writer.json"  # describes the writer; one that fails or is killed leaves it behind

_remote: defaultdict[str, Lock] = defaultdict(Lock)  # by URI; writers of this process only


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
