"""Rows in files of a table, which wait to be committed as its next version.

Any number of processes, on any machine that reaches the table, write such files at once. Nobody
reads a file before it is committed; those of a writer that was killed are never committed, and
removed with the files of earlier generations.
"""

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from hierindex.errors import HierindexError, InputError
from hierindex.store.connection import Connection
from hierindex.store.indices import tend
from hierindex.store.rows import Row
from hierindex.store.schema import identity, schema
from hierindex.store.waiting import tables

if TYPE_CHECKING:
    from lancedb.table import Table


Call = Callable[[Callable[[], None]], None]


class Written(NamedTuple):
    """Files with rows: descriptions of Lance's fragments, as JSON."""

    fragments: Sequence[str] = ()
    n_rows: int = 0
    n_dims: int = 0


@dataclass(frozen=True)
class Place:
    """Where the files of a table lie; see `Connection` for the attributes."""

    database: str
    name: str
    storage_options: dict[str, str] | None = field(default=None, repr=False)

    @property
    def uri(self) -> str:
        """Of the table."""
        return f"{self.database.rstrip('/')}/{self.name}.lance"

    @property
    def connection(self) -> Connection:
        """The connection to the database."""
        return Connection(self.database, self.name, self.storage_options)

    def write(self, rows: Iterable[Row]) -> Written:
        """Write rows, none of them twice; see `as_table` for the errors."""
        import lance.fragment
        import pyarrow as pa

        some = tables(rows)
        if (first := next(some, None)) is None:
            return Written()
        batches = (batch for table in chain([first], some) for batch in table.to_batches())
        found = lance.fragment.write_fragments(
            pa.RecordBatchReader.from_batches(first.schema, batches),
            self.uri,
            schema=first.schema,
            mode="overwrite",  # whatever the table holds now
            storage_options=self.storage_options,
        )
        n_rows = sum(each.num_rows for each in found)
        n_dims = first.schema.field("vector").type.list_size
        return Written([json.dumps(each.to_json()) for each in found], n_rows, n_dims)

    def tend(self) -> None:
        """Join the files of many writers, and make the indices of the table's newest version."""
        table = self.connection.open()
        assert table is not None  # it was committed
        table.optimize()  # while there are no indices
        tend(table)


class Fragments:
    """Rows of nodes in files that one commit makes the next version of a table.

    Parameters
    ----------
    place : Place
    call : callable
        Calls a function that needs much memory, for instance in another process.
    """

    def __init__(self, place: Place, call: Call = operator.call) -> None:
        self.place = place
        self._call = call
        self._written: list[Written] = []

    @property
    def n_rows(self) -> int:
        """Number of rows in all files."""
        return sum(each.n_rows for each in self._written)

    def add(self, rows: Iterable[Row]) -> None:
        """Write rows, none of them twice; see `as_table` for the errors."""
        self.add_written(self.place.write(rows))

    @property
    def written(self) -> Written:
        """All files, which another process can add."""
        fragments = [fragment for each in self._written for fragment in each.fragments]
        return Written(
            fragments, self.n_rows, max((each.n_dims for each in self._written), default=0)
        )

    def add_written(self, written: Written) -> None:
        """Add rows that another process wrote.

        Raises
        ------
        InputError
            If their vectors have another dimension than those before.
        """
        widths = {each.n_dims for each in [*self._written, written] if each.n_rows}
        if len(widths) > 1:
            raise InputError(f"Embeddings must have one dimension, got {sorted(widths)}.")
        self._written.append(written)

    def committed(self, connection: Connection) -> "Table":
        """Make the rows all rows of a table, in one commit, and make its indices.

        Return the table, not yet published.

        Raises
        ------
        HierindexError
            If the table then has another number of rows than were written.
        """
        before = connection.open()
        version = None if before is None else before.version
        self._commit(version)
        table = connection.connect().open_table(connection.name)
        if (n_rows := table.count_rows()) != self.n_rows:
            raise HierindexError(
                f"{self.n_rows:,} rows were written to {connection.uri!r}, which has {n_rows:,} of "
                "them; nothing was published. Build again."
            )
        self._call(self.place.tend)
        return connection.connect().open_table(connection.name)

    def _commit(self, version: int | None) -> None:
        import lance

        columns = schema(max(each.n_dims for each in self._written)).with_metadata(identity())
        fragments = [
            lance.FragmentMetadata.from_json(fragment)
            for each in self._written
            for fragment in each.fragments
        ]
        lance.LanceDataset.commit(
            self.place.uri,
            lance.LanceOperation.Overwrite(columns, fragments),
            read_version=version,
            storage_options=self.place.storage_options,
        )
