"""Runs of consecutive rows: how long their sums are, and how alike are neighbours."""

import numpy as np

from hierindex.core.membership import Floats1d, Floats2d

DIGITS = 6  # single precision has seven
CANCELLED = 1e-5  # squared length of a sum of unit vectors, for each of them, that is rounding


def squared_lengths(X: Floats2d, longest: int) -> Floats2d:
    """Squared length of the sum of every run of rows.

    Parameters
    ----------
    X : (n_rows, n_dims)
    longest : int
        Rows of a run at most.

    Returns
    -------
    (longest + 1, n_rows) float64
        Entry [l, a] is |x_a + ... + x_{a+l-1}|^2; zero where the run has no row or goes
        beyond the end.

    Notes
    -----
    A run of l rows is two of l - 1 that overlap in l - 2, and one product more:
    O(n_rows * longest * n_dims), with no copy of `X`.
    """
    n = len(X)
    Q = np.zeros((longest + 1, n))
    for length in range(1, min(longest, n) + 1):
        first, last = X[: n - length + 1], X[length - 1 :]
        product = np.einsum("ij,ij->i", first, last, dtype=np.float64)
        if length == 1:
            Q[1] = product
        else:
            end = n - length + 1
            inner = Q[length - 2, 1 : end + 1]
            Q[length, :end] = Q[length - 1, :end] + Q[length - 1, 1 : end + 1] - inner + 2 * product
    return Q


def gap_similarity(X: Floats2d, window: int = 1) -> Floats1d:
    """Cosine similarity of the rows before and the rows after each gap between two rows.

    Parameters
    ----------
    X : (n_rows, n_dims) unit vectors of one document, in its order
    window : int
        Rows on each side, whose sums are compared; fewer at the ends.

    Returns
    -------
    (n_rows - 1,) float64
        In [-1, 1], rounded to `DIGITS`, so that equal rows are equally alike; zero where a
        side cancels out. O(n_rows * window * n_dims), and O(n_rows * window) memory.

    Examples
    --------
    >>> gap_similarity(np.array([[1, 0], [1, 0], [0, 1.0]])).tolist()
    [1.0, 0.0]
    """
    if window == 1:  # of unit vectors, in one pass over them
        similarity = np.einsum("ij,ij->i", X[:-1], X[1:], dtype=np.float64)
    else:
        similarity = _similarity_of_sums(X, window)
    return np.asarray(np.clip(similarity, -1, 1).round(DIGITS))


def _similarity_of_sums(X: Floats2d, window: int) -> Floats1d:
    n = len(X)
    gap = np.arange(1, n)
    before, after = np.minimum(gap, window), np.minimum(n - gap, window)  # (n_rows - 1,) rows
    Q = squared_lengths(X, min(2 * window, n))
    left, right = Q[before, gap - before], Q[after, gap]
    product = (Q[before + after, gap - before] - left - right) / 2
    is_something = np.minimum(left / before, right / after) > CANCELLED
    length = np.sqrt(np.where(is_something, left * right, 1))
    return np.where(is_something, product / length, 0)
