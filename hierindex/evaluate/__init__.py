"""Evaluation: comparison of retrieval methods on questions with known answers (gold)."""

from hierindex.evaluate.datasets import Dataset, Question, read_dataset
from hierindex.evaluate.measures import Report
from hierindex.evaluate.runner import evaluate, retrieved

__all__ = ["Dataset", "Question", "Report", "evaluate", "read_dataset", "retrieved"]
