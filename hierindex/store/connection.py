"""The connection to a LanceDB database, its errors as one-sentence messages, and the write lock."""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from socket import gethostname
from threading import Lock, get_ident
from typing import TYPE_CHECKING
from unicodedata import category

from hierindex.errors import HierindexError, IndexNotFoundError, InputError

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import Table

TABLE = "nodes"  # name of the table
OS_CODE = re.compile(r"\bos error (\d+)|\bOs \{ code: (\d+)")  # as Rust writes it
CONFLICT = re.compile(  # as LanceDB writes it
    r"(commit|ref) conflict|incompatible transaction|concurrent writers|^table '.*' already exists",
    re.IGNORECASE,
)
LANCEDB = (OSError, RuntimeError, ValueError)  # errors that it raises
PANIC = "RustPanic"  # another one, which cannot be imported
NAMED = re.compile("lance error|LanceError|Lance file|rust future panicked")
MISSING = re.compile(r"Not found: (?:[^,]*?/)?([^,/]+\.lance/[^,]+)")
RUST = re.compile(r"lance error: |,? /\S+\.rs:[\d:]+")  # also places in its source code

LOCK = ".writer.lock"  # locked by the operating system, which frees it when the process ends
HOLDER = ".writer"  # describes the writer; one that fails or is killed leaves it behind
PATIENCE = 60.0  # seconds that a short write waits for other writers
A_MOMENT = 0.005  # seconds between two attempts


class AccessError(InputError):
    """The operating system or another writer prevents access; a write may be incomplete."""


class Connection:
    """A connection to the LanceDB database of an index, made on first use.

    Parameters
    ----------
    uri : str
        A folder, or a URI of an object store.
    storage_options : dict[str, str], optional
        Credentials, region and endpoint of the object store; never part of a repr.

    Raises
    ------
    InputError
        If `uri` is empty or a file, or has characters that LanceDB cannot take.
    """

    def __init__(self, uri: str, storage_options: dict[str, str] | None = None) -> None:
        self.uri = uri
        self.storage_options = storage_options
        self._connection: DBConnection | None = None
        self.folder: Path | None = None if "://" in uri else Path(uri).absolute()
        # LanceDB takes a bare "db1" for a cloud database.
        self._database = uri if self.folder is None else str(self.folder)
        if not uri:
            raise InputError("The index is an empty string; use '.' for the working directory.")
        if any(category(character) in ("Cc", "Cs") for character in self._database):
            raise InputError(
                f"LanceDB cannot open a folder with such a name: {self._database!r}; "
                "name another folder."
            )
        with self.access_errors():
            is_file = self.folder is not None and self.folder.is_file()
        if is_file:
            raise InputError(f"An index must be a folder, but {uri!r} is a file; name a folder.")

    def require(self) -> None:
        """Raise IndexNotFoundError if the folder has no table; nothing is imported."""
        with self.access_errors():
            has_table = self.folder is None or Path(self.folder, f"{TABLE}.lance").is_dir()
        if not has_table:
            raise IndexNotFoundError.at(self.uri)

    def connect(self) -> "DBConnection":
        """Return the connection, which is created on first use."""
        if self._connection is None:
            import lancedb

            self._connection = lancedb.connect(self._database, storage_options=self.storage_options)
        return self._connection

    def open(self) -> "Table | None":
        """Open the newest version of the table, published or not; None if it does not exist."""
        if self.folder is not None and not self.folder.is_dir():  # connecting would create it
            return None
        with self.access_errors():
            try:
                return self.connect().open_table(TABLE)
            except ValueError as error:
                if "not found" in str(error):
                    return None
                raise

    def conflict(self) -> AccessError:
        """Return the error for the second of two concurrent writers."""
        return AccessError(
            f"The index {self.uri!r} was written by another process at the same time; try again."
        )

    @contextmanager
    def access_errors(self) -> Iterator[None]:
        """Turn errors of the operating system or of concurrent writes into one-sentence messages.

        Raises
        ------
        AccessError
            If the disk is full, the folder cannot be entered, and so on.
        """
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:
            if CONFLICT.search(str(error)):
                raise self.conflict() from error
            said = OS_CODE.search(str(error))
            code = int(said[1] or said[2]) if said else getattr(error, "errno", None)
            if code is None:
                raise
            reason = os.strerror(code)
            raise AccessError(f"The index {self.uri!r} cannot be used: {reason}.") from error


class DamagedError(HierindexError):
    """A file of the index is missing, truncated or overwritten.

    `file` is its path in the folder of the index if it is missing, else empty. `reason` is
    LanceDB's message.
    """

    def __init__(self, error: Exception) -> None:
        missing = MISSING.search(str(error))
        self.file: str = missing[1] if missing else ""
        self.reason: str = RUST.sub("", (str(error).splitlines() or [""])[0])
        what = f"the file {self.file} is missing" if self.file else f"LanceDB says {self.reason!r}"
        super().__init__(
            f"The index is damaged: {what}. Run `hierindex verify`; it lists all damage and what "
            "repairs it."
        )


def damage(error: Exception) -> DamagedError | None:
    """Convert an error of LanceDB to one about a damaged index; None if it is another error."""
    if not isinstance(error, LANCEDB) and type(error).__name__ != PANIC:
        return None
    return DamagedError(error) if NAMED.search(str(error)) else None


@contextmanager
def damages() -> Iterator[None]:
    """Turn errors of LanceDB about a damaged index into DamagedError."""
    try:
        yield
    except Exception as error:
        if found := damage(error):
            raise found from error
        raise


_remote: defaultdict[str, Lock] = defaultdict(Lock)  # by URI; writers of this process only


class WriteLock:
    """The write lock of an index; one writer at a time holds it, in one thread.

    In an object store, it excludes the writers of this process. Writers of other processes fail
    when they write, see `check_alone` and `Table`.

    Parameters
    ----------
    connection : Connection
    recover : callable
        Undoes the unfinished work of a failed writer.
    newest : callable
        Returns the number of the newest generation.

    Attributes
    ----------
    what : str
        What the writer does, such as "build".
    generation : int
        The newest generation that the writer knows, in an object store.
    """

    def __init__(
        self, connection: Connection, recover: Callable[[], None], newest: Callable[[], int]
    ) -> None:
        self.what: str = ""
        self.generation: int = 0
        self._connection = connection
        self._recover = recover
        self._newest = newest
        self._thread: int | None = None  # of the writer

    def check_alone(self, newest: int) -> None:
        """Raise AccessError if another process has published a newer generation.

        In a folder, the lock makes this impossible.
        """
        if self._connection.folder is None and newest != self.generation:
            raise self._connection.conflict()

    @contextmanager
    def held(self, what: str, patience: float | None = None) -> Iterator[None]:
        """Hold the lock during a `with` block, which may be nested.

        Parameters
        ----------
        what : str
            Shown to a writer that is refused, and in `generations`.
        patience : float, optional
            Seconds to wait for other writers; by default a minute.

        Raises
        ------
        InputError
            If another writer holds the lock for longer than `patience`.
        """
        if self._thread == get_ident():
            yield
            return
        patience = PATIENCE if patience is None else patience
        folder = self._connection.folder
        with self._alone_here(patience) if folder is None else self._alone(folder, what, patience):
            self._thread, self.what = get_ident(), what
            try:
                yield
            finally:
                self._thread = None

    @contextmanager
    def _alone_here(self, patience: float) -> Iterator[None]:
        """Exclude the writers of this process."""
        lock = _remote[self._connection.uri]
        if not lock.acquire(timeout=patience):
            raise self._refusal()
        try:
            with self._connection.access_errors():
                self.generation = self._newest()
            yield
        finally:
            lock.release()

    @contextmanager
    def _alone(self, folder: Path, what: str, patience: float) -> Iterator[None]:
        """Exclude all writers; a folder that is new and still empty at the end is removed."""
        from filelock import FileLock, Timeout

        new = [path for path in (folder, *folder.parents) if not path.exists()]
        holder, lock = folder / HOLDER, FileLock(folder / LOCK, thread_local=False)
        with self._connection.access_errors():
            folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=patience, poll_interval=A_MOMENT)
            except Timeout:
                who = ""
                with suppress(OSError):  # the other writer begins or ends just now
                    who = holder.read_text()
                raise self._refusal(who) from None
        try:
            with self._connection.access_errors():
                if holder.exists():
                    self._recover()
                host, since = gethostname(), f"{datetime.now():%H:%M}"
                holder.write_text(f"process {os.getpid()} on {host} ({what}, since {since})")
            yield
            holder.unlink(missing_ok=True)
        finally:
            with suppress(OSError):  # the folder may be gone
                if {path.name for path in folder.iterdir()} <= {LOCK, HOLDER}:
                    holder.unlink(missing_ok=True)
                    (folder / LOCK).unlink()
                    for path in new:
                        path.rmdir()
            lock.release()

    def _refusal(self, who: str = "") -> InputError:
        return InputError(
            f"The index {self._connection.uri!r} is being written by {who or 'another process'}; "
            "try again when it has finished."
        )
