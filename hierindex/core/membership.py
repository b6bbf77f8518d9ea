"""Sparse membership matrices: which groups each row belongs to, and with what weights."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d
from hierindex.errors import InputError

Membership = csr_array
"""(n_rows, n_groups) float64; rows sum to 1; no empty row, no empty column."""


def one_hot(labels: Ints1d) -> Membership:
    """Return the (n_rows, n_groups) membership of a hard clustering.

    Groups are numbered by their first rows, whatever the labels are.

    >>> one_hot(np.array([7, 7, 2])).toarray()
    array([[1., 0.],
           [1., 0.],
           [0., 1.]])
    """
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    n = len(labels)
    return csr_array((np.ones(n), (np.arange(n), rank[group])), shape=(n, len(first)))


def from_groups(groups: Sequence[Ints1d], weights: Sequence[Floats1d], n_rows: int) -> Membership:
    """Return the membership of explicit groups in canonical form.

    Groups hold row indices in any order and have positive weights; every row is in at least one.
    Equal groups are merged, and a group of one row is dropped if the row is in another group. Rows
    are normalised and columns sorted.
    """
    total: dict[tuple[int, ...], Floats1d] = {}
    for group, weight in zip(groups, weights, strict=True):
        ascending = np.argsort(group)
        key = tuple(group[ascending].tolist())
        total[key] = total.get(key, 0.0) + weight[ascending]
    total.pop((), None)
    if not total:
        return csr_array((n_rows, 0))
    n_groups_of = np.bincount(np.concatenate([*map(np.array, total)]), minlength=n_rows)
    kept = sorted(rows for rows in total if len(rows) > 1 or n_groups_of[rows[0]] == 1)
    columns = np.repeat(np.arange(len(kept)), [len(rows) for rows in kept])
    weight = np.concatenate([total[rows] for rows in kept])
    places = np.concatenate([*map(np.array, kept)]), columns
    return normalised(csr_array((weight, places), shape=(n_rows, len(kept))))


def in_rows_of(M: Membership, order: Ints1d) -> Membership:
    """Undo a permutation: row i of `M` becomes row order[i], and columns are sorted again."""
    return from_groups([order[group] for group in groups_of(M)], weights_of(M), M.shape[0])


def normalised(M: csr_array) -> Membership:
    """Return a copy of `M` whose rows sum to 1."""
    M = M.astype(np.float64)  # a copy
    M.data /= np.repeat(np.asarray(M.sum(axis=1)).ravel(), np.diff(M.indptr))
    return M


def groups_of(M: Membership) -> list[Ints1d]:
    """Return the row indices of each group, ascending.

    >>> [group.tolist() for group in groups_of(one_hot(np.array([0, 1, 0])))]
    [[0, 2], [1]]
    """
    C = M.tocsc()
    C.sort_indices()
    return [C.indices[a:b].astype(np.int64) for a, b in pairwise(C.indptr)]


def weights_of(M: Membership) -> list[Floats1d]:
    """Return the weights of each group's rows, in the order of `groups_of`."""
    C = M.tocsc()
    C.sort_indices()
    return [C.data[a:b] for a, b in pairwise(C.indptr)]


def strongest_parent(M: Membership) -> Ints1d:
    """Return the (n_rows,) column of each row's largest weight; ties go to the lowest column.

    Raises
    ------
    InputError
        If a row is empty; names the row.

    Examples
    --------
    >>> strongest_parent(csr_array([[0.3, 0.7], [0.5, 0.5]])).tolist()
    [1, 0]
    """
    empty = np.flatnonzero(np.diff(M.indptr) == 0)
    if len(empty):
        raise InputError(f"Every row must belong to a group; row {empty[0]} belongs to none.")
    row = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
    order = np.lexsort((M.indices, -M.data, row))
    return M.indices[order[M.indptr[:-1]]].astype(np.int64)


def centroids(M: Membership, X: Floats2d) -> Floats2d:
    """Return the (n_groups, n_dims) unit mean vector of each group, weighted by membership.

    A group whose vectors cancel out gets the vector of its first row.
    """
    C = np.asarray(M.T @ X)
    length = np.linalg.norm(C, axis=1, keepdims=True)
    for lost in np.flatnonzero(length[:, 0] < 1e-12):
        C[lost], length[lost] = X[groups_of(M)[lost][0]], 1.0
    return np.asarray(C / length)
