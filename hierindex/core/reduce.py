"""Dimension reduction: UMAP or principal components before clustering, t-SNE for a map."""

import warnings
from functools import cache
from typing import Any

import numpy as np

from hierindex.core.arguments import Floats2d, Ints1d
from hierindex.core.membership import one_thread

EPOCHS = 50  # UMAP's default of 500 takes longer and does not raise the V-measure on squad
MAX_NEIGHBOURS = 50  # RAPTOR's sqrt(n - 1) at 2,500 rows; fewer lower the V-measure on books
FEW = 10  # rows that principal components place as well as t-SNE does
PERPLEXITY = 15  # neighbours that t-SNE looks at; of 10 to 50, it keeps the nearest ten best
ITERATIONS = 350  # of t-SNE, 250 of them with exaggeration; more keep no more neighbours
ANGLE = 0.8  # of Barnes and Hut; 0.5 takes 1.4 times as long and keeps no more neighbours


def principal_coordinates(X: Floats2d, n_dims: int) -> Floats2d:
    """Return principal components scaled to a mean square of 1, (n_rows, n_dims) float64.

    `X` has two or more distinct rows. Columns are fewer if `X` has fewer rows or columns.
    """
    Z = principal_components(X, n_dims)
    return np.asarray(Z / Z.std())


def principal_components(X: Floats2d, n_dims: int) -> Floats2d:
    """Return the first principal components of rows, (n_rows, n_dims) float64.

    Columns are fewer if `X` has fewer rows or columns. They equal scikit-learn's PCA except for
    signs: the value of largest magnitude in each is positive.

    Notes
    -----
    O(n_rows * n_columns * m + m^3), with m the smaller of n_rows and n_columns: the eigenvectors of
    the smaller matrix of products, in a third of the time of a singular value decomposition.
    """
    X = X - X.mean(axis=0, dtype=np.float64)
    is_wide = len(X) < X.shape[1]
    values, vectors = np.linalg.eigh(X @ X.T if is_wide else X.T @ X)
    Z = vectors * np.sqrt(np.maximum(values, 0)) if is_wide else X @ vectors
    Z = Z[:, : -n_dims - 1 : -1]  # eigenvalues ascend
    largest = Z[np.abs(Z).argmax(axis=0), np.arange(Z.shape[1])]
    return np.asarray(Z * np.where(largest < 0, -1, 1))


def umap_coordinates(X: Floats2d, n_dims: int, *, n_neighbors: int, seed: int) -> Floats2d:
    """Return UMAP coordinates of unit vectors by cosine, (n_rows, n_dims) float64.

    The `n_neighbors` nearest rows, the row itself included, are found by comparing all rows, in
    O(n_rows^2 * n_dims'). The import takes 2 s,
    and half a minute on first use. L. McInnes et al., UMAP (2018).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about intended settings
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


def plane_coordinates(X: Floats2d) -> Floats2d:
    """Return t-SNE coordinates in the plane: similar unit vectors are near each other.

    Only distances between neighbours are meaningful. The coordinates depend on the order of the
    rows; nothing is random.

    Parameters
    ----------
    X : (n_rows, n_dims) floats
        Unit vectors.

    Returns
    -------
    (n_rows, 2) float64
        In [-1, 1], with the same scale on both axes; zeros if all rows are equal.

    Notes
    -----
    O(n_rows^2 * n_dims) for neighbours, and O(n_rows * log(n_rows)) for each of 350 iterations, on
    one thread: 2.5 s for 2,000 rows, 9 s for 5,000. On 2,000 chunks of books, t-SNE keeps 0.54 of
    the nearest ten rows and UMAP 0.46. UMAP's functions also compile for half a minute on first
    use. L. van der Maaten, Accelerating t-SNE using Tree-Based Algorithms (2014).
    """
    Z = np.zeros((len(X), 2))
    if (X[:1] == X).all():
        return Z
    with one_thread():  # or sums, and so places, would differ from run to run
        principal = principal_coordinates(X, 2)
        Z[:, : principal.shape[1]] = principal
        if len(X) > FEW:
            from sklearn.manifold import TSNE

            Z = TSNE(
                init=(1e-4 * Z).astype(np.float32),  # as small as sklearn's own
                perplexity=min(PERPLEXITY, len(X) / 3),
                max_iter=ITERATIONS,
                angle=ANGLE,
            ).fit_transform(X.astype(np.float32))
    Z = Z.astype(np.float64)
    Z -= (Z.max(axis=0) + Z.min(axis=0)) / 2
    Z /= np.abs(Z).max()
    return Z


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
    """Import UMAP, and cache on disk three functions that it compiles in each process (19 s).

    One of them, which takes 3 s, is private.
    """
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
