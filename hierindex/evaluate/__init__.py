"""Evaluation: ways to retrieve, side by side on questions whose gold passages are known."""

from hierindex.evaluate.datasets import Dataset, Question, read_dataset
from hierindex.evaluate.report import Report
from hierindex.evaluate.runner import evaluate
from hierindex.evaluate.ways import retrieved

__all__ = ["Dataset", "Question", "Report", "evaluate", "read_dataset", "retrieved"]
