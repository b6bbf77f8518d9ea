"""Semantic segmentation: documents are cut between dissimilar neighbouring chunks."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d, is_number, is_whole, require
from hierindex.core.bounds import UNBOUNDED, Caps
from hierindex.core.membership import Membership, one_hot
from hierindex.core.rows import Rows
from hierindex.errors import InputError

DIGITS = 6  # single precision has seven
CANCELLED = 1e-5  # squared length per unit vector of a sum below which it is rounding error


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


@dataclass(frozen=True)
class GapRule(ABC):
    """Base class of rules that depend only on the similarity of the rows around each gap.

    `window` is the number of rows compared on each side, 1 or more. Rules raise InputError for
    parameters out of range.
    """

    window: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        require(is_whole(self.window, 1), "window", "a whole number of at least 1", self.window)

    def breakpoints(self, rows: Rows, caps: Caps) -> Ints1d:
        """Return the gaps to cut, ascending; gap i follows row i."""
        return self.weak_gaps(gap_similarity(rows.X, self.window))

    @abstractmethod
    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the indices of the gaps to cut, ascending; `similarity` is (n_rows - 1,)."""


@dataclass(frozen=True)
class TargetSize(GapRule):
    """Cut at the gaps of lowest similarity, into segments of `rows` rows on average.

    A document of n rows gets ceil(n / rows) segments. Ties go to the first gap.
    """

    rows: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require(is_whole(self.rows, 1), "rows", "a whole number of at least 1", self.rows)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut, ascending."""
        n_cuts = -(-(len(similarity) + 1) // self.rows) - 1
        return np.sort(np.argsort(similarity, kind="stable")[:n_cuts])


@dataclass(frozen=True)
class Percentile(GapRule):
    """Cut gaps whose similarity is below the given percentile of the document's similarities.

    `percentile` is in [0, 100], 5 by default.
    """

    percentile: float = 5.0  # LangChain's 95 of distances

    def __post_init__(self) -> None:
        super().__post_init__()
        holds = is_number(self.percentile) and 0 <= self.percentile <= 100
        require(holds, "percentile", "in [0, 100]", self.percentile)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut, ascending."""
        return _below(similarity, np.percentile(similarity, self.percentile))


@dataclass(frozen=True)
class _BelowMean(GapRule):
    amount: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require(is_number(self.amount), "amount", "a finite number", self.amount)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut, ascending."""
        threshold = similarity.mean() - self.amount * self._spread(similarity)
        return _below(similarity, threshold)

    @staticmethod
    @abstractmethod
    def _spread(similarity: Floats1d) -> float: ...


@dataclass(frozen=True)
class StandardDeviation(_BelowMean):
    """Cut gaps more than `amount` standard deviations below the document's mean similarity.

    `amount` is 3 by default.
    """

    amount: float = 3.0  # as LangChain

    @staticmethod
    def _spread(similarity: Floats1d) -> float:
        return float(similarity.std())


@dataclass(frozen=True)
class Interquartile(_BelowMean):
    """Cut gaps more than `amount` interquartile ranges below the document's mean similarity.

    `amount` is 1.5 by default.
    """

    amount: float = 1.5  # as LangChain

    @staticmethod
    def _spread(similarity: Floats1d) -> float:
        low, high = np.percentile(similarity, [25, 75])
        return float(high - low)


@dataclass(frozen=True)
class Gradient(Percentile):
    """Cut gaps where the gradient of the similarity is below the given percentile of all gradients.

    This suits homogeneous texts. `percentile` is in [0, 100], 5 by default. A document of two rows
    has no gradient and is not cut.
    """

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut, ascending."""
        if len(similarity) < 2:
            return np.empty(0, dtype=np.int64)
        return super().weak_gaps(np.gradient(similarity).round(DIGITS))


@dataclass(frozen=True)
class Cosine(GapRule):
    """Cut gaps with a similarity below `threshold`, in (-1, 1]."""

    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        holds = is_number(self.threshold) and -1 < self.threshold <= 1
        require(holds, "threshold", "in (-1, 1]", self.threshold)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut, ascending."""
        return _below(similarity, self.threshold)


GAP_RULES = (TargetSize, Percentile, StandardDeviation, Interquartile, Gradient, Cosine)


def _below(values: Floats1d, threshold: float) -> Ints1d:
    return np.flatnonzero(values < round(float(threshold), DIGITS))


@runtime_checkable
class Rule(Protocol):
    """Protocol for segmentation rules: `breakpoints` chooses where to cut a document."""

    def breakpoints(self, rows: Rows, caps: Caps) -> Ints1d:
        """Return the gaps to cut, ascending, for a document's rows; gap i follows row i."""
        ...


def segment(rows: Rows, *, rule: Rule, caps: Caps = UNBOUNDED) -> Membership:
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
    >>> from hierindex.core.segments import TargetSize
    >>> X = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])
    >>> rows = Rows(X, np.ones(4, int), np.zeros(4, int))
    >>> segment(rows, rule=TargetSize(2)).toarray().argmax(axis=1)
    array([0, 0, 1, 1])
    """
    starts = document_starts(rows.document)
    cut = np.zeros(len(rows), dtype=bool)  # (n_rows,); where a segment starts
    cut[starts] = True
    for start, end in pairwise([*starts.tolist(), len(rows)]):
        if end - start > 1:
            gaps = rule.breakpoints(rows[start:end], caps)
            cut[start + 1 + _checked(gaps, end - start - 1, rule)] = True
    return one_hot(np.cumsum(cut))


def _checked(gaps: Ints1d, n_gaps: int, rule: Rule) -> Ints1d:
    """Validate the gaps from a rule, which may be a user's."""
    array = np.asarray(gaps)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= n_gaps:
        raise InputError(
            f"{type(rule).__name__}.breakpoints must return whole numbers in [0, {n_gaps - 1}], "
            f"got {gaps!r}."
        )
    return array


def document_starts(document: Ints1d) -> Ints1d:
    """Return the index of each document's first row.

    >>> document_starts(np.array([5, 5, 2, 2, 2])).tolist()
    [0, 2]
    """
    return np.flatnonzero(np.diff(document, prepend=document[:1] - 1))
