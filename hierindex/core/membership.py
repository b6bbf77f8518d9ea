"""The nodes of a level as arrays, and their memberships in groups, with weights."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d
from hierindex.errors import InputError

Membership = csr_array
"""(n_rows, n_groups) float64; rows sum to 1; no empty row, no empty column."""

_ALONE = RLock()
T = TypeVar("T", bound=np.generic)

BLOCK = 16_384  # rows
UNIT = 1e-3  # tolerance of the length; half precision is off by 5e-4
NO_HEADINGS: Ints1d = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Rows:
    """The nodes of a level as arrays, in document order.

    `X` holds unit vectors, (n_rows, n_dims), and `n_tokens` token counts, (n_rows,). Rows of one
    document have the same number in `document`, (n_rows,); a row of several documents has a
    negative number of its own. `level` is 0 for the leaves. `heading`, (n_rows,), is the level of
    the highest heading between a row and the one before it: 1 is the top level, 0 means no heading.

    When an existing tree is revised, `before` holds the weights of the rows in its groups, (n_rows,
    n_groups); a row that was in no group has an empty row. `is_part` is true if only some rows of
    the level are given and the others keep their groups. See `hierindex.core.tree.Revised`.
    """

    X: Floats2d
    n_tokens: Ints1d
    document: Ints1d
    level: int = 0
    heading: Ints1d = field(default_factory=lambda: NO_HEADINGS)
    before: Membership | None = None
    is_part: bool = False

    def __post_init__(self) -> None:
        if self.heading is NO_HEADINGS:
            object.__setattr__(self, "heading", np.zeros(len(self.X), dtype=np.int64))
        object.__setattr__(self, "X", unit_rows(self.X))

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Ints1d | slice) -> "Rows":
        columns = self.X[rows], self.n_tokens[rows], self.document[rows]
        return Rows(*columns, self.level, self.heading[rows])


def unit_rows(X: NDArray[Any]) -> Floats2d:
    """Return `X` as float32 or float64; raise InputError unless all rows are unit vectors.

    It is copied only if it has another dtype. The error names the first invalid row.
    """
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    length = np.sqrt(np.einsum("ij,ij->i", X, X))
    if len(wrong := np.flatnonzero(~(np.abs(length - 1) < UNIT))):
        row = wrong[0]
        raise InputError(f"Rows must be unit vectors; row {row} has length {length[row]:.6g}.")
    return X


def canonical_order(X: Floats2d) -> Ints1d:
    """Return an order of the rows that does not depend on their input order.

    Rows are sorted by their bytes; equal rows keep their order.

    >>> X = np.array([[0.6, 0.8], [1.0, 0.0]])
    >>> np.array_equal(X[canonical_order(X)], X[::-1][canonical_order(X[::-1])])
    True
    """
    row = np.dtype((np.void, X.dtype.itemsize * X.shape[1]))
    if any(np.signbit(block[block == 0]).any() for block in blocks(X)):
        X = X + 0.0  # -0.0 has other bytes than 0.0
    return np.argsort(np.ascontiguousarray(X).view(row).ravel(), kind="stable")


def blocks(X: NDArray[T]) -> Iterator[NDArray[T]]:
    """Yield blocks of consecutive rows, to limit the memory of computations on them."""
    return (X[start : start + BLOCK] for start in range(0, len(X), BLOCK))


def distinct_rows(X: Floats2d, order: Ints1d) -> Ints1d:
    """Return the first position of each distinct row in the canonical order of the rows.

    >>> distinct_rows(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 2, 1])).tolist()
    [0, 2]
    """
    is_new = [np.ones(min(len(order), 1), dtype=bool)]
    for before, after in zip(blocks(order[:-1]), blocks(order[1:]), strict=True):
        is_new.append((X[before] != X[after]).any(axis=1))
    return np.flatnonzero(np.concatenate(is_new))


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


def from_groups(groups: Iterable[tuple[Ints1d, Floats1d]], n_rows: int) -> Membership:
    """Return the membership of explicit groups in canonical form.

    A group is given by its row indices, in any order, and their positive weights; every row is in
    at least one group. Equal groups are merged, and a group of one row is dropped if the row is in
    another group. Rows are normalised and columns sorted.
    """
    total: dict[tuple[int, ...], Floats1d] = {}
    for group, weight in groups:
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
    return from_groups(((order[group], w) for group, w in weighted_groups(M)), M.shape[0])


def normalised(M: csr_array) -> Membership:
    """Return a copy of `M` whose rows sum to 1."""
    M = M.astype(np.float64)  # a copy
    M.data /= np.repeat(np.asarray(M.sum(axis=1)).ravel(), np.diff(M.indptr))
    return M


def weighted_groups(M: csr_array) -> list[tuple[Ints1d, Floats1d]]:
    """Return the row indices of each group, ascending, and the weights of these rows.

    >>> [(rows.tolist(), w.tolist()) for rows, w in weighted_groups(one_hot(np.array([0, 1, 0])))]
    [([0, 2], [1.0, 1.0]), ([1], [1.0])]
    """
    C = M.tocsc()  # whose indices ascend
    return [(C.indices[a:b].astype(np.int64), C.data[a:b]) for a, b in pairwise(C.indptr)]


def groups_of(M: csr_array) -> list[Ints1d]:
    """Return the row indices of each group, ascending."""
    return [rows for rows, _ in weighted_groups(M)]


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
    return M.indices[strongest_first(M)[M.indptr[:-1]]].astype(np.int64)


def strongest_first(M: csr_array) -> Ints1d:
    """Return the order of the entries of `M` by row, then weight; ties go to the lowest column."""
    row = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
    return np.lexsort((M.indices, -M.data, row))


def centroids(M: Membership, X: Floats2d) -> Floats2d:
    """Return the (n_groups, n_dims) unit mean vector of each group, weighted by membership.

    A group whose vectors cancel out gets the vector of its first row.
    """
    C = np.asarray(M.T @ X)
    length = np.linalg.norm(C, axis=1, keepdims=True)
    for lost in np.flatnonzero(length[:, 0] < 1e-12):
        C[lost], length[lost] = X[groups_of(M)[lost][0]], 1.0
    return np.asarray(C / length)


@contextmanager
def one_thread() -> Generator[None]:
    """Limit numeric libraries to one thread, for reproducible sums and fast small arrays.

    The limit applies to the whole process, so concurrent callers wait for each other.
    """
    import sklearn  # noqa: F401 - loads OpenMP and BLAS, as libraries loaded later have no limit
    from threadpoolctl import threadpool_limits

    with _ALONE, threadpool_limits(1):
        yield
