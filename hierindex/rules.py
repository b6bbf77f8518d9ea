"""Rules for where a document is cut into segments, and the protocol of a rule of your own."""

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
