"""Rows: a level's nodes as arrays, checked where they enter `core`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierindex.core.membership import Floats2d, Ints1d
from hierindex.errors import InputError

UNIT = 1e-3  # how far a length may be from 1: half precision is off by 5e-4


@dataclass(frozen=True)
class Rows:
    """A level's nodes as arrays, in document order.

    `X` holds unit vectors (n_rows, n_dims), `n_tokens` token counts (n_rows,), `document`
    (n_rows,) numbers documents: equal for rows of one document, negative and unique for a
    row of several. `level` counts from 0, the leaves.
    """

    X: Floats2d
    n_tokens: Ints1d
    document: Ints1d
    level: int = 0

    def __post_init__(self) -> None:
        if not len(self.X) == len(self.n_tokens) == len(self.document):
            raise InputError(
                f"Rows must be as many in all arrays, got {len(self.X)} vectors, "
                f"{len(self.n_tokens)} token counts, {len(self.document)} documents."
            )
        object.__setattr__(self, "X", unit_rows(self.X))
        if len(wrong := np.flatnonzero(~(self.n_tokens >= 0))):
            raise InputError(
                f"Token counts must not be negative, row {wrong[0]} has {self.n_tokens[wrong[0]]}."
            )

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Ints1d | slice) -> "Rows":
        """Some of the rows, of the same level."""
        return Rows(self.X[rows], self.n_tokens[rows], self.document[rows], self.level)


def unit_rows(X: NDArray[Any]) -> Floats2d:
    """`X`, if it is a matrix of unit vectors.

    Parameters
    ----------
    X : (n_rows, n_dims)

    Returns
    -------
    (n_rows, n_dims) float32 or float64
        Not copied if it is that already; half precision is not enough to compute with.

    Raises
    ------
    InputError
        If a row is not finite or not of length 1; names the first such row.
    """
    if X.ndim != 2:
        raise InputError(f"Rows must be a matrix of one vector each, got {X.ndim} axes.")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.sqrt(np.einsum("ij,ij->i", X, X))
    if len(wrong := np.flatnonzero(~(np.abs(length - 1) < UNIT))):
        row = wrong[0]
        is_finite = np.isfinite(X[row])
        if not is_finite.all():
            raise InputError(f"Rows must be finite, row {row} holds {X[row][~is_finite][0]}.")
        raise InputError(f"Rows must be unit vectors, row {row} has length {length[row]:.6g}.")
    return X


def canonical_order(X: Floats2d) -> Ints1d:
    """An order of the rows that does not depend on the order in which they come.

    Parameters
    ----------
    X : (n_rows, n_dims)

    Returns
    -------
    (n_rows,) int64
        Row indices, sorted by the rows' bytes; equal rows stay in the order they come in.

    Examples
    --------
    >>> X = np.array([[0.6, 0.8], [1.0, 0.0]])
    >>> np.array_equal(X[canonical_order(X)], X[::-1][canonical_order(X[::-1])])
    True
    """
    row = np.dtype((np.void, X.dtype.itemsize * X.shape[1]))
    X = X + 0.0  # -0.0 has other bytes than 0.0
    return np.argsort(np.ascontiguousarray(X).view(row).ravel(), kind="stable")


def distinct_rows(X: Floats2d) -> Ints1d:
    """Indices of the rows that differ from the row before, of rows in canonical order.

    >>> distinct_rows(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).tolist()
    [0, 2]
    """
    is_new = np.ones(len(X), dtype=bool)
    is_new[1:] = (X[1:] != X[:-1]).any(axis=1)
    return np.flatnonzero(is_new)
