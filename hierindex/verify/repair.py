"""Repair of an index as far as no model is needed."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from hierindex.cache.file import cache_file, remove
from hierindex.store.damage import damages
from hierindex.store.deletion import unlinked
from hierindex.store.rows import as_table
from hierindex.store.schema import NAMES
from hierindex.store.snapshot import Snapshot
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import wait_for
from hierindex.verify.contents import wrong_columns
from hierindex.verify.files import check_indices
from hierindex.verify.links import COLUMNS, Links, Named
from hierindex.verify.quotes import UNREADABLE
from hierindex.verify.reading import opened, read
from hierindex.verify.tree import first_documents

OF_ROWS = {
    "parents and children": "Links that one side named are named by both, others were removed.",
    "previous and next": "Links between neighbours were completed or removed.",
    "derived columns": "Derived columns were computed again.",
}
MENDABLE = {
    "cache": "The damaged cache was removed; the next build computes again what it held.",
    "indices": "Indices that were missing, damaged or incomplete were created again.",
    **OF_ROWS,
}
"""Checks whose problems may be repaired without a model, and what was done if they hold."""


def repair_index(store: HierarchyStore, failed: Collection[str]) -> None:
    """Repair what checks have found, as far as no model is needed.

    A damaged cache is removed. Links to nodes that do not exist are removed as by a deletion, and
    a link that one side names is added to the other where its place is not taken. Derived columns
    are computed again, and indices that are missing or damaged are created. The rows that change
    are held in memory and published in one write.

    Parameters
    ----------
    store : HierarchyStore
    failed : collection of str
        Names of the checks that do not hold.

    Raises
    ------
    DamagedError
        If LanceDB cannot read the table.
    """
    if "cache" in failed:
        remove(cache_file(store.uri))
    if {"indices", *OF_ROWS}.isdisjoint(failed):
        return
    snapshot = opened(store)
    rows = [] if OF_ROWS.keys().isdisjoint(failed) else mended_rows(snapshot)
    with damages():
        damaged = wait_for(check_indices(snapshot.require()))[1]
        wait_for(store._table.mend(as_table(rows) if rows else None, damaged))


def mended_rows(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the rows that have to change, as they should be, each id once.

    Rows that cannot be read or written as they are stay, and are reported.
    """
    mends = Mends.of(Links(read(snapshot, *COLUMNS)))
    found: dict[str, dict[str, Any]] = {}
    for batch in read(snapshot, *NAMES):
        for row in batch.to_pylist():
            with suppress(*UNREADABLE, ArithmeticError):
                mended = mends.applied(row)
                mended |= wrong_columns(mended)
                if mended != row and math.isfinite(sum(row["vector"])):
                    found[row["id"]] = mended
    return [*found.values()]


@dataclass(frozen=True)
class Mends:
    """Changes of links, by the id of the node to change.

    Parameters
    ----------
    absent : set of str
        Ids that nodes name and no node has.
    top : int
        The highest level.
    parent, previous, next : dict
        The id to name where none is named.
    children : dict
        The ids to name besides those that are named.
    """

    absent: set[str]
    top: int
    parent: Mapping[str, str]
    children: Mapping[str, Sequence[str]]
    previous: Mapping[str, str]
    next: Mapping[str, str]

    @classmethod
    def of(cls, links: Links) -> "Mends":
        """Return the changes after which both sides of each link name each other."""
        up, down = links.named("parent_ids"), links.named("child_ids")
        before, after = links.beside("previous_id"), links.beside("next_id")
        absent = {
            each.ids[int(i)].as_py() for each in (up, down, before, after) for i in each.absent
        }
        above, below = down.pairs
        named_up, named_down = links.key(*up.pairs), links.key(below, above)
        children: dict[str, list[str]] = {}
        for key in np.setdiff1d(named_up, named_down).tolist():
            children.setdefault(links.id(key % len(links)), []).append(links.id(key // len(links)))
        lone = np.setdiff1d(named_down, named_up)
        lone = lone[~np.isin(lone // len(links), up.pairs[0])]
        return cls(
            absent,
            int(links.numbers("level_max").max(initial=0)),
            _unambiguous(links, lone // len(links), lone % len(links)),
            children,
            cls._beside(links, after, before),
            cls._beside(links, before, after),
        )

    @staticmethod
    def _beside(links: Links, named: Named, back: Named) -> dict[str, str]:
        """Return what `back` should name where only `named` does."""
        rows, beside = named.pairs
        document = first_documents(links)
        free = ~np.isin(beside, back.pairs[0]) & (document[rows] == document[beside])
        return _unambiguous(links, beside[free], rows[free])

    def applied(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with the changes of its links."""
        node_id, mended = row["id"], dict(row)
        if node_id in self.parent:
            mended |= {"parent_ids": [self.parent[node_id]], "parent_weights": [1.0]}
        named = {*mended["parent_ids"], *row["child_ids"], row["previous_id"], row["next_id"]}
        if named & self.absent:
            mended = unlinked(mended, self.absent, self.top)
        mended["child_ids"] = [*mended["child_ids"], *self.children.get(node_id, ())]
        mended["previous_id"] = self.previous.get(node_id, mended["previous_id"])
        mended["next_id"] = self.next.get(node_id, mended["next_id"])
        return mended


def _unambiguous(links: Links, nodes: Any, values: Any) -> dict[str, str]:
    """Return the ids of nodes with the one id that each is to name, if there is only one."""
    n_of = Counter(nodes.tolist())
    pairs = zip(nodes.tolist(), values.tolist(), strict=True)
    return {links.id(node): links.id(value) for node, value in pairs if n_of[node] == 1}
