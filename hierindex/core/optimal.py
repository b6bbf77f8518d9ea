"""Segments of greatest cohesion, by dynamic programming: exact in up to 1,024 rows.

A segment's cohesion is the length of the sum of its rows: what spherical k-means maximises,
here over runs of rows. By it alone a row is best by itself, so the number of segments is
either given or paid for; and since a row alone is no group, one is cut off only where caps
or number demand it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hierindex.core.arguments import is_number, is_whole, require
from hierindex.core.bounds import Caps
from hierindex.core.membership import Floats2d, Ints1d
from hierindex.core.runs import squared_lengths
from hierindex.errors import InputError

# Rows solved at once; the cost of a fixed number grows with its square. A document of so many
# chunks has some 190,000 words.
STRETCH = 1024


@dataclass(frozen=True)
class Optimal:
    """The segments within the caps with the fewest rows alone, and then the greatest cohesion.

    Parameters
    ----------
    rows : int, optional
        As many segments as give so many rows each on average, or the fewest that the caps
        allow.
    penalty : float, optional
        In its place: what a segment costs, in rows; the number is then the best one. Two
        runs are cut apart where their cohesions exceed that of both together by more.

    Raises
    ------
    InputError
        If not one of them is given, or it is out of its range.

    Notes
    -----
    O(n_rows * longest) for a penalty, times the number of segments for a fixed one, after
    O(n_rows * longest * n_dims); `longest` is the cap on a group's children. A document of
    more than 1,024 rows is first cut into equal stretches, so that the cost is linear in it.
    """

    rows: int | None = None
    penalty: float | None = None

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.penalty is None):
            raise InputError(
                f"Give either rows or penalty, got rows={self.rows} and penalty={self.penalty}."
            )
        if self.rows is not None:
            require(is_whole(self.rows, 1), "rows", "a whole number of at least 1", self.rows)
        if self.penalty is not None:
            holds = is_number(self.penalty) and self.penalty >= 0
            require(holds, "penalty", "in [0, inf)", self.penalty)

    def breakpoints(self, X: Floats2d, n_tokens: Ints1d, caps: Caps) -> Ints1d:
        """Gaps to cut in a document of two rows or more, ascending: gap i is after row i."""
        starts, first = [], 0
        for part in np.array_split(np.arange(len(X)), -(-len(X) // STRETCH)):
            starts.append(first + self._starts(X[part], n_tokens[part], caps))
            first += len(part)
        return np.concatenate(starts)[1:] - 1

    def _starts(self, X: Floats2d, n_tokens: Ints1d, caps: Caps) -> Ints1d:
        """First rows of a stretch's segments."""
        if self.rows is not None:
            number = max(-(-len(X) // self.rows), _fewest_segments(n_tokens, caps))
            return _of_number(_cohesion_by_end(X, n_tokens, caps), number)
        penalty = min(float(self.penalty or 0), len(X))  # no more can be lost
        return _of_penalty(_cohesion_by_end(X, n_tokens, caps, penalty), penalty)


def _fewest_segments(n_tokens: Ints1d, caps: Caps) -> int:
    """How many segments there are if each is filled up to a cap before the next begins."""
    number, rows, tokens = 1, 0, 0
    for n in n_tokens.tolist():
        rows, tokens = rows + 1, tokens + n
        if not caps.hold(tokens, rows):
            number, rows, tokens = number + 1, 1, n
    return number


def _cohesion_by_end(X: Floats2d, n_tokens: Ints1d, caps: Caps, penalty: float = 0.0) -> Floats2d:
    """Cohesion of the run of `longest - c` rows that ends with row j: entry [j, c].

    Minus infinity where the run begins before the first row or is over the caps; of a row
    alone, less than anything that the others could make up for.
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
    C[:, -1] -= n * (1 + penalty)
    return C


def _of_number(C: Floats2d, number: int) -> Ints1d:
    """First rows of the best `number` segments; there are as many within the caps."""
    n, longest = C.shape
    best = np.full(n + 1, -np.inf)  # of the rows before each gap, in k segments
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


def _of_penalty(C: Floats2d, penalty: float) -> Ints1d:
    """First rows of the segments whose cohesion, less the penalty for each, is greatest."""
    n, longest = C.shape
    best = np.full(longest + n, -np.inf)  # of the rows before each gap, after as many fillers
    best[longest - 1] = 0
    column = np.empty(n, dtype=np.int64)
    for j in range(n):
        total = best[j : j + longest] + C[j]
        column[j] = total.argmax()
        best[longest + j] = total[column[j]] - penalty
    starts, end = [], n
    while end > 0:
        end -= longest - int(column[end - 1])
        starts.append(end)
    return np.array(starts[::-1])
