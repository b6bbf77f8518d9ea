"""A LanceDB table: its connection, its newest version, and writes to it."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
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
LOCK = ".create.lock"  # file that a process locks while it creates a table
OS_CODE = re.compile(r"\bos error (\d+)|\bOs \{ code: (\d+)")  # as Rust writes it


class Table:
    """A table of a LanceDB database, connected to on first use.

    Parameters
    ----------
    uri : str
        A folder, or a URI of an object store.
    name : str
    storage_options : dict[str, str], optional
        Credentials, region and endpoint of the object store; never part of a repr.

    Raises
    ------
    InputError
        If `uri` is a file.
    """

    def __init__(self, uri: str, name: str, storage_options: dict[str, str] | None = None) -> None:
        self.uri = uri
        self.name = name
        self._storage_options = storage_options
        self._connection: AsyncConnection | None = None
        self._known: tuple[tuple[bytes, int], dict[str, Any]] = ((b"", 0), {})
        self._folder = None if "://" in uri else Path(uri).absolute()
        # LanceDB takes a bare "db1" for a cloud database.
        self._database = uri if self._folder is None else str(self._folder)
        with self.named_refusals():
            is_file = self._folder is not None and self._folder.is_file()
        if is_file:
            raise InputError(f"An index must be a folder, but {uri!r} is a file; name a folder.")

    def client(self) -> "DBConnection":
        """Return a sync connection."""
        import lancedb

        return lancedb.connect(self._database, storage_options=self._storage_options)

    async def connect(self) -> "AsyncConnection":
        """Return the connection, which is created on first use."""
        if self._connection is None:
            import lancedb

            self._connection = await lancedb.connect_async(
                self._database, storage_options=self._storage_options
            )
        return self._connection

    async def open(self) -> "AsyncTable | None":
        """Open the newest version of the table; None if it does not exist."""
        if self._folder is not None and not self._folder.is_dir():  # connecting would create it
            return None
        with self.named_refusals():
            try:
                return await (await self.connect()).open_table(self.name)
            except ValueError as error:
                if "not found" in str(error):
                    return None
                raise

    @contextmanager
    def named_refusals(self) -> Iterator[None]:
        """Turn what the operating system refuses into one sentence.

        Raises
        ------
        InputError
            If the disk is full, the folder cannot be entered, and so on.
        """
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:
            said = OS_CODE.search(str(error))
            code = int(said[1] or said[2]) if said else getattr(error, "errno", None)
            if code is None:
                raise
            reason = os.strerror(code)
            raise InputError(f"The index {self.uri!r} cannot be used: {reason}.") from error

    async def snapshot(self) -> Snapshot:
        """Return the newest version for reading; snapshots of one version share a cache.

        Raises
        ------
        FormatError
            If another version of hierindex wrote the table.
        """
        table = await self.open()
        if table is None:
            return Snapshot(self.uri)
        with self.named_refusals():
            columns, version = await asyncio.gather(table.schema(), table.version())
        check_format(columns, self.uri)
        state, (before, known) = (columns.metadata[NAME_KEY], int(version)), self._known
        if state != before:
            known = {}
            self._known = state, known
        return Snapshot(self.uri, table, columns, state, known)

    async def upsert(self, rows: "pa.Table") -> None:
        """Insert rows, replacing those with the same id, and create the table if needed.

        Raises
        ------
        InputError
            If the vectors have another dimension than the table's.
        FormatError
            If another version of hierindex wrote the table.
        """
        with self.named_refusals():
            table = await self.open()
            if table is None and (created := await self._created(new_table(rows))):
                await tend(created)
                return
            table = table or await self.open()
            assert table is not None
            columns = await table.schema()
            check_format(columns, self.uri)
            check_dimension(columns, rows.schema.field("vector").type.list_size, "the nodes have")
            merge = table.merge_insert("id").when_matched_update_all()
            await merge.when_not_matched_insert_all().execute(rows)
            await tend(table)

    async def replace(self, rows: "pa.Table") -> int:
        """Replace all rows in one commit and return LanceDB's version number."""
        with self.named_refusals():
            exists = await self.open() is not None
            table = await (await self.connect()).create_table(
                self.name, rows, mode="overwrite" if exists else "create"
            )
            await tend(table)
            return int(await table.version())

    async def drop(self) -> None:
        """Drop the table if it exists."""
        with self.named_refusals():
            if await self.open() is not None:
                await (await self.connect()).drop_table(self.name)

    async def _created(self, rows: "pa.Table") -> "AsyncTable | None":
        """Create the table in one commit, unless another writer has created it by now."""
        # LanceDB lets the second of two concurrent creations overwrite the first.
        async with turn(creating), self._alone():
            if await self.open() is not None:
                return None
            return await (await self.connect()).create_table(self.name, rows)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Exclude other processes that create a table in this folder."""
        if self._folder is None:
            yield
            return
        from filelock import AsyncFileLock

        self._folder.mkdir(parents=True, exist_ok=True)
        async with AsyncFileLock(self._folder / LOCK):
            yield


@asynccontextmanager
async def turn(lock: Lock) -> AsyncIterator[None]:
    """Hold a lock shared by all event loops, and wait for it without blocking this one."""
    while not lock.acquire(blocking=False):
        await asyncio.sleep(A_MOMENT)
    try:
        yield
    finally:
        lock.release()
