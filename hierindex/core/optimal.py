"""Optimal segmentation by dynamic programming: the segments of greatest total cohesion.

The cohesion of a segment is the length of the sum of its rows, the objective of spherical
k-means. It favours segments of one row, so their number is fixed, and single rows are cut off only
if the caps or the number require it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hierindex.core.arguments import is_whole, require
from hierindex.core.bounds import Caps
from hierindex.core.membership import Floats2d, Ints1d
from hierindex.core.runs import squared_lengths

STRETCH = 1024  # rows, some 190,000 words; the search costs their square


@dataclass(frozen=True)
class Optimal:
    """Cut into segments within the caps: the fewest single rows, then the greatest cohesion.

    Parameters
    ----------
    rows : int
        Mean number of rows per segment. The caps may require more segments.

    Raises
    ------
    InputError
        If it is not a whole number of at least 1.

    Notes
    -----
    Cohesions cost O(n_rows * longest * n_dims), with `longest` the cap on children; the search
    O(n_rows * longest * n_segments). Documents of more than 1,024 rows are first cut into equal
    stretches, so the cost is linear in their length.
    """

    rows: int

    def __post_init__(self) -> None:
        require(is_whole(self.rows, 1), "rows", "a whole number of at least 1", self.rows)

    def breakpoints(self, X: Floats2d, n_tokens: Ints1d, caps: Caps) -> Ints1d:
        """Return the gaps to cut, ascending; gap i follows row i."""
        starts, first = [], 0
        for part in np.array_split(np.arange(len(X)), -(-len(X) // STRETCH)):
            starts.append(first + self._starts(X[part], n_tokens[part], caps))
            first += len(part)
        return np.concatenate(starts)[1:] - 1

    def _starts(self, X: Floats2d, n_tokens: Ints1d, caps: Caps) -> Ints1d:
        number = max(-(-len(X) // self.rows), _fewest_segments(n_tokens, caps))
        return _of_number(_cohesion_by_end(X, n_tokens, caps), number)


def _fewest_segments(n_tokens: Ints1d, caps: Caps) -> int:
    """Count the segments of a greedy cut."""
    number, rows, tokens = 1, 0, 0
    for n in n_tokens.tolist():
        rows, tokens = rows + 1, tokens + n
        if not caps.hold(tokens, rows):
            number, rows, tokens = number + 1, 1, n
    return number


def _cohesion_by_end(X: Floats2d, n_tokens: Ints1d, caps: Caps) -> Floats2d:
    """Return the cohesion of the run of `longest - c` rows that ends with row j, as entry [j, c].

    It is -inf for runs that begin before the first row or exceed the caps. A single row's is so
    low that other cohesions cannot compensate for it.
    """
    n = len(X)
    longest = min(n, caps.max_children)
    Q = squared_lengths(X, longest)
    tokens = np.concatenate([[0], np.cumsum(n_tokens)])
    C = np.full((n, longest), -np.inf)
    for length in range(1, longest + 1):
        fits = tokens[length:] - tokens[: n - length + 1] <= caps.max_tokens
        allowed = fits | (length == 1)
        cohesion = np.sqrt(np.maximum(Q[length, : n - length + 1], 0))
        C[length - 1 :, longest - length] = np.where(allowed, cohesion, -np.inf)
    C[:, -1] -= n
    return C


def _of_number(C: Floats2d, number: int) -> Ints1d:
    """Return the first rows of the best `number` segments."""
    n, longest = C.shape
    best = np.full(n + 1, -np.inf)  # cohesion of the rows before each gap, in k segments
    best[0] = 0
    columns = []
    for _ in range(number):
        before = sliding_window_view(np.concatenate([np.full(longest - 1, -np.inf), best]), longest)
        total = before[:n] + C  # (n_rows, longest)
        columns.append(total.argmax(axis=1))
        best = np.concatenate([[-np.inf], total.max(axis=1)])
    starts, end = [], n
    for column in reversed(columns):
        end -= longest - int(column[end - 1])
        starts.append(end)
    return np.array(starts[::-1])
