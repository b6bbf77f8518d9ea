"""Rules that decide where a document is split into segments, and the protocol of custom rules."""

from hierindex.core.segments import (
    Cosine,
    Gradient,
    Interquartile,
    Optimal,
    Percentile,
    Rule,
    StandardDeviation,
    TargetSize,
)

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
