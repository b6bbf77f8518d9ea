"""Lengths of the sums of consecutive rows, and similarities across gaps."""

import numpy as np

from hierindex.core.membership import Floats1d, Floats2d

DIGITS = 6  # single precision has seven
CANCELLED = 1e-5  # squared length per unit vector of a sum below which it is rounding error


def squared_lengths(X: Floats2d, longest: int) -> Floats2d:
    """Return |x_a + ... + x_{a+l-1}|^2 as entry [l, a] of a (longest + 1, n_rows) float64 array.

    Empty runs and those beyond the end have 0. A run of l rows follows from two runs of l - 1 and
    their overlap: O(n_rows * longest * n_dims), without a copy of `X`.
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
    """Return the cosine similarity of the rows before and after each gap.

    Parameters
    ----------
    X : (n_rows, n_dims) unit vectors of one document, in order
    window : int
        Number of rows to sum on each side; fewer at the ends.

    Returns
    -------
    (n_rows - 1,) float64
        In [-1, 1], rounded so that equal rows tie; 0 if a side cancels out.

    Notes
    -----
    O(n_rows * window * n_dims) time, O(n_rows * window) memory.

    Examples
    --------
    >>> gap_similarity(np.array([[1, 0], [1, 0], [0, 1.0]])).tolist()
    [1.0, 0.0]
    """
    if window == 1:
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
