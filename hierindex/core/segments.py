"""Segmentation: documents are cut where neighbouring chunks differ, or optimally by their sections.

`Optimal` finds the segments of greatest total cohesion by dynamic programming. The cohesion of a
segment is the length of the sum of its rows, minus a cost for each heading that it crosses. The
length is the objective of spherical k-means. Cohesion favours segments of one row. So the number of
segments is fixed, and single rows are cut off only if the caps or the number require it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d, is_number, is_whole, require
from hierindex.core.bounds import Caps
from hierindex.core.membership import Membership, Rows, one_hot
from hierindex.errors import InputError

DIGITS = 6  # single precision has seven
STRETCH = 1024  # rows, some 190,000 words; the search costs their square
WORTH_A_SEGMENT = 2.0  # cost of a heading, chosen by authors' sections of documents


@runtime_checkable
class Rule(Protocol):
    """Protocol for segmentation rules: `breakpoints` chooses where to cut a document."""

    def breakpoints(self, rows: Rows, caps: Caps) -> Ints1d:
        """Return the gaps at which to cut a document of two or more rows, ascending.

        Gap i, from 0 to n_rows - 2, follows row i. The rows are nodes of one level, with unit
        vectors `rows.X`, (n_rows, n_dims). The caps are enforced afterwards.
        """
        ...


def segment(rows: Rows, *, rule: Rule, caps: Caps) -> Membership:
    """Group consecutive rows of each document.

    Parameters
    ----------
    rows : Rows
        The rows of a document are consecutive.
    rule : Rule
        Applied to each document of two or more rows separately.
    caps : Caps
        Passed to the rule; `bounded` enforces them afterwards.

    Returns
    -------
    (n_rows, n_segments) csr_array
        One-hot; a segment never crosses documents.

    Raises
    ------
    InputError
        If the rule returns a gap that does not exist.

    Examples
    --------
    >>> X = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])
    >>> rows = Rows(X, np.ones(4, int), np.zeros(4, int))
    >>> segment(rows, rule=TargetSize(2), caps=Caps(99, 9)).toarray().argmax(axis=1)
    array([0, 0, 1, 1])
    """
    starts = document_starts(rows.document)
    cut = np.zeros(len(rows), dtype=bool)  # (n_rows,); where a segment starts
    cut[starts] = True
    for start, end in pairwise([*starts.tolist(), len(rows)]):
        if end - start > 1:
            gaps = np.asarray(rule.breakpoints(rows[start:end], caps), dtype=np.int64)
            if (wrong := gaps[(gaps < 0) | (gaps >= end - start - 1)]).size:
                raise InputError(
                    f"{type(rule).__name__}.breakpoints must return gaps from 0 to "
                    f"{end - start - 2}, got {wrong[0]}."
                )
            cut[start + 1 + gaps] = True
    return one_hot(np.cumsum(cut))


def document_starts(document: Ints1d) -> Ints1d:
    """Return the index of each document's first row.

    >>> document_starts(np.array([5, 5, 2, 2, 2])).tolist()
    [0, 2]
    """
    return np.flatnonzero(np.diff(document, prepend=document[:1] - 1))


def gap_similarity(X: Floats2d) -> Floats1d:
    """Return the cosine similarity of the rows before and after each gap, (n_rows - 1,) float64.

    `X` has the unit vectors of one document, in order, (n_rows, n_dims). Similarities are rounded,
    so that equal rows tie.

    >>> gap_similarity(np.array([[1, 0], [1, 0], [0, 1.0]])).tolist()
    [1.0, 0.0]
    """
    similarity = np.einsum("ij,ij->i", X[:-1], X[1:], dtype=np.float64)
    return np.asarray(np.clip(similarity, -1, 1).round(DIGITS))


class GapRule(ABC):
    """Base class of rules that depend only on the similarity of the rows around each gap.

    Rules raise InputError for parameters out of range.
    """

    def breakpoints(self, rows: Rows, caps: Caps) -> Ints1d:
        """Return the gaps at which to cut, ascending; gap i follows row i."""
        return self.weak_gaps(gap_similarity(rows.X))

    @abstractmethod
    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut at, ascending; `similarity[i]` compares rows i and i + 1."""


@dataclass(frozen=True)
class TargetSize(GapRule):
    """Cut at the gaps of lowest similarity, into segments of `rows` chunks on average.

    A document of n chunks gets ceil(n / rows) segments. Ties go to the first gap.
    """

    rows: int

    def __post_init__(self) -> None:
        require(is_whole(self.rows, 1), "rows", "a whole number of at least 1", self.rows)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut at, ascending; `similarity[i]` compares rows i and i + 1."""
        n_cuts = -(-(len(similarity) + 1) // self.rows) - 1
        return np.sort(np.argsort(similarity, kind="stable")[:n_cuts])


def _below(similarity: Floats1d, threshold: float) -> Ints1d:
    return np.flatnonzero(similarity < round(float(threshold), DIGITS))


@dataclass(frozen=True)
class Percentile(GapRule):
    """Cut at gaps where the similarity is below a percentile of the document's similarities.

    `percentile` is in [0, 100], 5 by default.
    """

    percentile: float = 5.0  # LangChain's 95 of distances

    def __post_init__(self) -> None:
        holds = is_number(self.percentile) and 0 <= self.percentile <= 100
        require(holds, "percentile", "in [0, 100]", self.percentile)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut at, ascending; `similarity[i]` compares rows i and i + 1."""
        return _below(similarity, np.percentile(similarity, self.percentile))


@dataclass(frozen=True)
class Gradient(Percentile):
    """Cut where the gradient of the similarity is below a percentile of the document's gradients.

    This suits homogeneous texts. `percentile` is in [0, 100], 5 by default. A document of two
    chunks has no gradient and is not cut.
    """

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut at, ascending; `similarity[i]` compares rows i and i + 1."""
        if len(similarity) < 2:
            return np.empty(0, dtype=np.int64)
        return super().weak_gaps(np.gradient(similarity).round(DIGITS))


@dataclass(frozen=True)
class StandardDeviation(GapRule):
    """Cut where the similarity is more than `amount` standard deviations below the mean.

    `amount` is 3 by default.
    """

    amount: float = 3.0  # as LangChain

    def __post_init__(self) -> None:
        require(is_number(self.amount), "amount", "a finite number", self.amount)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut at, ascending; `similarity[i]` compares rows i and i + 1."""
        return _below(similarity, similarity.mean() - self.amount * similarity.std())


@dataclass(frozen=True)
class Interquartile(StandardDeviation):
    """Cut where the similarity is more than `amount` interquartile ranges below the mean.

    `amount` is 1.5 by default.
    """

    amount: float = 1.5  # as LangChain

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut at, ascending; `similarity[i]` compares rows i and i + 1."""
        low, high = np.percentile(similarity, [25, 75])
        return _below(similarity, similarity.mean() - self.amount * (high - low))


@dataclass(frozen=True)
class Cosine(GapRule):
    """Cut between adjacent chunks whose similarity is below `threshold`, in (-1, 1]."""

    threshold: float

    def __post_init__(self) -> None:
        holds = is_number(self.threshold) and -1 < self.threshold <= 1
        require(holds, "threshold", "in (-1, 1]", self.threshold)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut at, ascending; `similarity[i]` compares rows i and i + 1."""
        return _below(similarity, self.threshold)


@dataclass(frozen=True)
class Optimal:
    """Cut into segments of similar chunks, with as few single-chunk segments as possible.

    Segments stay within the hierarchy's `max_tokens` and `max_children`. Crossing a heading has a
    cost, so segments tend to end where sections end; short sections share a segment, and long ones
    are cut where their meaning changes.

    Parameters
    ----------
    rows : int
        Mean number of chunks per segment. There may be more segments if the caps require it, or to
        separate long sections.

    Raises
    ------
    InputError
        If `rows` is not a whole number of at least 1.

    Notes
    -----
    For n chunks, similarities take O(n * max_children * n_dims), and the search O(n * max_children
    * n_segments). Documents of more than 1,024 chunks are first cut into parts of equal length, so
    the cost is linear in their length.
    """

    rows: int

    def __post_init__(self) -> None:
        require(is_whole(self.rows, 1), "rows", "a whole number of at least 1", self.rows)

    def breakpoints(self, rows: Rows, caps: Caps) -> Ints1d:
        """Return the gaps at which to cut, ascending; gap i follows row i."""
        starts, first = [], 0
        for part in np.array_split(np.arange(len(rows)), -(-len(rows) // STRETCH)):
            starts.append(first + self._starts(rows[part], caps))
            first += len(part)
        return np.concatenate(starts)[1:] - 1

    def _starts(self, rows: Rows, caps: Caps) -> Ints1d:
        costs = crossing_costs(rows.heading)
        number = max(
            -(-len(rows) // self.rows),
            _fewest_segments(rows.n_tokens, caps),
            1 + int(np.count_nonzero(costs > WORTH_A_SEGMENT)),
        )
        return _of_number(_worth_by_end(rows, costs, caps), number)


RULES = {
    rule.__name__: rule
    for rule in (
        TargetSize,
        Percentile,
        StandardDeviation,
        Interquartile,
        Gradient,
        Cosine,
        Optimal,
    )
}
"""The rules that a stored hierarchy can name."""


def crossing_costs(heading: Ints1d) -> Floats1d:
    """Return the cost of a segment that crosses the heading before each row of a document.

    A heading that divides sections of n and m rows costs 2 * sqrt(n * m / (n + m)), halved for each
    level below the highest that divides the document. This is the statistic of a change in mean
    (Sen and Srivastava 1975), times 2, the largest distance of unit vectors. So it is cheap to join
    a short section to another, and expensive to join two long ones.

    Parameters
    ----------
    heading : (n_rows,) int
        Level of the highest heading between a row and the one before it, 0 for none. The heading of
        the first row, such as the title, divides nothing.

    Returns
    -------
    (n_rows,) float64
        0 without a heading; their sum is below 2 * n_rows.

    Examples
    --------
    >>> crossing_costs(np.array([1, 0, 2, 0, 0, 3, 3, 0])).round(2).tolist()
    [0.0, 0.0, 2.45, 0.0, 0.0, 0.87, 0.82, 0.0]
    """
    costs = np.zeros(len(heading))
    levels = np.unique(heading[1:][heading[1:] > 0])
    for level in levels.tolist():
        starts = 1 + np.flatnonzero((heading[1:] > 0) & (heading[1:] <= level))
        rows = np.diff(starts, prepend=0, append=len(heading))  # of the sections of this level
        before, after = rows[:-1], rows[1:]
        cost = 2 * np.sqrt(before * after / (before + after)) / 2.0 ** (level - levels[0])
        costs[starts] = np.where(heading[starts] == level, cost, costs[starts])
    return costs


def _fewest_segments(n_tokens: Ints1d, caps: Caps) -> int:
    """Count the segments of a greedy cut."""
    number, rows, tokens = 1, 0, 0
    for n in n_tokens.tolist():
        rows, tokens = rows + 1, tokens + n
        if not caps.hold(tokens, rows):
            number, rows, tokens = number + 1, 1, n
    return number


def squared_lengths(X: Floats2d, longest: int) -> Floats2d:
    """Return |x_a + ... + x_{a+l-1}|^2 as entry [l, a] of a (longest + 1, n_rows) float64 array.

    Empty runs and runs beyond the end have 0. A run of l rows is computed from two runs of l - 1
    rows and their overlap, in O(n_rows * longest * n_dims), without a copy of `X`.
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


def _worth_by_end(rows: Rows, costs: Floats1d, caps: Caps) -> Floats2d:
    """Return the worth of the run of `longest - c` rows that ends with row j, as entry [j, c].

    The worth is the cohesion minus the costs of the headings that the run crosses. It is -inf
    for runs that begin before the first row or exceed the caps. For a single row it is so low
    that the cohesions and costs of other runs, below n and 2 * n in total, cannot compensate
    for it.
    """
    n = len(rows)
    longest = min(n, caps.max_children)
    Q = squared_lengths(rows.X, longest)
    tokens = np.concatenate([[0], np.cumsum(rows.n_tokens)])
    crossed = np.cumsum(costs)
    C = np.full((n, longest), -np.inf)
    for length in range(1, longest + 1):
        fits = tokens[length:] - tokens[: n - length + 1] <= caps.max_tokens
        allowed = fits | (length == 1)
        cohesion = np.sqrt(np.maximum(Q[length, : n - length + 1], 0))
        cohesion -= crossed[length - 1 :] - crossed[: n - length + 1]
        C[length - 1 :, longest - length] = np.where(allowed, cohesion, -np.inf)
    C[:, -1] -= 3 * n
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
