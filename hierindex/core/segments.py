"""Semantic segmentation: documents are cut between dissimilar neighbouring chunks."""

from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from hierindex.core.arrays import Ints1d
from hierindex.core.bounds import UNBOUNDED, Caps
from hierindex.core.membership import Membership, one_hot
from hierindex.core.rows import Rows
from hierindex.errors import InputError


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
    >>> from hierindex.core.breakpoints import TargetSize
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
            gaps = rule.breakpoints(rows[start:end], caps)
            cut[start + 1 + _checked(gaps, end - start - 1, rule)] = True
    return one_hot(np.cumsum(cut))


def _checked(gaps: Ints1d, n_gaps: int, rule: Rule) -> Ints1d:
    """Validate the gaps from a rule, which may be a user's."""
    array = np.asarray(gaps)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= n_gaps:
        raise InputError(
            f"{type(rule).__name__}.breakpoints must return whole numbers in [0, {n_gaps - 1}], "
            f"got {gaps!r}."
        )
    return array


def document_starts(document: Ints1d) -> Ints1d:
    """Return the index of each document's first row.

    >>> document_starts(np.array([5, 5, 2, 2, 2])).tolist()
    [0, 2]
    """
    return np.flatnonzero(np.diff(document, prepend=document[:1] - 1))
