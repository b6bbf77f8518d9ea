"""RAPTOR's clustering: dimension reduction and a Gaussian mixture, first globally, then locally.

Sarthi et al., RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval
(ICLR 2024), section 3.
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.sparse import csr_array, hstack

from hierindex.core.arguments import Floats2d, Ints1d, is_number, is_whole, require
from hierindex.core.membership import (
    Membership,
    blocks,
    canonical_order,
    distinct_rows,
    from_groups,
    in_rows_of,
    one_thread,
    strongest_first,
    weighted_groups,
)
from hierindex.core.reduce import MAX_NEIGHBOURS, principal_coordinates, umap_coordinates

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture


COARSE = (1, 2, 4, 8, 16, 32, 50)  # numbers of components; RAPTOR tries all from 1 to 49
FINE = 1 / 8  # relative resolution of the best number
ROUNDING = 1e-7  # of single precision; rows that differ by less are one cluster
MIN_UMAP_ROWS = 200  # distinct; importing umap takes 2 s, principal components are immediate
REG_COVAR = 3e-2  # added to variances; less gives outliers components of their own
ROWS_PER_DIM = 4  # a Gaussian needs a few rows per principal component

MAX_POOL = 10_000  # UMAP takes 7 s; smaller pools are faster and separate more related rows
MAX_SPLIT = 64  # parts per k-means
SAMPLE = 256  # rows per centroid, the default of faiss


@dataclass(frozen=True)
class Mixture:
    """Settings for clustering by Gaussian mixtures; a row is the vector of a node.

    Parameters
    ----------
    reduction : {"umap", "pca"}
        Dimension reduction in the first pass, over all rows; "umap" by default. With fewer than 200
        distinct rows, and in the second pass over each cluster, PCA is used.
    n_dims : int
        Maximum number of dimensions after the reduction; 10 by default.
    target_size : int, optional
        Mean number of rows per group in the second pass, at least 2; 14 by default. If None, the
        BIC chooses the number of groups, as in the first pass and in RAPTOR.
    min_weight : float in (0, 1]
        Minimum posterior probability for a row to join a group in addition to its most likely one;
        0.25 by default. Lower values give more overlap.
    max_parents : {1, 2, 3}
        Maximum number of groups that a row joins; 3 by default.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """

    # Chosen by V-measures on squad's paragraphs by article and chunks of five books by book.
    reduction: Literal["umap", "pca"] = "umap"
    n_dims: int = 10  # as RAPTOR
    target_size: int | None = 14  # about 9 within the default caps; RAPTOR's groups have 7
    min_weight: float = 0.25  # RAPTOR's 0.1: 22% more summaries, which find no more
    max_parents: int = 3

    def __post_init__(self) -> None:
        size, weight = self.target_size, self.min_weight
        require(self.reduction in ("umap", "pca"), "reduction", "umap or pca", self.reduction)
        require(is_whole(self.n_dims, 1), "n_dims", "a whole number of at least 1", self.n_dims)
        holds = size is None or is_whole(size, 2)
        require(holds, "target_size", "a whole number of at least 2 rows", size)
        require(is_number(weight) and 0 < weight <= 1, "min_weight", "in (0, 1]", weight)
        holds = is_whole(self.max_parents, 1) and self.max_parents <= 3
        require(holds, "max_parents", "1, 2 or 3", self.max_parents)


DEFAULT = Mixture()


def fitted(Z: Floats2d, seed: int, number: int) -> "GaussianMixture":
    """Fit a Gaussian mixture of `number` <= n_rows components.

    A step of EM costs O(n_rows * number * n_dims).
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        # Without convergence the BIC still compares numbers; a given number is used as it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(
            number, covariance_type="diag", reg_covar=REG_COVAR, random_state=seed
        ).fit(Z)


def best_fitted(Z: Floats2d, seed: int, *, most: int) -> "GaussianMixture":
    """Fit mixtures of up to min(most, 50) components; return the one with the lowest BIC.

    A coarse grid of numbers is tried first, then midpoints around the best one. Each number is
    fitted once.
    """
    fits: dict[int, GaussianMixture] = {}
    value: dict[int, float] = {}
    untried = {min(number, most) for number in COARSE}
    while untried:
        for number in sorted(untried):
            fits[number] = fitted(Z, seed, number)
            value[number] = float(fits[number].bic(Z))
        tried = sorted(fits)
        best = min(tried, key=value.__getitem__)
        at = tried.index(best)
        neighbours = (*tried[max(at - 1, 0) : at], *tried[at + 1 : at + 2])
        untried = {(n + best) // 2 for n in neighbours if abs(n - best) > max(1, best * FINE)}
    return fits[best]


def mixture(X: Floats2d, *, model: Mixture = DEFAULT, seed: int = 0) -> Membership:
    """Cluster rows softly by two passes of dimension reduction and Gaussian mixture.

    The second pass splits each cluster of the first.

    Parameters
    ----------
    X : (n_rows, n_dims) unit vectors
        At least one; their order does not affect the result.
    model : Mixture
    seed : int

    Returns
    -------
    (n_rows, n_groups) csr_array
        A row belongs to its most likely group and to at most `max_parents` - 1 others with a
        posterior of at least `min_weight`.

    Notes
    -----
    Fits about 12 mixtures to all rows and one to each cluster. UMAP's nearest neighbours cost
    O(n_rows^2).
    """
    order = canonical_order(X)
    with one_thread():
        return in_rows_of(_in_two_passes(X[order], model, seed), order)


def _in_two_passes(X: Floats2d, model: Mixture, seed: int) -> Membership:
    """Cluster rows that are in canonical order."""
    first = strongest(csr_array(_posteriors(X, model, seed, is_first=True)), model)
    both = []
    for rows, weight in weighted_groups(first):
        second = _posteriors(X[rows], model, seed, is_first=False)
        P = np.zeros((len(X), second.shape[1]))
        P[rows] = weight[:, None] * second
        both.append(csr_array(P))
    return strongest(csr_array(hstack(both)), model)


def strongest(P: csr_array, model: Mixture) -> Membership:
    """Return the memberships that `min_weight` and `max_parents` allow."""
    row, order = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr)), strongest_first(P)
    rank = np.arange(P.nnz) - P.indptr[row]
    joins = (rank == 0) | ((rank < model.max_parents) & (P.data[order] >= model.min_weight))
    kept = order[joins]
    M = csr_array((P.data[kept], (row[kept], P.indices[kept])), shape=P.shape)
    return from_groups(weighted_groups(M), P.shape[0])


def _posteriors(X: Floats2d, model: Mixture, seed: int, *, is_first: bool) -> Floats2d:
    """Return the (n_rows, n_components) responsibilities of a mixture of the reduced rows."""
    n_distinct = len(distinct_rows(X, np.arange(len(X))))
    if n_distinct < 3 or X.std(axis=0).max() < ROUNDING:
        return np.ones((len(X), 1))
    if is_first and model.reduction == "umap" and n_distinct >= MIN_UMAP_ROWS:
        n_neighbors = min(int(np.sqrt(len(X) - 1)), MAX_NEIGHBOURS)  # as RAPTOR, but bounded
        n_dims = min(model.n_dims, n_distinct - 2)  # the limit of UMAP's spectral start
        Z = umap_coordinates(X, n_dims, n_neighbors=n_neighbors, seed=seed)
    else:
        Z = principal_coordinates(X, min(model.n_dims, max(1, len(X) // ROWS_PER_DIM)))
    if is_first or model.target_size is None:
        fit = best_fitted(Z, seed, most=max(1, n_distinct // 3))
    else:
        number = max(1, round(len(X) / model.target_size))
        fit = fitted(Z, seed, min(number, n_distinct))
    return np.asarray(fit.predict_proba(Z))


def partition(X: Floats2d, *, max_rows: int = MAX_POOL, seed: int = 0) -> Ints1d:
    """Partition rows into pools of similar rows; return each row's pool, (n_rows,) int64.

    No pool has more than `max_rows` rows, even of identical ones. The order of the rows does not
    affect the pools.

    Notes
    -----
    Learns centroids from a sample and splits large parts again; a split costs O(n_rows * n_dims).
    I. Dhillon and D. Modha, Concept Decompositions for Large Sparse Text Data Using Clustering
    (2001).
    """
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
    """Return the positions in `rows`, in canonical order, of two or more parts, ascending."""
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
