"""Threshold rules: at which gaps a document is cut, from the similarities of neighbours alone.

The names are those of LangChain's SemanticChunker, which cuts sentences into chunks where
these cut chunks into segments. It thinks in distances; here a threshold is a similarity,
and a gap that reaches it is not cut.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from hierindex.core.arguments import is_number, is_whole, require
from hierindex.core.bounds import Caps
from hierindex.core.membership import Floats1d, Floats2d, Ints1d
from hierindex.core.runs import DIGITS, gap_similarity


@dataclass(frozen=True)
class GapRule(ABC):
    """A rule that looks at nothing but how alike the rows around each gap are.

    `window` is how many rows on each side of a gap are compared, 1 or more. What a rule is
    given is checked when it is made: InputError names what is wrong.
    """

    window: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        require(is_whole(self.window, 1), "window", "a whole number of at least 1", self.window)

    def breakpoints(self, X: Floats2d, n_tokens: Ints1d, caps: Caps) -> Ints1d:
        """Gaps to cut in a document of two rows or more, ascending: gap i is after row i."""
        return self.weak_gaps(gap_similarity(X, self.window))

    @abstractmethod
    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Indices of the gaps to cut, ascending; `similarity` is (n_rows - 1,)."""


@dataclass(frozen=True)
class TargetSize(GapRule):
    """As many segments as give `rows` rows each on average, cut at the weakest gaps.

    For n rows, K = ceil(n / rows) segments: the K - 1 gaps of lowest similarity are cut,
    ties from the front. It is the percentile 100 * K / n made exact.
    """

    rows: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require(is_whole(self.rows, 1), "rows", "a whole number of at least 1", self.rows)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Indices of the gaps to cut, ascending; `similarity` is (n_rows - 1,)."""
        n_cuts = -(-(len(similarity) + 1) // self.rows) - 1
        return np.sort(np.argsort(similarity, kind="stable")[:n_cuts])


@dataclass(frozen=True)
class Percentile(GapRule):
    """Cut every gap whose similarity is below this percentile, 0 to 100, of the document's."""

    percentile: float = 5.0  # LangChain's 95 of distances

    def __post_init__(self) -> None:
        super().__post_init__()
        holds = is_number(self.percentile) and 0 <= self.percentile <= 100
        require(holds, "percentile", "in [0, 100]", self.percentile)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Indices of the gaps to cut, ascending; `similarity` is (n_rows - 1,)."""
        return _below(similarity, np.percentile(similarity, self.percentile))


@dataclass(frozen=True)
class _BelowMean(GapRule):
    amount: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require(is_number(self.amount), "amount", "a finite number", self.amount)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Indices of the gaps to cut, ascending; `similarity` is (n_rows - 1,)."""
        threshold = similarity.mean() - self.amount * self._spread(similarity)
        return _below(similarity, threshold)

    @staticmethod
    @abstractmethod
    def _spread(similarity: Floats1d) -> float: ...


@dataclass(frozen=True)
class StandardDeviation(_BelowMean):
    """Cut every gap more than `amount` standard deviations below the document's mean."""

    amount: float = 3.0  # as LangChain

    @staticmethod
    def _spread(similarity: Floats1d) -> float:
        return float(similarity.std())


@dataclass(frozen=True)
class Interquartile(_BelowMean):
    """Cut every gap more than `amount` interquartile ranges below the document's mean."""

    amount: float = 1.5  # as LangChain

    @staticmethod
    def _spread(similarity: Floats1d) -> float:
        low, high = np.percentile(similarity, [25, 75])
        return float(high - low)


@dataclass(frozen=True)
class Gradient(Percentile):
    """Cut every gap where the similarity falls faster than this percentile of its gradient.

    For texts that are alike throughout: a change of pace marks a border where a low
    similarity does not. A document of two rows has no gradient and is not cut.
    """

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Indices of the gaps to cut, ascending; `similarity` is (n_rows - 1,)."""
        if len(similarity) < 2:
            return np.empty(0, dtype=np.int64)
        return super().weak_gaps(np.gradient(similarity).round(DIGITS))


@dataclass(frozen=True)
class Cosine(GapRule):
    """Cut every gap whose similarity is below `threshold`, the same for every document."""

    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        holds = is_number(self.threshold) and -1 < self.threshold <= 1
        require(holds, "threshold", "in (-1, 1]", self.threshold)

    def weak_gaps(self, similarity: Floats1d) -> Ints1d:
        """Indices of the gaps to cut, ascending; `similarity` is (n_rows - 1,)."""
        return _below(similarity, self.threshold)


GAP_RULES = (TargetSize, Percentile, StandardDeviation, Interquartile, Gradient, Cosine)


def _below(values: Floats1d, threshold: float) -> Ints1d:
    """Where rounded values are below a threshold: the mean of equal ones may come out above."""
    return np.flatnonzero(values < round(float(threshold), DIGITS))
