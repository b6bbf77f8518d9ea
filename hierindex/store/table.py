"""One LanceDB table: the way to it, its newest version, and how it is written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from hierindex.errors import InputError
from hierindex.store.indices import tend
from hierindex.store.schema import NAME_KEY, check_dimension, check_format, new_table
from hierindex.store.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import AsyncConnection, DBConnection
    from lancedb.table import AsyncTable

creating = Lock()
A_MOMENT = 0.005  # seconds
LOCK = ".create.lock"  # a file of the folder, while a process makes a table there


class Table:
    """One table of a LanceDB database, which is connected to when it is first used.

    Parameters
    ----------
    uri : str
        A folder, or a URI of an object store.
    name : str
    storage_options : dict[str, str], optional
        Of the object store: credentials, region, endpoint. They are in no repr.

    Raises
    ------
    InputError
        If there is a file in the folder's place.
    """

    def __init__(self, uri: str, name: str, storage_options: dict[str, str] | None = None) -> None:
        self.uri = uri
        self.name = name
        self._storage_options = storage_options
        self._connection: AsyncConnection | None = None
        self._known: tuple[tuple[bytes, int], dict[str, Any]] = ((b"", 0), {})
        self._folder = None if "://" in uri else Path(uri).absolute()
        if self._folder is not None and self._folder.is_file():
            raise InputError(f"An index is a folder, {uri!r} is a file; name another.")

    @property
    def _database(self) -> str:
        """What LanceDB connects to; it would take a folder "db1" for its cloud's name."""
        return self.uri if self._folder is None else str(self._folder)

    def client(self) -> "DBConnection":
        """A connection for sync use."""
        import lancedb

        return lancedb.connect(self._database, storage_options=self._storage_options)

    async def connect(self) -> "AsyncConnection":
        """The connection, made once."""
        if self._connection is None:
            import lancedb

            self._connection = await lancedb.connect_async(
                self._database, storage_options=self._storage_options
            )
        return self._connection

    async def open(self) -> "AsyncTable | None":
        """The newest version of the table, None where there is no table."""
        if self._folder is not None and not self._folder.is_dir():  # connecting would create it
            return None
        try:
            return await (await self.connect()).open_table(self.name)
        except ValueError as error:
            if "not found" in str(error):
                return None
            raise

    async def snapshot(self) -> Snapshot:
        """The newest version, to be read; snapshots of one version share what they have read.

        Raises
        ------
        FormatError
            If another version of hierindex wrote the table.
        """
        table = await self.open()
        if table is None:
            return Snapshot(self.uri)
        columns, version = await asyncio.gather(table.schema(), table.version())
        check_format(columns, self.uri)
        state, (before, known) = (columns.metadata[NAME_KEY], int(version)), self._known
        if state != before:
            known = {}
            self._known = state, known
        return Snapshot(self.uri, table, columns, state, known)

    async def upsert(self, rows: "pa.Table") -> None:
        """Insert rows, replacing those of the same id; the first ones make the table.

        Raises
        ------
        InputError
            If the vectors are of another dimension than the table's.
        FormatError
            If another version of hierindex wrote the table.
        """
        made = None if await self.open() else await self._made_of(new_table(rows))
        await tend(made or await self._merged(rows))

    async def _merged(self, rows: "pa.Table") -> "AsyncTable":
        """The table, which is there, with these rows among the others."""
        table = await self.open()
        assert table is not None
        columns = await table.schema()
        check_format(columns, self.uri)
        check_dimension(columns, rows.schema.field("vector").type.list_size, "the nodes have")
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        await merge.execute(rows)
        return table

    async def replace(self, rows: "pa.Table") -> int:
        """Put rows in the place of all others, in one commit; returns LanceDB's version."""
        exists = await self.open() is not None
        table = await (await self.connect()).create_table(
            self.name, rows, mode="overwrite" if exists else "create"
        )
        await tend(table)
        return int(await table.version())

    async def drop(self) -> None:
        """Delete the table, if there is one."""
        if await self.open() is not None:
            await (await self.connect()).drop_table(self.name)

    async def _made_of(self, rows: "pa.Table") -> "AsyncTable | None":
        """A table made of these rows, None where there is one by now.

        Of two that make one table at once, LanceDB lets the second overwrite the first; here
        they take turns, also processes, if they share a disk.
        """
        async with turn(creating), self._alone():
            if await self.open() is not None:
                return None
            return await (await self.connect()).create_table(self.name, rows)

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


@asynccontextmanager
async def turn(lock: Lock) -> AsyncIterator[None]:
    """Hold a lock of all event loops; wait for it without blocking this one."""
    while not lock.acquire(blocking=False):
        await asyncio.sleep(A_MOMENT)
    try:
        yield
    finally:
        lock.release()
