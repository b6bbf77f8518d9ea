"""The ids and links of a stored tree as arrays."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierindex.core.membership import Ints1d
from hierindex.store.schema import LOST_CHILD, schema

if TYPE_CHECKING:
    import pyarrow as pa

Mask = NDArray[np.bool_]
COLUMNS = (
    "id level level_max kind whole_document n_tokens documents parent_ids parent_weights child_ids "
    "previous_id next_id source_similarity stale"
).split()
"""Columns that are held in memory for all nodes; texts and vectors are not among them."""

ABSENT = -1  # the position of an id that no node has


@dataclass(frozen=True)
class Named:
    """Ids that nodes list: `rows[i]` lists `ids[i]`, the id of node `named[i]` or `ABSENT`."""

    rows: Ints1d
    ids: Any
    named: Ints1d

    @property
    def absent(self) -> Ints1d:
        """The indices of the ids that no node has."""
        return np.flatnonzero(self.named == ABSENT)

    @property
    def pairs(self) -> tuple[Ints1d, Ints1d]:
        """`rows` and `named` of the ids that a node has."""
        there = self.named != ABSENT
        return self.rows[there], self.named[there]


class Links:
    """The nodes of an index, numbered from 0, each id once, and the links between them.

    Parameters
    ----------
    batches : iterable of RecordBatch
        With the columns `COLUMNS`.
    """

    def __init__(self, batches: "Iterable[pa.RecordBatch]") -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        read = list(batches)
        empty = pa.schema([schema(1).field(name) for name in COLUMNS]).empty_table()
        table = pa.Table.from_batches(read) if read else empty
        code = pc.dictionary_encode(table["id"]).combine_chunks().indices.to_numpy()
        _, first, of, n_of = np.unique(
            code, return_index=True, return_inverse=True, return_counts=True
        )
        self.n_rows = len(table)
        self.positions_of_rows = np.argsort(np.argsort(first))[of]
        """Position of each row's node, in the order in which rows are read."""
        self.table = table.take(np.sort(first)) if len(first) < len(table) else table
        self.repeated = np.flatnonzero(n_of[np.argsort(first)] > 1)
        """Positions of the ids that several rows have."""
        self.ids = self.table["id"].combine_chunks()

    def __len__(self) -> int:
        return len(self.ids)

    def id(self, position: int) -> str:
        """Return a node's id."""
        node_id: str = self.ids[position].as_py()
        return node_id

    def numbers(self, column: str) -> NDArray[Any]:
        """Return a column of numbers, (n_nodes,)."""
        return np.asarray(self.table[column].to_numpy())

    def is_any(self, column: str, *values: str) -> Mask:
        """Return which nodes have one of these values in a column, (n_nodes,)."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.is_in(self.table[column], value_set=pa.array(values, pa.string()))
        return np.asarray(found.to_numpy())

    def positions(self, values: Any) -> Ints1d:
        """Return the positions of the nodes with these ids; `ABSENT` where there is none."""
        import pyarrow.compute as pc

        found = pc.fill_null(pc.index_in(values, value_set=self.ids), ABSENT)
        return np.asarray(found.to_numpy()).astype(np.int64)

    def named(self, column: str) -> Named:
        """Return what a column with lists of ids names, in order."""
        rows, values = self.flat(column)
        return Named(rows, values, self.positions(values))

    def beside(self, column: str) -> Named:
        """Return what `previous_id` or `next_id` names."""
        rows = np.flatnonzero(~self.is_any(column, ""))
        values = self.table[column].take(rows)
        return Named(rows, values, self.positions(values))

    @cached_property
    def edges(self) -> tuple[Ints1d, Ints1d]:
        """The distinct pairs of a child and its parent that at least one of the two names."""
        child, parent = self.named("parent_ids").pairs
        above, below = self.named("child_ids").pairs
        keys = np.union1d(self.key(child, parent), self.key(below, above))
        return keys // len(self), keys % len(self)

    def key(self, child: Ints1d, parent: Ints1d) -> Ints1d:
        """Return the number of each pair, `child * n_nodes + parent`."""
        return child * len(self) + parent

    @cached_property
    def documents(self) -> tuple[Ints1d, Ints1d]:
        """The pairs of a node and a document's number that the column `documents` names."""
        rows, values = self.flat("documents")
        return rows, self.document_numbers(values)

    @cached_property
    def document_ids(self) -> Any:
        """The ids of all documents; a document's number is its position."""
        import pyarrow.compute as pc

        return pc.unique(self.flat("documents")[1])

    def document_numbers(self, values: Any) -> Ints1d:
        """Return the numbers of documents by id, -1 for those that no node has."""
        import pyarrow.compute as pc

        found = pc.fill_null(pc.index_in(values, value_set=self.document_ids), -1)
        return np.asarray(found.to_numpy()).astype(np.int64)

    def flat(self, column: str) -> tuple[Ints1d, Any]:
        """Return the row of each item of a column of lists, and the items."""
        import pyarrow.compute as pc

        lists = self.table[column].combine_chunks()
        rows = np.asarray(pc.list_parent_indices(lists)).astype(np.int64)
        return rows, pc.list_flatten(lists)

    @cached_property
    def in_cycle(self) -> Mask:
        """Which of `edges` are part of a cycle."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        child, parent = self.edges
        shape = (len(self), len(self))
        graph = csr_array((np.ones(len(child), np.int8), (child, parent)), shape=shape)
        _, of = connected_components(graph, connection="strong")
        return np.asarray(of[child] == of[parent])

    @cached_property
    def circular(self) -> Mask:
        """Which nodes are above themselves, (n_nodes,)."""
        found = np.zeros(len(self), dtype=np.bool_)
        child, parent = self.edges
        found[child[self.in_cycle]] = True
        found[parent[self.in_cycle]] = True
        return found

    @cached_property
    def incomplete(self) -> Mask:
        """Which nodes may hold text of a deleted chunk: they or a node below lost a child."""
        child, parent = self.edges
        listed = self.named("child_ids")
        found = self.is_any("stale", LOST_CHILD)
        found |= (self.numbers("level") > 0) & ~np.isin(np.arange(len(self)), listed.rows)
        found[listed.rows[listed.absent]] = True
        while True:
            above = found.copy()
            above[parent[found[child]]] = True
            if (above == found).all():
                return found
            found = above
