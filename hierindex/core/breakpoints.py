"""Segmentation rules that cut a document at gaps of low similarity.

They are named as in LangChain's SemanticChunker, which splits sentences where these split chunks.
LangChain's thresholds are distances, these are similarities; a gap at the threshold is not cut.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from hierindex.core.arguments import is_number, is_whole, require
from hierindex.core.bounds import Caps
from hierindex.core.membership import Floats1d, Ints1d
from hierindex.core.rows import Rows
from hierindex.core.runs import DIGITS, gap_similarity


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
    """Cut at the weakest gaps into segments of `rows` rows on average.

    A document of n rows gets ceil(n / rows) segments. Among equal gaps the first is cut.
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
    """Cut where adjacent similarity is below a percentile (0 to 100) of the document's."""

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
    """Cut gaps more than `amount` standard deviations below the document's mean similarity."""

    amount: float = 3.0  # as LangChain

    @staticmethod
    def _spread(similarity: Floats1d) -> float:
        return float(similarity.std())


@dataclass(frozen=True)
class Interquartile(_BelowMean):
    """Cut gaps more than `amount` interquartile ranges below the document's mean similarity."""

    amount: float = 1.5  # as LangChain

    @staticmethod
    def _spread(similarity: Floats1d) -> float:
        low, high = np.percentile(similarity, [25, 75])
        return float(high - low)


@dataclass(frozen=True)
class Gradient(Percentile):
    """Cut gaps where the gradient of the similarity is below this percentile of all its values.

    This suits homogeneous texts. A document of two rows has no gradient and is not cut.
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
