"""Dimension reduction before clustering: UMAP or principal components."""

import warnings
from functools import cache
from typing import Any

import numpy as np

from hierindex.core.membership import Floats2d, Ints1d

EPOCHS = 50  # UMAP's default of 500 takes longer and does not raise the V-measure on squad
MAX_NEIGHBOURS = 50  # RAPTOR's sqrt(n - 1) at 2,500 rows; fewer lower the V-measure on books
UMAP_WARNINGS = (  # about intended settings
    "precomputed_knn",
    "n_jobs value",
    "Embedding a total of",
    "Spectral initialisation failed",
)


def principal_coordinates(X: Floats2d, n_dims: int) -> Floats2d:
    """Return principal components scaled to a mean square of 1, (n_rows, n_dims) float64.

    `X` has two or more distinct rows. Columns are fewer if `X` has fewer rows or columns.
    """
    from sklearn.decomposition import PCA

    n_dims = min(n_dims, *X.shape)
    solver = "full" if len(X) < X.shape[1] else "covariance_eigh"
    Z = PCA(n_dims, svd_solver=solver).fit_transform(X.astype(np.float64))
    return np.asarray(Z / Z.std())


def umap_coordinates(X: Floats2d, n_dims: int, *, n_neighbors: int, seed: int) -> Floats2d:
    """Return UMAP coordinates of unit vectors by cosine, (n_rows, n_dims) float64.

    `n_neighbors`, the row itself included, are exact: O(n_rows^2 * n_dims'). The import takes 2 s,
    and half a minute on first use. L. McInnes et al., UMAP (2018).
    """
    with warnings.catch_warnings():
        for message in UMAP_WARNINGS:
            warnings.filterwarnings("ignore", message)
        reducer = _umap_class()(
            n_neighbors=n_neighbors,
            n_components=n_dims,
            min_dist=0.0,
            metric="cosine",
            n_epochs=EPOCHS,
            random_state=seed,
            n_jobs=1,
            # UMAP's own search is approximate and compiles for 13 s.
            precomputed_knn=(*nearest_rows(X, n_neighbors), None),
        )
        return np.asarray(reducer.fit_transform(X), dtype=np.float64)


def nearest_rows(X: Floats2d, n_neighbors: int) -> tuple[Ints1d, Floats2d]:
    """Return the indices and cosine distances of each unit vector's nearest rows.

    Both are (n_rows, n_neighbors), the nearest first, beginning with the row itself;
    `n_neighbors` is at least 2.
    """
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=n_neighbors - 1, algorithm="brute", metric="sqeuclidean")
    distances, indices = nearest.fit(X).kneighbors()  # without the row itself
    itself = np.arange(len(X))[:, None]
    distances = np.hstack([0 * itself, distances / 2])
    return np.hstack([itself, indices]), distances.astype(np.float32)


@cache
def _umap_class() -> Any:
    """Import UMAP with on-disk caching of the functions that it compiles in each process (8 s)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about optional dependencies
        from umap import UMAP, layouts, umap_

    for function in (
        umap_.smooth_knn_dist,
        umap_.compute_membership_strengths,
        layouts._nb_optimize_layout_euclidean_single_epoch,
    ):
        function.enable_caching()
    return UMAP
