"""The connection to a LanceDB database, and its errors in plain sentences."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from hierindex.errors import HierindexError, IndexNotFoundError, InputError

if TYPE_CHECKING:
    from lancedb.db import DBConnection
    from lancedb.table import Table

TABLE = "nodes"  # name of the table, by default
OS_CODE = re.compile(r"\bos error (\d+)|\bOs \{ code: (\d+)")  # as Rust writes it
REFUSED = re.compile("[\0-\x1f\x7f\ud800-\udfff]")  # in a path, by LanceDB
CONFLICT = re.compile(  # as LanceDB writes it
    r"(commit|ref) conflict|incompatible transaction|concurrent writers|^table '.*' already exists",
    re.IGNORECASE,
)
LANCEDB = (OSError, RuntimeError, ValueError)  # errors that it raises
PANIC = "RustPanic"  # another one, which cannot be imported
NAMED = re.compile("lance error|LanceError|Lance file|rust future panicked")
MISSING = re.compile(r"Not found: (?:[^,]*?/)?([^,/]+\.lance/[^,]+)")
RUST = re.compile(r"lance error: |,? /\S+\.rs:[\d:]+")  # also places in its source code


class AccessError(InputError):
    """The operating system or another writer prevents an access; a write may be unfinished."""


class Connection:
    """A connection to a LanceDB database, made on first use, that opens one table of it.

    Parameters
    ----------
    uri : str
        A folder, or a URI of an object store.
    name : str
        Of the table.
    storage_options : dict[str, str], optional
        Credentials, region and endpoint of the object store; never part of a repr.

    Raises
    ------
    InputError
        If `uri` is a file, or a folder whose path LanceDB refuses.
    """

    def __init__(self, uri: str, name: str, storage_options: dict[str, str] | None = None) -> None:
        self.uri = uri
        self.name = name
        self._storage_options = storage_options
        self._connection: DBConnection | None = None
        self.folder = None if "://" in uri else Path(uri).absolute()
        # LanceDB takes a bare "db1" for a cloud database.
        self._database = uri if self.folder is None else str(self.folder)
        if REFUSED.search(self._database):
            raise InputError(
                f"The index folder {self._database!r} has a name that is not UTF-8 or has a "
                "control character, such as a line break; name another folder."
            )
        with self.named_refusals():
            is_file = self.folder is not None and self.folder.is_file()
        if is_file:
            raise InputError(f"An index must be a folder, but {uri!r} is a file; name a folder.")

    def require(self) -> None:
        """Raise IndexNotFoundError if the folder has no table; this imports nothing."""
        with self.named_refusals():
            has_table = self.folder is None or Path(self.folder, f"{self.name}.lance").is_dir()
        if not has_table:
            raise IndexNotFoundError.at(self.uri)

    @property
    def parameters(self) -> tuple[str, str, dict[str, str] | None]:
        """What another process needs for the same connection."""
        return self._database, self.name, self._storage_options

    def connect(self) -> "DBConnection":
        """Return the connection, which is created on first use."""
        if self._connection is None:
            import lancedb

            self._connection = lancedb.connect(
                self._database, storage_options=self._storage_options
            )
        return self._connection

    def open(self) -> "Table | None":
        """Open the newest version of the table, published or not; None if it does not exist."""
        if self.folder is not None and not self.folder.is_dir():  # connecting would create it
            return None
        with self.named_refusals():
            try:
                return self.connect().open_table(self.name)
            except ValueError as error:
                if "not found" in str(error):
                    return None
                raise

    def temporary_file(self) -> IO[bytes]:
        """Open a file without a name, which vanishes with its process.

        It lies in the folder of the index, which needs room for what is built anyway. While there
        is no folder, and for an object store, it lies where the system keeps temporary files.
        """
        folder = self.folder if self.folder is not None and self.folder.is_dir() else None
        return TemporaryFile(buffering=0, dir=folder)

    def conflict(self) -> AccessError:
        """Return the error of the second of two writers."""
        return AccessError(
            f"The index {self.uri!r} was written by another process at the same time; try again."
        )

    @contextmanager
    def named_refusals(self) -> Iterator[None]:
        """Turn what the operating system or another writer prevents into one sentence.

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
        self.file = missing[1] if missing else ""
        self.reason = RUST.sub("", (str(error).splitlines() or [""])[0])
        what = f"the file {self.file} is missing" if self.file else f"LanceDB says {self.reason!r}"
        super().__init__(
            f"The index is damaged: {what}. Run `hierindex verify`; it lists all damage and what "
            "repairs it."
        )


def damage(error: Exception) -> DamagedError | None:
    """Return the error of LanceDB as one of a damaged index; None if it is another one."""
    if not isinstance(error, LANCEDB) and type(error).__name__ != PANIC:
        return None
    return DamagedError(error) if NAMED.search(str(error)) else None


@contextmanager
def damages() -> Iterator[None]:
    """Raise DamagedError for any error of LanceDB; use it around calls of LanceDB alone."""
    try:
        yield
    except HierindexError:
        raise
    except Exception as error:
        if isinstance(error, LANCEDB) or type(error).__name__ == PANIC:
            raise DamagedError(error) from error
        raise
