"""Rows in a sequence cut into as few groups as hold them."""

import numpy as np

from hierindex.core.membership import Ints1d
from hierindex.errors import InputError


def pack(
    n_tokens: Ints1d, together: Ints1d, *, max_tokens: int, max_rows: int | None = None
) -> Ints1d:
    """Where groups of consecutive rows begin: as few as the bounds allow.

    Of all ways to cut into so few, one that cuts where rows belong together least; of those, one
    whose groups are most alike in size.

    Parameters
    ----------
    n_tokens : (n,) int
        Of each row, at most `max_tokens`.
    together : (n - 1,) int
        How much each row belongs with the next one, 0 for not at all.
    max_tokens : int
        Of a group.
    max_rows : int, optional
        Of a group.

    Returns
    -------
    (n_groups,) int64
        First rows, ascending; empty if there are no rows.

    Raises
    ------
    InputError
        If a row has more than `max_tokens`; names it.

    Notes
    -----
    Dynamic programming over the last group's first row, O(n) steps of as many rows as a group
    can hold.

    Examples
    --------
    >>> pack(np.array([3, 3, 3, 3]), np.array([1, 0, 1]), max_tokens=9).tolist()
    [0, 2]
    """
    n = len(n_tokens)
    if n and n_tokens.max() > max_tokens:
        at = int(n_tokens.argmax())
        raise InputError(
            f"max_tokens must be at least {n_tokens[at]}, row {at}'s, got {max_tokens}."
        )
    ends = np.concatenate([[0], np.cumsum(n_tokens)])  # (n + 1,) tokens before each row
    cuts = np.concatenate([[0], together])  # of a group that begins at a row
    a_group = 1.0 + cuts.sum() + 1.0  # more than all cuts and all uneven sizes
    cost = np.zeros(n + 1)  # of the rows before each
    begins = np.zeros(n + 1, dtype=np.int64)  # of the last group of those rows
    for end in range(1, n + 1):
        first = int(np.searchsorted(ends, ends[end] - max_tokens))
        first = max(first, end - (max_rows or n))
        size = (ends[end] - ends[first:end]) / max_tokens
        each = cost[first:end] + a_group + cuts[first:end] + size**2 / n
        best = int(each.argmin())
        cost[end], begins[end] = each[best], first + best
    starts = list[int]()
    while n:
        n = int(begins[n])
        starts.append(n)
    return np.array(starts[::-1], dtype=np.int64)
