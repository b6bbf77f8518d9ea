"""The nodes of a tree in reading order, each under its strongest parent."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hierindex.core.arrays import Ints1d
from hierindex.core.icicle import Icicle
from hierindex.errors import InputError
from hierindex.retrieve.outline import Tree, whole_tree
from hierindex.store.prefilter import SUMMARIES, by_ids
from hierindex.store.rows import quotes_in
from hierindex.store.snapshot import Snapshot, once

if TYPE_CHECKING:
    import pyarrow as pa

MANY = 1000  # nodes; for more, the columns of all are read


class ReadingOrder(NamedTuple):
    """The nodes of a tree by their positions in preorder, see `Icicle`."""

    ids: "pa.ChunkedArray"
    """Sorted."""
    icicle: Icicle

    def position(self, node_id: str) -> int:
        """Return the position of a node.

        Raises
        ------
        InputError
            If no node has this id.
        """
        row = bisect_left(range(len(self.ids)), node_id, key=self._id)
        if row == len(self.ids) or self._id(row) != node_id:
            raise InputError(f"No node has the id {node_id!r}.")
        return self.icicle.position(row)

    def ids_at(self, positions: Iterable[int]) -> list[str]:
        """Return the ids of the nodes at positions."""
        ids: list[str] = self.ids.take(self._rows(positions)).to_pylist()
        return ids

    def id_length(self, positions: Iterable[int]) -> int:
        """Return how many characters tell the ids at positions from all others."""
        import pyarrow.compute as pc

        rows = self._rows(positions)
        before = np.union1d(rows[rows > 0] - 1, rows[rows < len(self.ids) - 1])
        pairs = self.ids.take(before), self.ids.take(before + 1)

        def are_told(length: int) -> bool:
            first, second = (pc.utf8_slice_codeunits(ids, 0, length) for ids in pairs)
            return not pc.any(pc.equal(first, second)).as_py()

        longest: int = pc.max(pc.utf8_length(self.ids)).as_py() or 0
        return min(1, len(self.ids)) + bisect_left(range(1, longest + 1), True, key=are_told)

    def _id(self, row: int) -> str:
        node_id: str = self.ids[row].as_py()
        return node_id

    def _rows(self, positions: Iterable[int]) -> Ints1d:
        return self.icicle.row[np.array([*positions], dtype=np.int64)]


@once
def reading_order(snapshot: Snapshot) -> ReadingOrder:
    """Return all nodes in reading order. Cached: 100 MB for a million.

    Children are in the order of their parent's links, roots in that of their documents.
    """
    tree = whole_tree(snapshot)
    links = snapshot.select("id", "child_ids", where=SUMMARIES)
    roots = _roots(snapshot, tree)
    return _ordered(tree, links, roots)


def entries(
    snapshot: Snapshot, order: ReadingOrder, positions: Sequence[int], n_characters: int = 0
) -> list[dict[str, Any]]:
    """Return what a table of contents says of nodes, and the first characters of their texts.

    Returns
    -------
    list[dict]
        `id`, `title`, `level`, `document` (the one that a node is the whole of, or None), the
        numbers of `documents`, `chunks` and `children` under it, and `text`.
    """
    import pyarrow.compute as pc

    icicle, ids = order.icicle, order.ids_at(positions)
    where = by_ids(ids) if len(ids) <= MANY else None
    columns = ("id", "title", "level", "whole_document", "documents")
    texts = ("text",) if n_characters else ()
    rows = snapshot.select(*columns, *texts, where=where)
    rows = rows.take(_rows(ids, rows["id"]))
    documents = pc.list_value_length(rows["documents"]).to_pylist()
    starts = pc.utf8_slice_codeunits(rows["text"], 0, n_characters).to_pylist() if texts else []
    found = []
    for i, position in enumerate(positions):
        found.append(
            {
                "id": ids[i],
                "title": rows["title"][i].as_py(),
                "level": rows["level"][i].as_py(),
                "document": rows["whole_document"][i].as_py() or None,
                "documents": documents[i],
                "chunks": int(icicle.x1[position] - icicle.x0[position]),
                "children": int(icicle.n_children[position]),
                **({"text": starts[i]} if texts else {}),
            }
        )
    return found


def _roots(snapshot: Snapshot, tree: Tree) -> list[str]:
    """Return the roots in the order of their first documents, and of the places there."""
    ids = tree.ids.filter(tree.forest.parent == -1).to_pylist()
    where = by_ids(ids) if len(ids) <= MANY else None
    rows = snapshot.select("id", "documents", "record", where=where)
    roots = rows.take(_rows(ids, rows["id"])).to_pylist()
    return [row["id"] for row in sorted(roots, key=_place)]


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    spans = (span for quote in quotes_in(row["record"]) for span in quote.sources)
    return row["documents"][0], min((span.start for span in spans), default=0)


def _ordered(tree: Tree, links: "pa.Table", roots: Sequence[str]) -> ReadingOrder:
    import pyarrow.compute as pc

    lists = links["child_ids"].combine_chunks()
    parent = _rows(links["id"], tree.ids)[np.array(pc.list_parent_indices(lists), dtype=np.int64)]
    child = _rows(lists.flatten(), tree.ids)
    listed = (child >= 0) & (tree.forest.parent[child] == parent)
    place: Ints1d = np.full(len(tree.ids), len(child))  # after all that are linked
    place[child[listed]] = np.flatnonzero(listed)
    place[_rows(roots, tree.ids)] = np.arange(len(roots))
    return ReadingOrder(tree.ids, Icicle(tree.forest, place))


def _rows(ids: Any, among: "pa.ChunkedArray") -> Ints1d:
    """Return the places of ids among others, -1 for those that are not there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids, pa.string())
    return np.array(pc.index_in(ids, among).fill_null(-1), dtype=np.int64)
