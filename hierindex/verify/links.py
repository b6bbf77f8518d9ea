"""The ids and links of a stored tree as arrays, and their checks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arrays import Ints1d
from hierindex.store.schema import LOST_CHILD, schema
from hierindex.verify.report import Check

if TYPE_CHECKING:
    import pyarrow as pa

Mask = NDArray[np.bool_]
COLUMNS = "id level documents parent_ids child_ids previous_id next_id stale".split()
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
    """The nodes of an index, numbered from 0 in the order of its rows, and the links between them.

    Parameters
    ----------
    batches : iterable of RecordBatch
        With the columns `COLUMNS`.
    """

    def __init__(self, batches: "Iterable[pa.RecordBatch]") -> None:
        import pyarrow as pa

        columns = pa.schema([schema(1).field(name) for name in COLUMNS])
        self.table = pa.concat_tables(
            [columns.empty_table(), *(pa.Table.from_batches([batch]) for batch in batches)]
        )
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

    def flat(self, column: str) -> tuple[Ints1d, Any]:
        """Return the row of each item of a column of lists, and the items."""
        import pyarrow.compute as pc

        lists = self.table[column].combine_chunks()
        rows = np.asarray(pc.list_parent_indices(lists)).astype(np.int64)
        return rows, pc.list_flatten(lists)

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


def check_links(links: Links) -> Iterator[Check]:
    """Check what the ids and links of the nodes say.

    Every leaf then reaches a root without a cycle: each parent exists, and is above its children.
    """
    yield check_ids(links)
    yield check_levels(links)
    yield check_parents(links)
    yield check_neighbours(links)


def check_ids(links: Links) -> Check:
    """No two rows have one id."""
    import pyarrow.compute as pc

    found = Check("ids")
    found.checked = len(links)
    counts = pc.value_counts(links.ids)
    several = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    for node_id in several.to_pylist():
        found.add(node_id, "several rows have this id")
    return found


def check_levels(links: Links) -> Check:
    """A parent's level is above its children's, so that no path upwards is a cycle."""
    found = Check("levels")
    child, parent = links.edges
    level = links.numbers("level")
    found.checked = len(child)
    found.add_all(
        np.flatnonzero(level[parent] <= level[child]),
        lambda i: links.id(int(child[i])),
        lambda i: f"its parent {links.id(int(parent[i]))} is not on a higher level",
    )
    return found


def check_parents(links: Links) -> Check:
    """Parents and children exist and name each other."""
    found, n = Check("parents and children"), len(links)
    up, down = links.named("parent_ids"), links.named("child_ids")
    found.checked = len(up.rows) + len(down.rows)
    _add_absent(found, links, up, "its parent")
    _add_absent(found, links, down, "its child")
    above, below = down.pairs
    of_children, of_parents = links.key(*up.pairs), links.key(below, above)
    found.add_all(
        np.setdiff1d(of_children, of_parents),
        lambda key: links.id(key // n),
        lambda key: f"its parent {links.id(key % n)} does not name it",
    )
    found.add_all(
        np.setdiff1d(of_parents, of_children),
        lambda key: links.id(key % n),
        lambda key: f"its child {links.id(key // n)} does not name it",
    )
    return found


def _add_absent(found: Check, links: Links, named: Named, noun: str) -> None:
    found.add_all(
        named.absent,
        lambda i: links.id(int(named.rows[i])),
        lambda i: f"{noun} {named.ids[i].as_py()} does not exist",
    )


def check_neighbours(links: Links) -> Check:
    """The previous and the next node exist and name each other."""
    found = Check("previous and next")
    before, after = links.beside("previous_id"), links.beside("next_id")
    found.checked = len(before.rows) + len(after.rows)
    for named, back, noun in ((before, after, "previous"), (after, before, "next")):
        _add_absent(found, links, named, f"its {noun} node")
        answer = np.full(len(links), ABSENT)
        answer[back.rows] = back.named
        rows, beside = named.pairs
        found.add_all(
            rows[answer[beside] != rows],
            links.id,
            lambda i, noun=noun: f"its {noun} node does not name it",  # type: ignore[misc]
        )
    return found
