"""Partition of many rows into pools by spherical k-means, so that clustering costs linear time."""

import warnings

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.core.arrays import Floats2d, Ints1d
from hierindex.core.rows import blocks, canonical_order, distinct_rows, one_thread, unit_rows
from hierindex.errors import InputError

MAX_POOL = 10_000  # UMAP takes 7 s; smaller pools are faster and separate more related rows
MAX_SPLIT = 64  # parts per k-means
SAMPLE = 256  # rows per centroid, the default of faiss


def partition(X: Floats2d, *, max_rows: int = MAX_POOL, seed: int = 0) -> Ints1d:
    """Partition rows into pools of similar rows; return each row's pool, (n_rows,) int64.

    No pool has more than `max_rows` rows, even of identical ones. The order of the rows does not
    affect the pools.

    Raises
    ------
    InputError
        If there are no rows, a row is not finite or not a unit vector, or `max_rows` is below 1.

    Notes
    -----
    Learns centroids from a sample and splits large parts again; a split costs O(n_rows * n_dims).
    I. Dhillon and D. Modha, Concept Decompositions for Large Sparse Text Data Using Clustering
    (2001).
    """
    unit_rows(X)
    require(is_whole(max_rows, 1), "max_rows", "a whole number of at least 1", max_rows)
    require(is_whole(seed), "seed", "a whole number of at least 0", seed)
    if len(X) == 0:
        raise InputError("There are no rows to split.")
    part, n_parts = np.empty(len(X), dtype=np.int64), 0
    waiting = [canonical_order(X)]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= max_rows:
            part[rows] = n_parts
            n_parts += 1
        else:
            waiting += [rows[inside] for inside in _split(X, rows, max_rows, seed)]
    return part


def _split(X: Floats2d, rows: Ints1d, max_rows: int, seed: int) -> list[Ints1d]:
    """Return the places among `rows`, in canonical order, of two or more parts, ascending."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import pairwise_distances_argmin
    from sklearn.preprocessing import normalize

    distinct = distinct_rows(X, rows)
    number = min(-(-2 * len(rows) // max_rows), MAX_SPLIT, len(distinct))  # parts differ in size
    if number > 1:
        rng = np.random.default_rng(seed)
        size = min(len(distinct), SAMPLE * number)
        sample = X[rows[np.sort(rng.choice(distinct, size=size, replace=False))]]
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # for nearly equal rows
            means = KMeans(number, n_init=1, random_state=seed).fit(sample)
        centroids = normalize(means.cluster_centers_).astype(X.dtype)
        nearest = [pairwise_distances_argmin(X[some], centroids) for some in blocks(rows)]
        label = np.concatenate(nearest)  # by cosine, as rows are unit vectors
        if np.ptp(label) > 0:
            return [np.flatnonzero(label == k) for k in np.unique(label)]
    return np.array_split(np.arange(len(rows)), -(-len(rows) // max_rows))  # nearly equal rows
