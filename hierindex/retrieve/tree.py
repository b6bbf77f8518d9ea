"""The tree of an index: its forest, reading order, table of contents and map."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d, is_whole, require
from hierindex.core.forest import Forest, Icicle, Mask
from hierindex.core.reduce import plane_coordinates
from hierindex.errors import NotFoundError
from hierindex.retrieve.levels import Level, ids_at
from hierindex.store.filters import EVERY_ROW, SUMMARIES, by_ids
from hierindex.store.generations import on_newest
from hierindex.store.rows import quotes_in
from hierindex.store.snapshot import Snapshot, once
from hierindex.store.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

TREE_COLUMNS = ("id", "level", "n_tokens", "parent_ids", "whole_document")
MANY = 1000  # nodes; for more, the columns of all are read
FIRST_LOOK = 40  # most nodes if no depth is given
MAX_POINTS = 2_000  # chunks of a map; 5,000 take three times as long, and cover each other


class Tree(NamedTuple):
    """The rows of a tree that may be selected, in the order of the table."""

    ids: "pa.StringArray"
    n_tokens: Ints1d
    """By the embedding model, at least 1."""
    forest: Forest
    is_whole: Mask
    """Which rows are whole documents."""

    def id_of(self, row: int) -> str:
        """Return the id of a row."""
        return str(self.ids[row])


@once
def whole_tree(snapshot: Snapshot) -> Tree:
    """Return the tree of all rows. Cached: 60 MB for a million."""
    return tree_of(snapshot.select(*TREE_COLUMNS))


def tree_of(rows: "pa.Table", *of: list[str]) -> Tree:
    """Return the tree of some rows, or of the rows inside documents and nodes."""
    import pyarrow.compute as pc

    rows = rows.filter(_inside(rows, *of)) if of else rows
    n_tokens = np.maximum(rows["n_tokens"].to_numpy(), 1).astype(np.int64)
    is_whole = pc.not_equal(rows["whole_document"], "").to_numpy()
    return Tree(rows["id"].combine_chunks(), n_tokens, _forest(rows), is_whole)


def _inside(rows: "pa.Table", documents: list[str], node_ids: list[str]) -> Mask:
    """Return a mask of rows with text of these documents alone, and of these nodes' subtrees."""
    import pyarrow.compute as pc

    inside, lists = np.ones(len(rows), dtype=np.bool_), rows["documents"].combine_chunks()
    other = ~is_in(lists.flatten(), documents)
    inside[np.array(pc.list_parent_indices(lists))[other]] = False
    under, (child, parent) = is_in(rows["id"], node_ids), _links(rows)
    for _ in pc.unique(rows["level"]):  # as often as there are levels to go down
        under[child[under[parent]]] = True
    return inside | under


def _links(rows: "pa.Table") -> tuple[Ints1d, Ints1d]:
    """Return each child among some rows with its parent there, the strongest parent first."""
    import pyarrow.compute as pc

    lists, summaries = rows["parent_ids"].combine_chunks(), np.flatnonzero(rows["level"])
    child = np.array(pc.list_parent_indices(lists), dtype=np.int64)
    parent = _rows(lists.flatten(), rows["id"].take(summaries))
    known = parent >= 0
    return child[known], summaries[parent[known]]


def is_in(ids: "pa.StringArray | pa.ChunkedArray", values: Iterable[str]) -> Mask:
    """Return a mask of the ids that are among some values, (n_ids,)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.array(pc.is_in(ids, pa.array(values, pa.string())), dtype=np.bool_)


def _forest(rows: "pa.Table") -> Forest:
    """Return the tree of the strongest parents among some rows."""
    level, (child, parent) = rows["level"].to_numpy(), _links(rows)
    above = level[parent] > level[child]
    strongest = np.full(len(rows), -1)
    strongest[child[above][::-1]] = parent[above][::-1]  # a child's first parent is written last
    return Forest(strongest, level)


class ReadingOrder(NamedTuple):
    """The nodes of a tree, looked up by their positions in preorder; see `Icicle`."""

    ids: "pa.StringArray"
    icicle: Icicle

    def position(self, node_id: str) -> int:
        """Return the position of a node.

        Raises
        ------
        NotFoundError
            If no node has this id.
        """
        import pyarrow.compute as pc

        row = pc.index(self.ids, node_id).as_py()
        if row < 0:
            raise NotFoundError(f"No node has the id {node_id!r}.")
        return int(self.icicle.position[row])

    def ids_at(self, positions: Iterable[int]) -> list[str]:
        """Return the ids of the nodes at positions."""
        rows = self.icicle.row[np.array([*positions], dtype=np.int64)]
        ids: list[str] = self.ids.take(rows).to_pylist()
        return ids


@once
def reading_order(snapshot: Snapshot) -> ReadingOrder:
    """Return the reading order of all nodes. Cached: 100 MB for a million nodes.

    Children are in the order of their parent's links, and roots in the order of their documents.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    tree = whole_tree(snapshot)
    links = snapshot.select("id", "child_ids", where=SUMMARIES)
    lists = links["child_ids"].combine_chunks()
    parts = [*links["id"].chunks, lists.flatten(), pa.array(_roots(snapshot, tree), pa.string())]
    rows = _rows(pa.chunked_array(parts, pa.string()), tree.ids)  # in one search
    summary, child, roots = np.split(rows, [len(lists), len(rows) - len(parts[-1])])
    parent = summary[np.array(pc.list_parent_indices(lists), dtype=np.int64)]
    listed = (child >= 0) & (tree.forest.parent[child] == parent)
    place: Ints1d = np.full(len(tree.ids), len(child))  # after all that are linked
    place[child[listed]] = np.flatnonzero(listed)
    place[roots] = np.arange(len(roots))
    return ReadingOrder(tree.ids, Icicle(tree.forest, place))


def entries(
    snapshot: Snapshot, order: ReadingOrder, positions: Sequence[int], n_characters: int = 0
) -> list[dict[str, Any]]:
    """Return the entries of nodes in a table of contents, with the first characters of their texts.

    Returns
    -------
    list[dict]
        `id`, `title`, `level`, `document` (the id if the node is a whole document, or None), the
        numbers of `documents`, `chunks` and `children` under it, and `text`.
    """
    icicle, texts = order.icicle, ("text",) if n_characters else ()
    columns = ("title", "level", "whole_document", "documents", *texts)
    rows = _read(snapshot, order.ids_at(positions), *columns)
    return [
        {
            "id": row["id"],
            "title": row["title"],
            "level": row["level"],
            "document": row["whole_document"] or None,
            "documents": len(row["documents"]),
            "chunks": int(icicle.x1[position] - icicle.x0[position]),
            "children": int(icicle.n_children[position]),
            **{name: row[name][:n_characters] for name in texts},
        }
        for position, row in zip(positions, rows, strict=True)
    ]


def _roots(snapshot: Snapshot, tree: Tree) -> list[str]:
    """Return the roots, sorted by their first documents and the positions in them."""
    ids = sorted(tree.ids.filter(tree.forest.parent == -1).to_pylist())
    rows = _read(snapshot, ids, "documents", "record")
    return [row["id"] for row in sorted(rows, key=_place)]


def _read(snapshot: Snapshot, ids: Sequence[str], *columns: str) -> list[dict[str, Any]]:
    """Return columns of nodes, in the order of their ids."""
    where = by_ids(ids) if len(ids) <= MANY else EVERY_ROW
    rows = snapshot.select("id", *columns, where=where)
    found: list[dict[str, Any]] = rows.take(_rows(ids, rows["id"])).to_pylist()
    return found


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    spans = (span for quote in quotes_in(row["record"]) for span in quote.sources)
    return row["documents"][0], min((span.start for span in spans), default=0)


def _rows(ids: Any, among: "pa.StringArray | pa.ChunkedArray") -> Ints1d:
    """Return the positions of ids among other ids, -1 for missing ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids, pa.string())
    return np.array(pc.index_in(ids, among).fill_null(-1), dtype=np.int64)


@on_newest
def contents(table: Table, node_id: str | None, depth: int | None) -> dict[str, Any]:
    """Return a table of contents of a tree or subtree; see `HierarchicalIndex.tree`."""
    require(depth is None or is_whole(depth, 0), "depth", "an integer of at least 0", depth)
    snapshot = table.snapshot()
    snapshot.require()
    order = reading_order(snapshot)
    icicle = order.icicle
    first = None if node_id is None else order.position(snapshot.node_beginning(node_id).id)
    part = icicle.part(first)
    below = icicle.depth[part] - icicle.depth[part][:1]
    if depth is None:
        depth = max(1, int((np.cumsum(np.bincount(below)) <= FIRST_LOOK).sum()) - 1)
    positions = (part.start + np.flatnonzero(below <= depth)).tolist()
    tops, nodes = list[dict[str, Any]](), dict[int, dict[str, Any]]()
    for position, entry in zip(positions, entries(snapshot, order, positions), strict=True):
        del entry["children"]
        nodes[position] = {**entry, "nodes": []}
        parent = nodes.get(int(icicle.parent[position]))
        (tops if parent is None else parent["nodes"]).append(nodes[position])
    return {"nodes": tops, "hidden": len(below) - len(positions)}


def chunk_map(snapshot: Snapshot, level: Level = 1, n: int = MAX_POINTS) -> dict[str, Any]:
    """Return coordinates of chunks in the plane; similar chunks are near each other.

    Parameters
    ----------
    snapshot : Snapshot
    level : int or {"top", "documents", "sections", "chunks"}
        Level of the parents.
    n : int
        Maximum number of points; never more than 2,000.

    Returns
    -------
    dict
        `points`, in the order of their ids, are dicts of `id`, `x`, `y` and `parent`. `parent` is
        the index in `parents` of the chunk's ancestor at the level, by strongest parents, or None
        if it has no ancestor there. `parents`, the one with most points first, are dicts of `id`,
        `title`, `x` and `y`, where `x` and `y` are those of the point in the densest part of its
        points. `chunks` is the number of chunks in the index; if it is larger than the number of
        points, these are a sample.

    Raises
    ------
    InputError
        If `n` is not positive, or there is no index.
    LevelError
        If the tree lacks the level.

    Notes
    -----
    See `plane_coordinates` for the method and its cost. Coordinates are computed once per
    generation, for all levels and from the same sample.
    """
    require(is_whole(n, 1), "n", "an integer of at least 1", n)
    snapshot.require()
    at_level = ids_at(snapshot, level)
    tree, (rows, Z) = whole_tree(snapshot), chunk_places(snapshot)
    few = _spread(len(rows), n)
    rows = rows[few]
    at = tree.forest.highest(is_in(tree.ids, at_level))[rows]
    counts = Counter(at[(at != -1) & (at != rows)].tolist())
    parents = sorted(counts, key=lambda row: (-counts[row], tree.id_of(row)))
    number = {row: i for i, row in enumerate(parents)}
    Z = Z[few].round(4)
    places = [densest(Z[at == row]).tolist() for row in parents]
    parent_ids = [*map(tree.id_of, parents)]
    columns = tree.ids.take(rows).to_pylist(), Z.tolist(), at.tolist()
    return {
        "points": [
            {"id": node_id, "x": x, "y": y, "parent": number.get(above)}
            for node_id, (x, y), above in zip(*columns, strict=True)
        ],
        "parents": [
            {**row, "x": x, "y": y}
            for row, (x, y) in zip(_read(snapshot, parent_ids, "title"), places, strict=True)
        ],
        "chunks": int(tree.forest.is_text.sum()),
    }


@once
def chunk_places(snapshot: Snapshot) -> tuple[Ints1d, Floats2d]:
    """Return the row numbers of the chunks in the tree, (n,), and their coordinates, (n, 2).

    If there are more than 2,000 chunks, a sample is returned. The rows are in the order of their
    ids.
    """
    import pyarrow.compute as pc

    tree = whole_tree(snapshot)
    chunks = np.flatnonzero(tree.forest.is_text)
    chunks = chunks[np.array(pc.sort_indices(tree.ids.take(chunks)))]
    rows = chunks[_spread(len(chunks), MAX_POINTS)]
    found = snapshot.select("id", "vector", where=by_ids(tree.ids.take(rows).to_pylist()))
    vectors = found.sort_by("id")["vector"].combine_chunks()
    X = vectors.flatten().to_numpy().reshape(-1, vectors.type.list_size)  # (n, n_dims)
    return rows, plane_coordinates(X)


def densest(Z: Floats2d) -> Floats1d:
    """Return the point of Z, (n, 2), with the smallest radius that contains a quarter of Z.

    >>> densest(np.array([[0, 0], [5, 5], [6, 5], [5, 7], [9, 0]]))
    array([5, 5])
    """
    quarter = len(Z) // 4
    distances = np.linalg.norm(Z[:, None] - Z, axis=2)  # (n, n)
    nearest = int(np.partition(distances, quarter, axis=1)[:, quarter].argmin())
    point: Floats1d = Z[nearest]
    return point


def _spread(n: int, most: int) -> Ints1d:
    """Return all numbers below n, or `most` evenly spaced ones; of hashed ids, this is a sample."""
    return np.arange(min(n, most)) * n // max(1, min(n, most))
