"""A passage's relevance where it stands: its own score, and those of passages near it.

The scores of neighbours are evidence, for what a question asks about is rarely said in one
passage alone. How much to make of them shows in the scores: where the best passages of a
question stand together, neighbours count for more than where each stands alone.
"""

import numpy as np

from hierindex.core.membership import Floats1d, Floats2d, Ints1d
from hierindex.errors import InputError

DENSE_SHARE = 0.6  # hit@1 at 0.7: tech_books files 0.695 for 0.656, squad 0.810 for 0.825
DECAY = 0.85  # a chunk further off: 6.7 chunks in sum on either side, as in a segment of a tree


def blended(dense: Floats1d, lexical: Floats1d | None = None) -> Floats1d:
    """Dense and lexical scores of the candidates of one question as one score.

    0.6 of the standardised dense score and 0.4 of the standardised lexical one, standardised.

    Parameters
    ----------
    dense : (n,) finite floats
        Any similarity.
    lexical : (n,) finite floats, optional
        As BM25; 0 for a candidate that the search by words did not find.

    Returns
    -------
    (n,) float64
        Standard deviations above the mean of the candidates; all 0 where all are alike.

    Raises
    ------
    InputError
        If the arrays differ in length or a score is not finite.

    Examples
    --------
    >>> blended(np.array([1.0, 1.0, 4.0])).round(2).tolist()
    [-0.71, -0.71, 1.41]
    """
    dense = _finite(dense, "dense scores")
    if lexical is None:
        return _standardised(dense)
    lexical = _finite(lexical, "lexical scores")
    if len(lexical) != len(dense):
        raise InputError(
            f"There must be as many lexical as dense scores, got {len(lexical)} and {len(dense)}."
        )
    return _standardised(
        DENSE_SHARE * _standardised(dense) + (1 - DENSE_SHARE) * _standardised(lexical)
    )


def nearness(document: Ints1d, start: Floats1d, end: Floats1d) -> Floats2d:
    """How near passages stand in reading order.

    0.85 to the power of the distance of their middles, in passages of mean length (of those
    that have one); 0 between documents.

    Parameters
    ----------
    document : (n,) int
        Equal for passages of one document; a number of its own for one whose place is unknown.
    start, end : (n,) finite floats
        Where a passage begins and ends in its document, in characters.

    Returns
    -------
    (n, n) float64 in [0, 1]
        Symmetric, 1 on the diagonal.

    Raises
    ------
    InputError
        If the arrays differ in length, a place is not finite, or an end is before its start.

    Examples
    --------
    >>> nearness(np.array([0, 0, 7]), np.array([0, 9, 0]), np.array([9, 18, 9])).tolist()
    [[1.0, 0.85, 0.0], [0.85, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    start, end = _finite(start, "starts"), _finite(end, "ends")
    if not len(document) == len(start) == len(end):
        raise InputError(
            f"Passages must be as many in all arrays, got {len(document)} documents, "
            f"{len(start)} starts, {len(end)} ends."
        )
    if not (start <= end).all():
        raise InputError("A passage must not end before it starts.")
    middle, length = (start + end) / 2, end - start
    typical = length[length > 0].mean() if length.any() else 1.0
    distance = np.abs(middle[:, None] - middle) / typical
    return np.where(document[:, None] == document, DECAY**distance, 0.0)


def reach(scores: Floats1d, K: Floats2d) -> float:
    """Over how many passages in a row the relevance of a question spreads.

    With p the softmax of the scores, as a belief which passage the question is about:
    p' K p / p' p, how likely two draws from it are near each other, against being the same.

    Parameters
    ----------
    scores : (n,) float64
        As `blended` gives them; n > 0.
    K : (n, n) float64
        As `nearness` gives it.

    Returns
    -------
    float in [1, n]
        1 where no two likely passages are near each other.
    """
    p = np.exp(scores - scores.max())
    return float(p @ K @ p / (p @ p))


def in_context(scores: Floats1d, K: Floats2d) -> Floats1d:
    """Scores of passages, each with those of the passages near it.

    s + b log(K exp(s)), over 1 + b: the mean of a passage's own score and of the soft maximum
    of those around it, the further the less, weighted by the question's `reach` b.

    Parameters
    ----------
    scores : (n,) float64
        As `blended` gives them.
    K : (n, n) float64
        As `nearness` gives it.

    Returns
    -------
    (n,) float64
        Not below `scores`; a passage with no other near it keeps its own.

    Notes
    -----
    O(n^2): 1.6 ms for 300 candidates, all three functions together. The soft maximum does not
    dilute a passage that stands out, as a mean of neighbours would, so of passages that share
    a context the best stays the best. Kernels over the places in a text go back to Lv and Zhai,
    Positional Language Models (SIGIR 2009), where the width is tuned; here it is fixed, and the
    weight is read off each question's scores.

    Passages of one stretch rank together: good for reading within a token budget, but the first
    five come from fewer places than by `scores` alone. Figures for both:
    tests/benchmarks/retrieval.py.

    Examples
    --------
    >>> K = nearness(np.array([0, 0, 1]), np.array([0, 9, 0]), np.array([9, 18, 9]))
    >>> in_context(np.array([1.0, -1.0, 0.1]), K).round(2).tolist()
    [1.06, 0.08, 0.1]
    """
    if len(scores) == 0:
        return np.zeros(0)
    top = scores.max()
    with np.errstate(divide="ignore"):  # what is so far below that it vanishes keeps its score
        around = np.maximum(top + np.log(K @ np.exp(scores - top)), scores)
    b = reach(scores, K)
    return np.asarray((scores + b * around) / (1 + b))


def _standardised(x: Floats1d) -> Floats1d:
    x = x - (x.mean() if len(x) else 0.0)
    deviation = float(np.sqrt((x * x).mean())) if len(x) else 0.0
    return x / deviation if deviation > 1e-12 else np.zeros(len(x))


def _finite(x: Floats1d, what: str) -> Floats1d:
    x = np.asarray(x, dtype=np.float64)
    if not np.isfinite(x).all():
        raise InputError(f"The {what} must be finite, got {x[~np.isfinite(x)][0]}.")
    return x
