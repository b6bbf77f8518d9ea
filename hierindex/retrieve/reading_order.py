"""The nodes of a tree in reading order, each under its strongest parent."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hierindex.core.icicle import Icicle
from hierindex.core.membership import Ints1d
from hierindex.errors import InputError
from hierindex.retrieve.outline import Tree, whole_tree
from hierindex.store.prefilter import SUMMARIES
from hierindex.store.rows import quotes_in
from hierindex.store.table_snapshot import TableSnapshot, once

if TYPE_CHECKING:
    import pyarrow as pa

MANY = 1000  # nodes; for more, the columns of all are read


class ReadingOrder(NamedTuple):
    """The ids of a tree, sorted, and its nodes in reading order."""

    ids: "pa.ChunkedArray"
    icicle: Icicle

    def position(self, node_id: str) -> int:
        """Return the position of a node in preorder.

        Raises
        ------
        InputError
            If no node has this id.
        """
        row = bisect_left(range(len(self.ids)), node_id, key=lambda i: self.ids[i].as_py())
        if row == len(self.ids) or self.ids[row].as_py() != node_id:
            raise InputError(f"No node has the id {node_id!r}.")
        return int(self.icicle.position[row])

    def ids_at(self, positions: Iterable[int]) -> list[str]:
        """Return the ids of the nodes at positions in preorder."""
        rows = self.icicle.row[np.array([*positions], dtype=np.int64)]
        ids: list[str] = self.ids.take(rows).to_pylist()
        return ids


@once
async def reading_order(snapshot: TableSnapshot) -> ReadingOrder:
    """Return the reading order of all nodes. Cached: 130 MB for a million.

    The children of a node are in the order of its links, roots in that of their documents.
    """
    tree = await whole_tree(snapshot)
    links = await snapshot.select("id", "child_ids", where=SUMMARIES)
    roots = await _places(snapshot, tree)
    return await asyncio.to_thread(_laid_out, tree, links, roots)


async def _places(snapshot: TableSnapshot, tree: Tree) -> dict[str, tuple[str, int]]:
    """Return the document and the character with which each root begins."""
    roots = tree.ids.filter(tree.forest.parent == -1).to_pylist()
    columns = ("id", "documents", "record")
    found = await snapshot.columns(*columns, node_ids=roots if len(roots) <= MANY else None)
    rows = (dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True))
    known = {*roots}
    return {row["id"]: _place(row) for row in rows if row["id"] in known}


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    spans = (span for quote in quotes_in(row["record"]) for span in quote.sources)
    return row["documents"][0], min((span.start for span in spans), default=0)


def _laid_out(tree: Tree, links: "pa.Table", roots: Mapping[str, tuple[str, int]]) -> ReadingOrder:
    import pyarrow.compute as pc

    lists = links["child_ids"].combine_chunks()
    parent = _rows(tree, links["id"])[np.array(pc.list_parent_indices(lists), dtype=np.int64)]
    child = _rows(tree, lists.flatten())
    listed = (child >= 0) & (tree.forest.parent[child] == parent)
    place: Ints1d = np.full(len(tree.ids), len(child))  # what no link names comes last
    place[child[listed]] = np.flatnonzero(listed)
    first = sorted(roots, key=lambda node_id: roots[node_id])
    place[_rows(tree, first)] = np.arange(len(first))
    return ReadingOrder(tree.ids, Icicle(tree.forest, place))


def _rows(tree: Tree, ids: Any) -> Ints1d:
    """Return the rows of ids, -1 for those that no node has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids, pa.string())
    return np.array(pc.index_in(ids, tree.ids).fill_null(-1), dtype=np.int64)
