"""Validated input arrays of the nodes of a level."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arguments import Floats2d, Ints1d
from hierindex.core.membership import Membership
from hierindex.errors import InputError

_ALONE = RLock()
T = TypeVar("T", bound=np.generic)

BLOCK = 16_384  # rows
UNIT = 1e-3  # tolerance of the length; half precision is off by 5e-4
NO_HEADINGS: Ints1d = np.zeros(0, dtype=np.int64)


@contextmanager
def one_thread() -> Generator[None]:
    """Limit numeric libraries to one thread, for reproducible sums and fast small arrays.

    The limit applies to the whole process, so concurrent callers wait for each other.
    """
    import sklearn  # noqa: F401 - loads OpenMP and BLAS, as libraries loaded later have no limit
    from threadpoolctl import threadpool_limits

    with _ALONE, threadpool_limits(1):
        yield


@dataclass(frozen=True)
class Rows:
    """The nodes of a level as arrays, in document order.

    `X` holds unit vectors, (n_rows, n_dims), and `n_tokens` token counts, (n_rows,). Rows of one
    document have the same number in `document`, (n_rows,); a row of several documents has a
    negative number of its own. `level` is 0 for the leaves. `heading`, (n_rows,), is the level of
    the highest heading between a row and the one before it: 1 is the top level, 0 means no heading.

    When an existing tree is revised, `before` holds the weights of the rows in its groups, (n_rows,
    n_groups); a row that was in no group has an empty row. `is_part` is true if only some rows of
    the level are given and the others keep their groups. See `hierindex.core.revision.Revised`.
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
