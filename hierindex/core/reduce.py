"""Dimension reduction before a mixture is fitted: UMAP or principal components."""

import warnings
from functools import cache
from typing import Any

import numpy as np

from hierindex.core.membership import Floats2d, Ints1d

# UMAP pulls neighbours together in so many sweeps; its own default is 500, and most of its time.
# V of squad's paragraphs by article, two seeds, 24 neighbours: 0.914 and 0.907 with 50, 0.913 and
# 0.913 with 100, 0.911 and 0.910 with 200, 0.904 and 0.907 with 500.
EPOCHS = 50
# RAPTOR's sqrt(n - 1) is 50 at 2,500 rows. V of 2,000 chunks by book: 0.534 with at most 10, 0.531
# with 15, 0.557 with 30, 0.565 with 50.
MAX_NEIGHBOURS = 50
UMAP_SAYS = (  # of what is asked of it on purpose
    "precomputed_knn",
    "n_jobs value",
    "Embedding a total of",
    "Spectral initialisation failed",
)
BLOCK = 1024  # rows whose similarities to all are held at once


def principal_coordinates(X: Floats2d, n_dims: int) -> Floats2d:
    """Coordinates on the axes of largest variance, scaled to a mean square of 1.

    Parameters
    ----------
    X : (n_rows, n_dims') with two distinct rows at least
    n_dims : int

    Returns
    -------
    (n_rows, n_dims) float64
        Fewer columns where `X` has fewer rows or columns.
    """
    from sklearn.decomposition import PCA

    n_dims = min(n_dims, *X.shape)
    solver = "full" if len(X) < X.shape[1] else "covariance_eigh"
    Z = PCA(n_dims, svd_solver=solver).fit_transform(X.astype(np.float64))
    return np.asarray(Z / Z.std())


def umap_coordinates(X: Floats2d, n_dims: int, *, n_neighbors: int, seed: int) -> Floats2d:
    """Coordinates under which neighbours by cosine stay neighbours.

    Parameters
    ----------
    X : (n_rows, n_dims') unit vectors
    n_dims : int
    n_neighbors : int
        Of each row, itself included; found exactly.
    seed : int

    Returns
    -------
    (n_rows, n_dims) float64

    Notes
    -----
    L. McInnes et al., UMAP: Uniform Manifold Approximation and Projection (2018). O(n_rows^2 *
    n_dims') for the neighbours, in blocks, and O(n_rows * n_neighbors) for the rest. A fresh
    process imports for 2 s; the first ever on a machine compiles for half a minute.
    """
    with warnings.catch_warnings():
        for said in UMAP_SAYS:
            warnings.filterwarnings("ignore", said)
        reducer = _umap_class()(
            n_neighbors=n_neighbors,
            n_components=n_dims,
            min_dist=0.0,
            metric="cosine",
            n_epochs=EPOCHS,
            random_state=seed,
            n_jobs=1,
            # Neighbours of its own it would find approximately, and compile 13 s for it.
            precomputed_knn=(*nearest_rows(X, n_neighbors), None),
        )
        return np.asarray(reducer.fit_transform(X), dtype=np.float64)


def nearest_rows(X: Floats2d, n_neighbors: int) -> tuple[Ints1d, Floats2d]:
    """Exact nearest neighbours of each row by cosine distance.

    Parameters
    ----------
    X : (n_rows, n_dims) unit vectors
    n_neighbors : int
        At most n_rows.

    Returns
    -------
    indices : (n_rows, n_neighbors) int64
        Nearest first, beginning with the row itself.
    distances : (n_rows, n_neighbors) float32
    """
    indices, distances = [], []
    for start in range(0, len(X), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(X)))
        similarity = X[rows] @ X.T
        similarity[rows - start, rows] = np.inf  # itself first, also among its duplicates
        near = np.argpartition(-similarity, n_neighbors - 1, axis=1)[:, :n_neighbors]
        found = np.take_along_axis(similarity, near, axis=1)
        order = np.argsort(-found, axis=1, kind="stable")
        indices.append(np.take_along_axis(near, order, axis=1))
        distances.append(np.maximum(1 - np.take_along_axis(found, order, axis=1), 0))
    return np.concatenate(indices), np.concatenate(distances).astype(np.float32)


@cache
def _umap_class() -> Any:
    """UMAP, told to keep on disk the three functions that it compiles each time.

    Numba keeps them where it keeps umap's others: beside its source files, or in the user's
    cache folder. It saves 8 s of each process.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what else could be installed
        from umap import UMAP, layouts, umap_

    for function in (
        umap_.smooth_knn_dist,
        umap_.compute_membership_strengths,
        layouts._nb_optimize_layout_euclidean_single_epoch,
    ):
        function.enable_caching()
    return UMAP
