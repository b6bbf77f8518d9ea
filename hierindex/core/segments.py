"""Semantic segmentation: documents are cut between dissimilar neighbouring chunks."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d, is_number, is_whole, require
from hierindex.core.bounds import UNBOUNDED, Caps
from hierindex.core.membership import Membership, one_hot
from hierindex.core.rows import Rows
from hierindex.errors import InputError

DIGITS = 6  # single precision has seven


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
        """Return the gaps to cut, ascending; gap i follows row i."""
        return self.weak_gaps(gap_similarity(rows.X))

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
        require(is_whole(self.rows, 1), "rows", "a whole number of at least 1", self.rows)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut, ascending."""
        n_cuts = -(-(len(similarity) + 1) // self.rows) - 1
        return np.sort(np.argsort(similarity, kind="stable")[:n_cuts])


class ThresholdRule(GapRule):
    """Base class of rules that cut the gaps whose similarity is below a threshold."""

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Return the gaps to cut, ascending."""
        return np.flatnonzero(similarity < round(float(self.threshold_of(similarity)), DIGITS))

    @abstractmethod
    def threshold_of(self, similarity: Floats1d) -> float:
        """Return the threshold for a document with these similarities."""


@dataclass(frozen=True)
class Percentile(ThresholdRule):
    """Cut gaps whose similarity is below the given percentile of the document's similarities.

    `percentile` is in [0, 100], 5 by default.
    """

    percentile: float = 5.0  # LangChain's 95 of distances

    def __post_init__(self) -> None:
        holds = is_number(self.percentile) and 0 <= self.percentile <= 100
        require(holds, "percentile", "in [0, 100]", self.percentile)

    def threshold_of(self, similarity: Floats1d) -> float:
        """Return the percentile of the similarities."""
        return float(np.percentile(similarity, self.percentile))


@dataclass(frozen=True)
class StandardDeviation(ThresholdRule):
    """Cut gaps more than `amount` standard deviations below the document's mean similarity.

    `amount` is 3 by default.
    """

    amount: float = 3.0  # as LangChain

    def __post_init__(self) -> None:
        require(is_number(self.amount), "amount", "a finite number", self.amount)

    def threshold_of(self, similarity: Floats1d) -> float:
        """Return the mean similarity less `amount` times the spread of the similarities."""
        return float(similarity.mean() - self.amount * self.spread(similarity))

    def spread(self, similarity: Floats1d) -> float:
        """Return the standard deviation."""
        return float(similarity.std())


@dataclass(frozen=True)
class Interquartile(StandardDeviation):
    """Cut gaps more than `amount` interquartile ranges below the document's mean similarity.

    `amount` is 1.5 by default.
    """

    amount: float = 1.5  # as LangChain

    def spread(self, similarity: Floats1d) -> float:
        """Return the interquartile range."""
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
class Cosine(ThresholdRule):
    """Cut gaps with a similarity below `threshold`, in (-1, 1]."""

    threshold: float

    def __post_init__(self) -> None:
        holds = is_number(self.threshold) and -1 < self.threshold <= 1
        require(holds, "threshold", "in (-1, 1]", self.threshold)

    def threshold_of(self, similarity: Floats1d) -> float:
        """Return the threshold."""
        return self.threshold


GAP_RULES = (TargetSize, Percentile, StandardDeviation, Interquartile, Gradient, Cosine)


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
