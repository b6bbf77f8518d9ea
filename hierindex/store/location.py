"""Where a table is, and the way to it."""

import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from hierindex.errors import InputError
from hierindex.store.turns import turn

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import AsyncConnection, DBConnection
    from lancedb.table import AsyncTable


creating = Lock()
LOCK = ".create.lock"  # a file of the folder, while a process makes a table there
OS_CODE = re.compile(r"\bos error (\d+)|\bOs \{ code: (\d+)")  # as Rust writes it


class Location:
    """One table of a LanceDB database; connected to when first asked.

    Parameters
    ----------
    uri : str
        A folder, or a URI of an object store.
    table_name : str
    storage_options : dict[str, str], optional
        Of the object store: credentials, region, endpoint. They are in no repr.

    Raises
    ------
    InputError
        If there is a file in the folder's place, or no way to the folder.
    """

    def __init__(
        self, uri: str, table_name: str, storage_options: dict[str, str] | None = None
    ) -> None:
        self.uri = uri
        self.table_name = table_name
        self._storage_options = storage_options
        self._connection: AsyncConnection | None = None
        self._folder = None if "://" in uri else Path(uri).absolute()
        with self.named_refusals():
            if self._folder is not None and self._folder.is_file():
                raise InputError(f"An index is a folder, {uri!r} is a file; name another.")

    @property
    def database(self) -> str:
        """What LanceDB connects to; it would take a folder "db1" for its cloud's name."""
        return self.uri if self._folder is None else str(self._folder)

    def client(self) -> "DBConnection":
        """A connection for sync use."""
        import lancedb

        return lancedb.connect(self.database, storage_options=self._storage_options)

    async def connect(self) -> "AsyncConnection":
        """The connection, made once."""
        if self._connection is None:
            import lancedb

            self._connection = await lancedb.connect_async(
                self.database, storage_options=self._storage_options
            )
        return self._connection

    async def table(self) -> "AsyncTable | None":
        """The table as it is now, None where there is none."""
        if self._folder is not None and not self._folder.is_dir():  # connecting would create it
            return None
        with self.named_refusals():
            try:
                return await (await self.connect()).open_table(self.table_name)
            except ValueError as error:
                if "not found" in str(error):
                    return None
                raise

    @contextmanager
    def named_refusals(self) -> Iterator[None]:
        """While the index is read or written: what the operating system refuses, as one sentence.

        Raises
        ------
        InputError
            If the disk is full, the folder cannot be entered, and so on; names the index.
        """
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:
            said = OS_CODE.search(str(error))
            code = int(said[1] or said[2]) if said else getattr(error, "errno", None)
            if code is None:
                raise
            why = os.strerror(code)
            raise InputError(f"The index {self.uri!r} cannot be used: {why}.") from error

    async def create(self, rows: "pa.Table") -> bool:
        """Make the table of these rows, unless there is one by now.

        Of two that make one table at once, LanceDB lets the second overwrite the first; here
        they take turns, also processes, if they share a disk.
        """
        async with turn(creating), self._alone():
            if await self.table() is not None:
                return False
            await (await self.connect()).create_table(self.table_name, rows)
            return True

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Where no other process makes a table in this folder."""
        if self._folder is None:
            yield
            return
        from filelock import AsyncFileLock

        self._folder.mkdir(parents=True, exist_ok=True)
        async with AsyncFileLock(self._folder / LOCK):
            yield
