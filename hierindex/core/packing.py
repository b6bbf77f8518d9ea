"""Packing of consecutive rows into the fewest groups."""

import numpy as np

from hierindex.core.arrays import Ints1d
from hierindex.errors import InputError


def pack(n_tokens: Ints1d, together: Ints1d, *, max_tokens: int) -> Ints1d:
    """Return the first rows of the fewest groups of consecutive rows within the bounds.

    Among cuts into that many groups, the one that separates related rows least is chosen, then
    the one with the most even sizes.

    Parameters
    ----------
    n_tokens : (n,) int
        At most `max_tokens` each.
    together : (n - 1,) int
        How strongly each row is related to the next, from 0.
    max_tokens : int
        Per group.

    Returns
    -------
    (n_groups,) int64
        Ascending; empty if there are no rows.

    Raises
    ------
    InputError
        If a row has more than `max_tokens`; names it.

    Notes
    -----
    Dynamic programming, O(n * rows of the largest group).

    Examples
    --------
    >>> pack(np.array([3, 3, 3, 3]), np.array([1, 0, 1]), max_tokens=9).tolist()
    [0, 2]
    """
    n = len(n_tokens)
    if n and n_tokens.max() > max_tokens:
        at = int(n_tokens.argmax())
        raise InputError(f"Row {at} has {n_tokens[at]} tokens, more than max_tokens={max_tokens}.")
    ends = np.concatenate([[0], np.cumsum(n_tokens)])  # (n + 1,); tokens before each row
    cuts = np.concatenate([[0], together])  # (n,); cost of a group that begins at a row
    a_group = 1.0 + cuts.sum() + 1.0  # exceeds all costs of cuts and sizes together
    cost = np.zeros(n + 1)  # (n + 1,); lowest cost of the rows before each
    begins = np.zeros(n + 1, dtype=np.int64)  # first row of their last group
    for end in range(1, n + 1):
        first = int(np.searchsorted(ends, ends[end] - max_tokens))
        size = (ends[end] - ends[first:end]) / max_tokens
        each = cost[first:end] + a_group + cuts[first:end] + size**2 / n
        best = int(each.argmin())
        cost[end], begins[end] = each[best], first + best
    starts = list[int]()
    while n:
        n = int(begins[n])
        starts.append(n)
    return np.array(starts[::-1], dtype=np.int64)
