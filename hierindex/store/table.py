"""The table of an index: its generations, and writing to it."""

import logging
import sqlite3
from collections.abc import Collection, Iterator, Set
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from hierindex.cache import cache_file, remove, sweep
from hierindex.core.identity import hash_text
from hierindex.errors import FormatError, GenerationError, InputError
from hierindex.store.connection import TABLE, Connection, WriteLock
from hierindex.store.filters import by_ids
from hierindex.store.generations import (
    ADDED,
    claim,
    details_of,
    keep_last,
    now,
    on_newest,
    prune,
    publish,
    published,
    removals,
    renew,
    times,
)
from hierindex.store.rows import (
    NAME_KEY,
    NAMES,
    check_dimension,
    check_format,
    identity,
    schema,
)
from hierindex.store.search import maintain
from hierindex.store.snapshot import Snapshot, generation_json

if TYPE_CHECKING:
    from lancedb.table import Table as LanceTable

logger: logging.Logger = logging.getLogger(__name__)

PURGED = "purge"  # entry of details: all earlier generations are removed


class Table:
    """The table of an index, with several generations.

    In an object store, no lock excludes the writers of other processes, so the second of two
    writers fails. It may find a newer generation than when it took the lock. LanceDB may refuse its
    commit, because each writer's first commit is exclusive. Or its generation may already exist.

    Parameters
    ----------
    connection : Connection
    keep : int
        Number of generations to keep after a write.
    """

    def __init__(self, connection: Connection, keep: int = 2) -> None:
        self.connection = connection
        self._only: Snapshot | None = None
        self.lock: WriteLock = WriteLock(connection, self._recover, self.newest)
        self.keep = keep
        self._known: tuple[tuple[bytes, int], dict[str, Any]] = ((b"", 0), {})

    @classmethod
    def of(cls, uri: str | Path) -> Self:
        """Return the table of an index; nothing is read."""
        return cls(Connection(str(uri)))

    @property
    def uri(self) -> str:
        """Address of the index."""
        return self.connection.uri

    def at(self, snapshot: Snapshot) -> Self:
        """Return a read-only copy of this table that always reads the given snapshot."""
        table = copy(self)
        table._only = snapshot
        return table

    @on_newest
    def snapshot(self, generation: int | None = None) -> Snapshot:
        """Return a generation, by default the newest; its snapshots share a cache.

        Raises
        ------
        GenerationError
            If the table does not hold this generation.
        FormatError
            If another version of hierindex wrote the table.
        """
        if self._only is not None and generation is None:
            return self._only
        with self.connection.access_errors():
            table = self.connection.open()
            held = {} if table is None else published(table)
            wanted = max(held, default=0) if generation is None else generation
            if generation is not None and generation not in held:
                raise GenerationError(
                    f"The index {self.connection.uri!r} does not hold generation {generation}; "
                    f"it holds {', '.join(map(str, held)) or 'none'}."
                )
            if table is None:
                return Snapshot(self.connection.uri)
            if held:
                with removals():
                    if table.version != held[wanted]:
                        table.checkout(held[wanted])
            columns = table.schema
        check_format(columns, self.connection.uri)
        if not held:  # its first writer was killed or is still writing
            return Snapshot(self.connection.uri)
        state, (cached, known) = (columns.metadata[NAME_KEY], wanted), self._known
        if state != cached:
            known = {}
            self._known = state, known
        return Snapshot(self.connection.uri, table, columns, state, known)

    def generations(self) -> list[int]:
        """Return the numbers of the generations that the table holds, in ascending order."""
        with self.connection.access_errors():
            table = self.connection.open()
            return [] if table is None else [*published(table)]

    def newest(self) -> int:
        """Return the number of the newest generation; 0 if there is none."""
        return max(self.generations(), default=0)

    @on_newest
    def history(self) -> list[dict[str, Any]]:
        """Return the generations as `generation_json` describes them, the oldest first."""
        return [generation_json(self.snapshot(number)) for number in self.generations()]

    def writing(self, what: str, patience: float | None = 0) -> AbstractContextManager[None]:
        """Exclude all other writers during a `with` block, in which this table can be written.

        Parameters
        ----------
        what : str
            The kind of write, such as "build"; shown to other writers and in `generations`.
        patience : float or None
            Seconds to wait for another writer; see `WriteLock.held`.

        Raises
        ------
        InputError
            If this table is read-only, see `at`, or another writer holds the lock; the message says
            what it does.
        """
        if self._only is not None:
            raise InputError(
                "A snapshot is read-only; write with the store from which it was taken."
            )
        return self.lock.held(what, patience)

    def upsert(self, rows: pa.Table, *, alone: bool = False) -> None:
        """Insert rows, replacing those with the same id, and publish the table.

        With `alone`, they replace all rows.

        Raises
        ------
        InputError
            If the vectors have another dimension than the table's.
        FormatError
            If another version of hierindex wrote the table.
        """
        with self._continued("add") as (table, held):
            report = {} if table is None else details_of(table.schema).get("report", {})
            if table is not None:
                n_dims = rows.schema.field("vector").type.list_size
                check_dimension(table.schema, n_dims, "the nodes have")
            if table is None or alone:  # not by a merge, which puts them in any order
                changes = {"nodes_added": rows.num_rows}
                table = self._overwritten(rows.to_reader())
            else:
                merge = table.merge_insert("id").when_matched_update_all()
                done = merge.when_not_matched_insert_all().execute(rows)
                changes = {
                    "nodes_added": done.num_inserted_rows,
                    "nodes_changed": done.num_updated_rows,
                }
            self._publish(table, max(held, default=0), changes, report, added=True)

    def mend_indices(self) -> None:
        """Create all indices again and publish the table."""
        with self._continued("repair") as (table, held):
            assert table is not None  # it was checked
            for index in table.list_indices():
                table.drop_index(index.name)
            self._publish(table, max(held), {})  # which makes those that pay off

    def replace(
        self,
        rows: pa.RecordBatchReader | None,
        report: dict[str, Any],
        *,
        changes: dict[str, int] | None = None,
        purge: bool = False,
    ) -> int:
        """Replace all rows, publish the table and return the generation, 1 for the first.

        A reader sees the old tree or the new one, never a mixture.

        Parameters
        ----------
        rows : RecordBatchReader or None
            The new rows; None if there are none.
        report : dict
            Report of the build, stored with the rows; see `Snapshot.report`.
        changes : dict, optional
            Numbers by kind of change, shown by `generations`; by default those of the report.
        purge : bool
            Whether to remove all earlier generations, so that no file contains their text.

        Raises
        ------
        InputError
            If there are no rows.
        """
        if rows is None:
            raise InputError("There are no nodes to write.")
        changes = report.get("changes", {}) if changes is None else changes
        with self.writing("build", None), self.connection.access_errors():
            newest = self.newest()
            self.lock.check_alone(newest)
            return self._publish(self._overwritten(rows), newest, changes, report, purge=purge)

    def revise(
        self,
        rows: pa.Table | None,
        gone: Collection[str],
        report: dict[str, Any],
        *,
        changes: dict[str, int] | None = None,
        purge: bool = False,
    ) -> int:
        """Write rows by id, delete others, publish the table and return the generation.

        Parameters
        ----------
        rows : Table, optional
        gone : Collection[str]
            Ids of the rows to delete.
        report, changes, purge
            See `replace`.
        """
        away = {*gone, *([] if rows is None else rows["id"].to_pylist())}
        if purge:
            every = _with_the_rest(rows, away, self.snapshot())
            return self.replace(every, report, changes=changes, purge=purge)
        with self._continued("update") as (table, held):
            assert table is not None  # it was read
            table.delete(by_ids(away).sql)
            if rows is not None:  # not by a merge, which puts them in any order
                table.add(rows)
            return self._publish(table, max(held), report.get("changes", {}), report)

    def rollback(self, generation: int | None = None) -> int:
        """Publish an earlier generation, by default the previous one, under a new number."""
        self.snapshot().require()
        with self._continued("rollback") as (table, held):
            assert table is not None  # the snapshot exists
            self.snapshot(generation)  # raises if it is not held
            (*earlier, newest), uri = held, self.connection.uri
            if not earlier:
                why = ", as a write or a deletion removed earlier ones" if newest > 1 else ""
                raise InputError(f"The index {uri!r} holds no generation before {newest}{why}.")
            generation = generation or earlier[-1]
            if generation == newest:
                raise InputError(
                    f"Generation {newest} of the index {uri!r} is the current one; name one of "
                    f"{', '.join(map(str, earlier))}."
                )
            table.checkout(held[generation])
            table.restore()
            return self._publish(table, newest, {"generation": generation})

    def drop(self) -> None:
        """Drop the table if it exists."""
        with self.connection.access_errors():
            if self.connection.open() is None:
                return
            with self.writing("clear", None):
                self.connection.connect().drop_table(TABLE)

    def sweep_cache(self, *, purge: bool = False) -> None:
        """Delete from the cache everything that no generation uses, including deleted text.

        If that fails and no deleted text may remain (`purge`), the whole cache is deleted.
        """
        if not (file := cache_file(self.uri)).exists():
            return
        texts, documents = set[int](), set[str]()
        with self.connection.access_errors(), removals():
            table = self.connection.open()
            assert table is not None  # it was read or written
            for number, version in published(table).items():
                table.checkout(version)
                with suppress(FormatError):  # of another version
                    check_format(table.schema, self.uri)
                    one = Snapshot(self.uri, table, state=(b"", number))
                    rows = one.select("text_hash", "document_hash")
                    texts.update(rows["text_hash"].to_pylist())
                    documents.update(rows["document_hash"].to_pylist())
        try:
            sweep(self.uri, texts.union(map(hash_text, documents)))
        except (sqlite3.DatabaseError, OSError) as error:
            if not purge:
                logger.warning(
                    "Unused entries could not be deleted from the cache %r: %s.", str(file), error
                )
                return
            remove(file)

    @contextmanager
    def _continued(self, what: str) -> "Iterator[tuple[LanceTable | None, dict[int, int]]]":
        """Open the newest generation for writing in a `with` block; see `_newest`."""
        with self.writing(what, None), self.connection.access_errors():
            yield self._newest()

    def _recover(self) -> None:
        """Remove the unpublished work of a failed writer, and its files."""
        with suppress(InputError):  # a build replaces what cannot be read
            table = self.connection.open()
            if table is None:
                return
            before = table.version
            newest, _ = self._newest()
            if newest is None:
                self.connection.connect().drop_table(TABLE)
                return
            if details_of(newest.schema).get(PURGED):
                keep_last(newest, 1, alone=True)
            if newest.version == before:  # nothing was committed
                prune(newest, min(published(newest).values()), alone=True)
            else:
                renew(newest)

    def _newest(self) -> "tuple[LanceTable | None, dict[int, int]]":
        """Open the newest generation for writing; also return the version of each generation."""
        table = self.connection.open()
        if table is None:
            return None, {}
        held = published(table)
        self.lock.check_alone(max(held, default=0))
        version = held[max(held)] if held else table.version
        if version != table.version:  # a killed writer has gone on from it
            table.checkout(version)
            table.restore()
        check_format(table.schema, self.connection.uri)
        if self.connection.folder is None:  # rows of two writers would both be added
            claim(table)
        return (table if held else None), held

    def _overwritten(self, rows: pa.RecordBatchReader) -> "LanceTable":
        """Replace all rows in one commit, which creates the table if needed."""
        named = pa.RecordBatchReader.from_batches(rows.schema.with_metadata(identity()), rows)
        exists = self.connection.open() is not None
        return self.connection.connect().create_table(
            TABLE, named, mode="overwrite" if exists else "create"
        )

    def _publish(
        self,
        table: "LanceTable",
        newest: int,
        changes: dict[str, int],
        report: dict[str, Any] | None = None,
        *,
        added: bool = False,
        purge: bool = False,
    ) -> int:
        """Publish the table's version as the generation after `newest`, and remove the oldest.

        By default, the report of the previous generation is kept. Nodes added outside of a
        build are marked until all rows are written again.
        """
        maintain(table)
        before = details_of(table.schema)  # empty if all rows are new
        report = before.get("report", {}) if report is None else report
        generation = newest + 1
        details = {"time": now(), "what": self.lock.what, "changes": changes, "report": report}
        details |= {PURGED: True} if purge else {}  # for the next writer, if this one is killed
        details |= {ADDED: True} if added or ADDED in before else {}
        publish(table, generation, details)
        self.lock.generation = generation
        keep_last(table, 1 if purge else self.keep, alone=self.connection.folder is not None)
        if purge and min(times(table)) < published(table)[generation]:
            logger.warning(
                "The files of %r still contain deleted text, because they are in use or the clock "
                "was set back; the next deletion removes them.",
                self.connection.uri,
            )
        self.sweep_cache(purge=purge)
        return generation


def _with_the_rest(
    rows: pa.Table | None, away: Set[str], snapshot: Snapshot
) -> pa.RecordBatchReader:
    """Return the rows of a snapshot except some, by id, and new rows after them.

    They are read from the snapshot in batches while they are written.
    """
    import pyarrow.compute as pc

    columns = schema(snapshot.require().schema.field("vector").type.list_size)

    def every() -> Iterator[pa.RecordBatch]:
        ids = pa.array(sorted(away), pa.string())
        for batch in snapshot.batches(*NAMES):
            yield batch.filter(pc.invert(pc.is_in(batch["id"], value_set=ids)))
        yield from [] if rows is None else rows.to_batches()

    return pa.RecordBatchReader.from_batches(columns, every())
