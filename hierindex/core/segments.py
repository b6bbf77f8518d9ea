"""Consecutive semantic segmentation: cut a document where neighbouring chunks are least alike.

Semantic chunking with chunks in the place of sentences. Where to cut is a rule's: one that
looks at the gaps (`breakpoints`), or one that looks at the segments (`optimal`).
"""

from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from hierindex.core.bounds import UNBOUNDED, Caps
from hierindex.core.membership import Floats2d, Ints1d, Membership, one_hot
from hierindex.core.rows import unit_rows
from hierindex.errors import InputError


@runtime_checkable
class Rule(Protocol):
    """Where to cut a document."""

    def breakpoints(self, X: Floats2d, n_tokens: Ints1d, caps: Caps) -> Ints1d:
        """Gaps to cut in a document of two rows or more, ascending: gap i is after row i."""
        ...


def segment(
    X: Floats2d,
    document: Ints1d,
    *,
    rule: Rule,
    n_tokens: Ints1d | None = None,
    caps: Caps = UNBOUNDED,
) -> Membership:
    """Group consecutive rows of each document.

    Parameters
    ----------
    X : (n_rows, n_dims) unit vectors, in document order
    document : (n_rows,) int
        Rows of a document stand together.
    rule : Rule
        Applied to each document by itself, so that an edit in one moves no boundary
        in another.
    n_tokens : (n_rows,) int, optional
        One each by default.
    caps : Caps
        Kept by rules that look for segments within a budget; `bounded` sees to the others.

    Returns
    -------
    (n_rows, n_segments) csr_array
        One-hot; a segment never crosses a document. O(n_rows * n_dims) but for `Optimal`.

    Raises
    ------
    InputError
        If the arrays differ in length, a row is not finite or no unit vector, or the rule names
        a gap that the document does not have.

    Examples
    --------
    >>> from hierindex.core.breakpoints import TargetSize
    >>> X = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])
    >>> segment(X, np.zeros(4, int), rule=TargetSize(2)).toarray().argmax(axis=1)
    array([0, 0, 1, 1])
    """
    X = unit_rows(X)
    n_tokens = np.ones(len(X), dtype=np.int64) if n_tokens is None else n_tokens
    if not len(X) == len(document) == len(n_tokens):
        raise InputError(
            f"Rows must be as many in all arrays, got {len(X)} vectors, "
            f"{len(document)} documents, {len(n_tokens)} token counts."
        )
    starts = document_starts(document)
    cut = np.zeros(len(X), dtype=bool)  # (n_rows,): a segment starts here
    cut[starts] = True
    for start, end in pairwise([*starts.tolist(), len(X)]):
        if end - start > 1:
            gaps = rule.breakpoints(X[start:end], n_tokens[start:end], caps)
            cut[start + 1 + _checked(gaps, end - start - 1, rule)] = True
    return one_hot(np.cumsum(cut))


def _checked(gaps: Ints1d, n_gaps: int, rule: Rule) -> Ints1d:
    """What a rule found, which may be anybody's."""
    found = np.asarray(gaps)
    if found.size == 0:
        return np.empty(0, dtype=np.int64)
    if found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= n_gaps:
        raise InputError(
            f"{type(rule).__name__}.breakpoints must return whole numbers in [0, {n_gaps - 1}], "
            f"got {gaps!r}."
        )
    return found


def document_starts(document: Ints1d) -> Ints1d:
    """Index of the first row of each document.

    >>> document_starts(np.array([5, 5, 2, 2, 2])).tolist()
    [0, 2]
    """
    return np.flatnonzero(np.diff(document, prepend=document[:1] - 1))
