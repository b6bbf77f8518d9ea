"""RAPTOR's clustering: reduce the dimensions, fit a Gaussian mixture, globally and then locally.

Sarthi et al., RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval
(ICLR 2024), section 3.
"""

import warnings

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.membership import Floats2d, Ints1d, Membership, from_groups

N_DIMS = 10  # of the reduced space (RAPTOR, appendix on clustering)
LOCAL_NEIGHBOURS = 10  # of the second, local UMAP (as RAPTOR)
MAX_COMPONENTS = 50  # RAPTOR searches 1 to 49
N_FITS = 12  # numbers of components tried; every number would be 49 fits, most of RAPTOR's time
# Squad's 619 paragraphs by article: V 0.845 with 1e-4, as lone rows lower the BIC; 0.914 from 1e-2
# on, ARI 0.63 and 0.845. Full covariances fail at 96 components, diagonal ones do not.
REG_COVAR = 3e-2
MIN_WEIGHT = 0.1  # a row joins a component from this posterior on (as RAPTOR)
MAX_PARENTS = 3
MIN_UMAP_ROWS = 200  # below, PCA: umap takes seconds to import and 19 s to compile


def mixture(X: Floats2d, *, seed: int = 0) -> Membership:
    """Soft clusters of rows by two passes of dimension reduction and Gaussian mixture.

    The first pass splits all rows, the second splits each of its clusters again. The
    number of components of a mixture is the one of lowest BIC.

    Parameters
    ----------
    X : (n_rows, n_dims) unit vectors
        Rows are sorted before anything random, so that their order does not matter.
    seed : int
        Of UMAP and of the mixtures' initialisation.

    Returns
    -------
    (n_rows, n_groups) csr_array
        A row belongs to its likeliest group and to at most two others whose posterior is
        at least 0.1.

    Notes
    -----
    One UMAP and at most 12 fits on all rows, then the same again on all clusters together.
    """
    if len(X) == 0:
        return csr_array((0, 0))
    order = np.lexsort(X.T[::-1])
    X = X[order]
    groups: list[Ints1d] = []
    weights = []
    P = _posteriors(X, n_neighbors=int(np.sqrt(max(len(X) - 1, 1))), seed=seed)
    for component in range(P.shape[1]):
        rows = np.flatnonzero(P[:, component])
        local = _posteriors(X[rows], n_neighbors=LOCAL_NEIGHBOURS, seed=seed)
        for part in local.T:
            inside = np.flatnonzero(part)
            groups.append(order[rows[inside]])
            weights.append(P[rows[inside], component] * part[inside])
    row = np.concatenate(groups)
    column = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    R = _truncated(csr_array((np.concatenate(weights), (row, column))).toarray())
    columns = [np.flatnonzero(r) for r in R.T]
    kept = [g for g, rows in enumerate(columns) if len(rows)]
    return from_groups([columns[g] for g in kept], [R[columns[g], g] for g in kept], len(X))


def _posteriors(X: Floats2d, *, n_neighbors: int, seed: int) -> Floats2d:
    """(n_rows, n_components) posteriors, zero where a row does not join; no empty column."""
    n_distinct = len(np.unique(X, axis=0))
    if n_distinct < 3:
        return np.ones((len(X), 1))
    small = n_distinct < MIN_UMAP_ROWS
    Z = _pca(X) if small else _umap(X, n_neighbors=n_neighbors, seed=seed)
    P = _truncated(_mixture_of_lowest_bic(Z, seed=seed))
    return P[:, P.any(axis=0)]


def _truncated(P: Floats2d) -> Floats2d:
    """`P` with the small entries of each row set to zero; the largest always stays."""
    joins = P >= MIN_WEIGHT
    joins[np.arange(len(P)), P.argmax(axis=1)] = True
    if P.shape[1] > MAX_PARENTS:
        joins &= np.argsort(np.argsort(-P, axis=1, kind="stable"), axis=1) < MAX_PARENTS
    return np.where(joins, P, 0.0)


def _mixture_of_lowest_bic(Z: Floats2d, *, seed: int) -> Floats2d:
    """Responsibilities (n_rows, n_components) of the best mixture; each is fitted once."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    most = min(MAX_COMPONENTS, max(1, len(np.unique(Z, axis=0)) // 3))
    numbers = np.unique(np.geomspace(1, most, N_FITS).round().astype(int))
    best, lowest = None, np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its BIC is high, so it is not chosen
        for number in numbers:
            fit = GaussianMixture(
                number, covariance_type="diag", reg_covar=REG_COVAR, random_state=seed
            ).fit(Z)
            if (bic := fit.bic(Z)) < lowest:
                best, lowest = fit, bic
    assert best is not None  # a mixture of one component always has a finite BIC
    return np.asarray(best.predict_proba(Z))


def _pca(X: Floats2d) -> Floats2d:
    """(n_rows, N_DIMS or fewer) principal coordinates, scaled to dwarf REG_COVAR."""
    centred = X - X.mean(axis=0)
    U, s, _ = np.linalg.svd(centred, full_matrices=False)
    n_dims = min(N_DIMS, max(1, len(X) // 4))  # a diagonal Gaussian needs a few rows per dimension
    Z = U[:, :n_dims] * s[:n_dims]
    return np.asarray(Z / Z.std())


def _umap(X: Floats2d, *, n_neighbors: int, seed: int) -> Floats2d:
    """(n_rows, N_DIMS) UMAP coordinates under cosine distance."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # umap warns of its own defaults and of numba's
        from umap import UMAP

        reducer = UMAP(
            n_neighbors=n_neighbors,
            n_components=N_DIMS,
            min_dist=0.0,
            metric="cosine",
            random_state=seed,
            n_jobs=1,
        )
        return np.asarray(reducer.fit_transform(X))
