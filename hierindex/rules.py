"""Rules that decide where a document is split into segments, and the protocol of custom rules."""

from hierindex.core.breakpoints import (
    Cosine,
    Gradient,
    Interquartile,
    Percentile,
    StandardDeviation,
    TargetSize,
)
from hierindex.core.optimal import Optimal
from hierindex.core.segments import Rule

__all__ = [
    "Cosine",
    "Gradient",
    "Interquartile",
    "Optimal",
    "Percentile",
    "Rule",
    "StandardDeviation",
    "TargetSize",
]
