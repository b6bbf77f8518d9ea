"""Coarse split of large pools, so that the cost of clustering stays linear in the rows.

Spherical k-means on a sample, and again within each part that is still too large. The
centroids of all splits are kept: they take later rows to the same parts.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.core.membership import Floats2d, Ints1d
from hierindex.core.rows import canonical_order, distinct_rows, unit_rows
from hierindex.core.threads import one_thread
from hierindex.errors import InputError

# Rows clustered together. UMAP's neighbours cost O(n^2): with its layout 0.8 s for 2,000 rows, 7 s
# for 10,000. More pools are faster, and part what belongs together more often.
MAX_POOL = 10_000
MAX_SPLIT = 64  # parts that one k-means makes at most; more are split again
SAMPLE = 256  # rows that each centroid is learned from at most: the default of faiss
BLOCK = 8192  # rows whose similarities to the centroids are held at once


@dataclass(frozen=True)
class Partition:
    """Parts of a set of rows, and how to find the part of another row.

    Splits are nodes of a tree, numbered from the top: node i is nearest to its centroid
    among the nodes that have the same parent. Those that are no parent are the parts.
    """

    part: Ints1d
    """(n_rows,) number of each row's part, in [0, n_parts)."""
    centroids: Floats2d
    """(n_nodes, n_dims) unit vectors."""
    parent: Ints1d
    """(n_nodes,) number of each node's parent, less than its own; -1 at the top."""

    @property
    def n_parts(self) -> int:
        """How many parts there are."""
        return len(self._leaves)

    @property
    def _leaves(self) -> Ints1d:
        return np.setdiff1d(np.arange(len(self.parent)), self.parent)

    def assign(self, X: Floats2d) -> Ints1d:
        """Part of each row: from the top, the nearest centroid, then the nearest below it.

        Parameters
        ----------
        X : (n_rows, n_dims) unit vectors

        Returns
        -------
        (n_rows,) int64
            Of the rows that were split, their own `part`; but where too many for one part
            were too alike to be told apart, the first of theirs.

        Raises
        ------
        InputError
            If a row is not finite or no unit vector, or of other dimensions than the centroids.
        """
        X = unit_rows(X)
        n_dims = self.centroids.shape[1]
        require(X.shape[1] == n_dims, "Rows", f"of {n_dims} dimensions", X.shape[1])
        node = np.full(len(X), -1)
        for split in (-1, *np.setdiff1d(self.parent, -1).tolist()):
            below = np.flatnonzero(self.parent == split)
            rows = np.flatnonzero(node == split)
            node[rows] = below[_nearest(X[rows], self.centroids[below])]
        return np.searchsorted(self._leaves, node)


def partition(X: Floats2d, *, max_rows: int = MAX_POOL, seed: int = 0) -> Partition:
    """Split rows into parts of near rows, of `max_rows` at most.

    Parameters
    ----------
    X : (n_rows, n_dims) unit vectors, one row at least
        Rows are sorted before anything random, so that their order does not matter.
    max_rows : int
        Holds also where the data will not split: then like rows come apart.
    seed : int
        Of the samples and of k-means.

    Returns
    -------
    Partition

    Raises
    ------
    InputError
        If there are no rows, one is not finite or no unit vector, or `max_rows` is less than 1.

    Notes
    -----
    O(n_rows * n_dims) for each of the few splits that a row goes through. I. Dhillon and
    D. Modha, Concept Decompositions for Large Sparse Text Data Using Clustering (2001).
    """
    unit_rows(X)
    require(is_whole(max_rows, 1), "max_rows", "a whole number of at least 1", max_rows)
    require(is_whole(seed), "seed", "a whole number of at least 0", seed)
    if len(X) == 0:
        raise InputError("There are no rows to split.")
    order = canonical_order(X)
    X = X[order]
    centroids, parent = [_unit(X.mean(axis=0, keepdims=True))], [-1]
    parts: list[tuple[int, Ints1d]] = []
    waiting = [(0, np.arange(len(X)))]
    while waiting:
        node, rows = waiting.pop()
        if len(rows) <= max_rows:
            parts.append((node, rows))
            continue
        for centroid, inside in _split(X[rows], max_rows, seed):
            waiting.append((len(parent), rows[inside]))
            centroids.append(centroid)
            parent.append(node)
    part = np.empty(len(X), dtype=np.int64)
    for number, (_, rows) in enumerate(sorted(parts, key=lambda found: found[0])):
        part[order[rows]] = number
    return Partition(part, np.concatenate(centroids), np.array(parent))


def _split(X: Floats2d, max_rows: int, seed: int) -> list[tuple[Floats2d, Ints1d]]:
    """Centroid (1, n_dims) and row indices, ascending, of two parts or more."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    distinct = distinct_rows(X)
    # Twice as many parts as must be, for they differ in size.
    number = min(-(-2 * len(X) // max_rows), MAX_SPLIT, len(distinct))
    if number > 1:
        rng = np.random.default_rng(seed)
        size = min(len(distinct), SAMPLE * number)
        sample = X[np.sort(rng.choice(distinct, size=size, replace=False))]
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # rows that are nearly equal
            means = KMeans(number, n_init=1, random_state=seed).fit(sample)
        centroids = _unit(means.cluster_centers_)
        label = _nearest(X, centroids)
        if np.ptp(label) > 0:
            return [(centroids[[k]], np.flatnonzero(label == k)) for k in np.unique(label)]
    runs = np.array_split(np.arange(len(X)), -(-len(X) // max_rows))
    return [(X[:1], run) for run in runs]  # of rows that no centroid tells apart


def _nearest(X: Floats2d, centroids: Floats2d) -> Ints1d:
    """Index of the centroid of greatest cosine similarity to each row; ties to the first."""
    C = centroids.T.astype(np.float64)  # near ties must fall alike in whatever company
    starts = range(0, len(X), BLOCK)
    nearest = [(X[start : start + BLOCK] @ C).argmax(axis=1) for start in starts]
    return np.concatenate([np.empty(0, dtype=np.int64), *nearest])


def _unit(C: Floats2d) -> Floats2d:
    return np.asarray(C / np.maximum(np.linalg.norm(C, axis=1, keepdims=True), 1e-12))
