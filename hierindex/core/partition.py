"""Coarse split of large pools, so that the cost of clustering stays linear in the rows.

Spherical k-means on a sample, and again within each part that is still too large.
"""

import warnings

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


def partition(X: Floats2d, *, max_rows: int = MAX_POOL, seed: int = 0) -> Ints1d:
    """Split rows into parts of near rows, of `max_rows` at most: each row's part, (n_rows,) int64.

    `max_rows` holds also where the data will not split: then like rows come apart. Rows are sorted
    before anything random, so that their order does not matter.

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
    part, n_parts = np.empty(len(X), dtype=np.int64), 0
    waiting = [np.arange(len(X))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= max_rows:
            part[order[rows]] = n_parts
            n_parts += 1
        else:
            waiting += [rows[inside] for inside in _split(X[rows], max_rows, seed)]
    return part


def _split(X: Floats2d, max_rows: int, seed: int) -> list[Ints1d]:
    """Row indices, ascending, of two parts or more."""
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
        label = _nearest(X, _unit(means.cluster_centers_))
        if np.ptp(label) > 0:
            return [np.flatnonzero(label == k) for k in np.unique(label)]
    # Rows that no centroid tells apart.
    return np.array_split(np.arange(len(X)), -(-len(X) // max_rows))


def _nearest(X: Floats2d, centroids: Floats2d) -> Ints1d:
    """Index of the centroid of greatest cosine similarity to each row; ties to the first."""
    C = centroids.T.astype(np.float64)  # near ties must fall alike in whatever company
    starts = range(0, len(X), BLOCK)
    nearest = [(X[start : start + BLOCK] @ C).argmax(axis=1) for start in starts]
    return np.concatenate([np.empty(0, dtype=np.int64), *nearest])


def _unit(C: Floats2d) -> Floats2d:
    return np.asarray(C / np.maximum(np.linalg.norm(C, axis=1, keepdims=True), 1e-12))
