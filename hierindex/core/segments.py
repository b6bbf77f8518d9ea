"""Consecutive semantic segmentation: cut a document where neighbouring chunks are least alike.

Semantic chunking with chunks in the place of sentences: the similarity of neighbours is
computed along a document, and a segment ends where it is low.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hierindex.core.membership import Floats1d, Floats2d, Ints1d, Membership, one_hot
from hierindex.errors import InputError


@dataclass(frozen=True)
class TargetSize:
    """As many segments as give `rows` rows each on average, cut at the weakest gaps.

    For n rows, K = ceil(n / rows) segments: the K - 1 gaps of lowest similarity are cut,
    ties from the front. It is the percentile 100 * K / n made exact.
    """

    rows: int

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise InputError(f"target size must be at least 1 row, got {self.rows}.")

    def breakpoints(self, similarity: Floats1d) -> Ints1d:
        """Indices of the gaps to cut, ascending; `similarity` is (n_rows - 1,)."""
        n_cuts = -(-(len(similarity) + 1) // self.rows) - 1
        return np.sort(np.argsort(similarity, kind="stable")[:n_cuts])


@dataclass(frozen=True)
class Percentile:
    """Cut every gap whose similarity is below the given percentile of the document's gaps."""

    percentile: float

    def __post_init__(self) -> None:
        if not 0 <= self.percentile <= 100:
            raise InputError(f"percentile must be in [0, 100], got {self.percentile}.")

    def breakpoints(self, similarity: Floats1d) -> Ints1d:
        """Indices of the gaps to cut, ascending; `similarity` is (n_rows - 1,)."""
        return np.flatnonzero(similarity < np.percentile(similarity, self.percentile))


Rule = TargetSize | Percentile


def segment(X: Floats2d, document: Ints1d, *, rule: Rule) -> Membership:
    """Group consecutive rows of each document.

    Parameters
    ----------
    X : (n_rows, n_dims) unit vectors, in document order
    document : (n_rows,) int
        Rows of a document stand together.
    rule : TargetSize or Percentile
        Applied to each document by itself, so that an edit in one moves no boundary
        in another.

    Returns
    -------
    (n_rows, n_segments) csr_array
        One-hot; a segment never crosses a document. O(n_rows * n_dims).

    Examples
    --------
    >>> X = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])
    >>> segment(X, np.zeros(4, int), rule=TargetSize(2)).toarray().argmax(axis=1)
    array([0, 0, 1, 1])
    """
    starts = document_starts(document)
    cut = np.zeros(len(X), dtype=bool)  # (n_rows,): a segment starts here
    cut[starts] = True
    similarity = np.einsum("ij,ij->i", X[:-1], X[1:])
    for start, end in pairwise([*starts, len(X)]):
        if end - start > 1:
            cut[start + 1 + rule.breakpoints(similarity[start : end - 1])] = True
    return one_hot(np.cumsum(cut))


def document_starts(document: Ints1d) -> Ints1d:
    """Index of the first row of each document.

    >>> document_starts(np.array([5, 5, 2, 2, 2])).tolist()
    [0, 2]
    """
    return np.flatnonzero(np.diff(document, prepend=document[:1] - 1))
