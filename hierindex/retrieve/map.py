"""The map of an index: its chunks as points in the plane, and the node that each belongs to."""

from typing import Any

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d, is_whole, require
from hierindex.core.reduce import plane_coordinates
from hierindex.retrieve.levels import Level, ids_at
from hierindex.retrieve.outline import is_in, whole_tree
from hierindex.store.filters import by_ids
from hierindex.store.snapshot import Snapshot, once

MAX_POINTS = 2_000  # chunks; 5,000 take three times as long, and cover each other


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
    parents, counts = np.unique(at[(at != -1) & (at != rows)], return_counts=True)
    parents = parents[np.argsort(-counts, kind="stable")]
    number = {row: i for i, row in enumerate(parents.tolist())}
    Z = Z[few].round(4)
    places = [densest(Z[at == row]).tolist() for row in parents]
    parent_ids: list[str] = tree.ids.take(parents).to_pylist()
    named = snapshot.columns("id", "title", node_ids=parent_ids)
    titles = dict(zip(named["id"], named["title"], strict=True))
    columns = tree.ids.take(rows).to_pylist(), Z.tolist(), at.tolist()
    return {
        "points": [
            {"id": node_id, "x": x, "y": y, "parent": number.get(above)}
            for node_id, (x, y), above in zip(*columns, strict=True)
        ],
        "parents": [
            {"id": node_id, "title": titles[node_id], "x": x, "y": y}
            for node_id, (x, y) in zip(parent_ids, places, strict=True)
        ],
        "chunks": int(tree.forest.is_text.sum()),
    }


@once
def chunk_places(snapshot: Snapshot) -> tuple[Ints1d, Floats2d]:
    """Return the row numbers of the chunks in the tree, (n,), and their coordinates, (n, 2).

    If there are more than 2,000 chunks, a sample is returned. The rows are in the order of their
    ids.
    """
    tree = whole_tree(snapshot)
    chunks = np.flatnonzero(tree.forest.is_text)
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
