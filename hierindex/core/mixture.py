"""RAPTOR's clustering: reduce the dimensions, fit a Gaussian mixture, globally and then locally.

Sarthi et al., RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval
(ICLR 2024), section 3.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.arguments import is_number, is_whole, require
from hierindex.core.gaussian import Covariance, Criterion, Shape, best_posteriors, posteriors
from hierindex.core.membership import (
    Floats2d,
    Membership,
    from_groups,
    groups_of,
    in_rows_of,
    weights_of,
)
from hierindex.core.reduce import MAX_NEIGHBOURS, principal_coordinates, umap_coordinates
from hierindex.core.rows import canonical_order, distinct_rows, unit_rows
from hierindex.core.threads import one_thread

MIN_UMAP_ROWS = 200  # below, principal components: importing umap takes 2 s, these no time
ROWS_PER_DIM = 4  # of principal components: a Gaussian needs a few rows for each dimension


@dataclass(frozen=True)
class Mixture:
    """How rows are clustered by Gaussian mixtures; the defaults are those measured best.

    Parameters
    ----------
    reduction : {"umap", "pca"}
        Of the first pass, where it has 200 distinct rows or more; otherwise principal
        components.
    n_dims : int
        Of the reduced space.
    covariance : {"diag", "full", "tied", "spherical"}
        Of the components.
    criterion : {"bic", "aic"}
        Chooses the number of components in the first pass: the lowest wins.
    target_size : int, optional
        Rows to a group on average: the second pass splits each cluster into as many
        components as give it. None: by the criterion there, too, as RAPTOR.
    min_weight : float
        A row joins, beside its likeliest group, those whose posterior is at least this.
        Lower gives more overlap.
    max_parents : int
        Groups that a row joins at most, from 1 to 3.
    reg_covar : float
        Added to the variances, so that no component shrinks to a point; 1e-6 at least. UMAP's
        coordinates span about 10, principal ones have a mean square of 1.

    Raises
    ------
    InputError
        If one of them is out of its range; names it.
    """

    # V-measures of two partings with target_size=None, seed 0: squad's 619 paragraphs by article
    # and 2,000 chunks of five books by book. The defaults have 0.919 and 0.565.
    reduction: Literal["umap", "pca"] = "umap"  # pca 0.888 and 0.541
    n_dims: int = 10  # as RAPTOR; 5: 0.918 and 0.522, 20: 0.913 and 0.581
    # full 0.911 and 0.611 in twice the time, spherical 0.881 and 0.477, tied 0.836 and 0.472.
    covariance: Covariance = "diag"
    criterion: Criterion = "bic"  # aic 0.760 and 0.390
    # Groups of 8.8 rows within the default caps, where RAPTOR's have 6.7. By BIC the caps would
    # make them of 11.0: mean cosine to the centroid 0.835 and 0.815 (1,933 chunks of the Warren
    # Report). V is 0.839 and 0.402, of LlamaIndex's pack 0.744 and 0.395; with 10 rows it is
    # 0.821 and 0.392.
    target_size: int | None = 14
    min_weight: float = 0.1  # as RAPTOR; parents of those chunks 1.28, 0.3: 1.08, 0.01: 1.84
    max_parents: int = 3  # a bound of the design: a summary of everything is about nothing
    # 1e-4: 0.851 and 0.470, as lone rows get components of their own; 1e-2: 0.915 and 0.501;
    # 0.1: 0.914 and 0.621, but chapters of the Warren Report 0.505 where 0.03 has 0.534.
    reg_covar: float = 3e-2

    def __post_init__(self) -> None:
        for name in ("reduction", "covariance", "criterion"):
            choices, given = get_args(type(self).__annotations__[name]), getattr(self, name)
            require(given in choices, name, f"one of {', '.join(choices)}", given)
        size, weight, floor = self.target_size, self.min_weight, self.reg_covar
        require(is_whole(self.n_dims, 1), "n_dims", "a whole number of at least 1", self.n_dims)
        holds = size is None or is_whole(size, 2)
        require(holds, "target_size", "a whole number of at least 2 rows", size)
        require(is_number(weight) and 0 < weight <= 1, "min_weight", "in (0, 1]", weight)
        holds = is_whole(self.max_parents, 1) and self.max_parents <= 3
        require(holds, "max_parents", "1, 2 or 3", self.max_parents)
        require(is_number(floor) and floor >= 1e-6, "reg_covar", "at least 1e-6", floor)


DEFAULT = Mixture()


def mixture(X: Floats2d, *, model: Mixture = DEFAULT, seed: int = 0) -> Membership:
    """Soft clusters of rows by two passes of dimension reduction and Gaussian mixture.

    The first pass splits all rows, the second splits each of its clusters again.

    Parameters
    ----------
    X : (n_rows, n_dims) unit vectors
        Rows are sorted before anything random, so that their order does not matter.
    model : Mixture
    seed : int
        Of UMAP and of the mixtures' initialisation.

    Returns
    -------
    (n_rows, n_groups) csr_array
        A row belongs to its likeliest group and to at most `max_parents` - 1 others whose
        posterior is at least `min_weight`.

    Raises
    ------
    InputError
        If a row is not finite or no unit vector, naming the row; or the seed is negative.

    Notes
    -----
    One reduction of all rows and about 12 mixtures, each fitted once, then one small mixture
    for each cluster. O(n_rows^2) for the neighbours of UMAP; `partition` keeps n_rows small.
    """
    X = unit_rows(X)
    require(is_whole(seed), "seed", "a whole number of at least 0", seed)
    if len(X) == 0:
        return csr_array((0, 0))
    order = canonical_order(X)
    with one_thread():
        return in_rows_of(_in_two_passes(X[order], model, seed), order)


def _in_two_passes(X: Floats2d, model: Mixture, seed: int) -> Membership:
    """Groups of rows that stand in canonical order, so that equal rows are neighbours."""
    first = _strongest(csr_array(_posteriors(X, model, seed, is_first=True)), model)
    row, column, weight, n_groups = [], [], [], 0
    for rows, weight_in_first in zip(groups_of(first), weights_of(first), strict=True):
        P = weight_in_first[:, None] * _posteriors(X[rows], model, seed, is_first=False)
        inside, component = np.nonzero(P)
        row.append(rows[inside])
        column.append(n_groups + component)
        weight.append(P[inside, component])
        n_groups += P.shape[1]
    places = (np.concatenate(row), np.concatenate(column))
    both = csr_array((np.concatenate(weight), places), shape=(len(X), n_groups))
    return _strongest(both, model)


def _strongest(P: csr_array, model: Mixture) -> Membership:
    """The groups that each row joins, of all those that it has a posterior in."""
    row = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
    order = np.lexsort((P.indices, -P.data, row))  # each row's groups, strongest first
    rank = np.arange(P.nnz) - P.indptr[row]
    joins = (rank == 0) | ((rank < model.max_parents) & (P.data[order] >= model.min_weight))
    kept = order[joins]
    M = csr_array((P.data[kept], (row[kept], P.indices[kept])), shape=P.shape)
    return from_groups(groups_of(M), weights_of(M), P.shape[0])


def _posteriors(X: Floats2d, model: Mixture, seed: int, *, is_first: bool) -> Floats2d:
    """(n_rows, n_components) of a mixture fitted to the rows in fewer dimensions."""
    n_distinct = len(distinct_rows(X))
    if n_distinct < 3:
        return np.ones((len(X), 1))
    if is_first and model.reduction == "umap" and n_distinct >= MIN_UMAP_ROWS:
        n_neighbors = min(int(np.sqrt(len(X) - 1)), MAX_NEIGHBOURS)  # as RAPTOR, but bounded
        n_dims = min(model.n_dims, n_distinct - 2)  # as many as umap's start has
        Z = umap_coordinates(X, n_dims, n_neighbors=n_neighbors, seed=seed)
    else:
        Z = principal_coordinates(X, min(model.n_dims, max(1, len(X) // ROWS_PER_DIM)))
    shape = Shape(model.covariance, model.reg_covar, seed)
    if is_first or model.target_size is None:
        return best_posteriors(Z, shape, model.criterion, most=max(1, n_distinct // 3))
    number = max(1, round(len(X) / model.target_size))
    return posteriors(Z, shape, min(number, n_distinct))
