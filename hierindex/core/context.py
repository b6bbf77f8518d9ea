"""Passage scores that take the document and the neighbouring passages into account."""

from collections.abc import Hashable, Sequence

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d
from hierindex.core.ranking import soft_maximum

# Chosen on two thirds of the evaluation data.
DECAY = 0.8  # per chunk; the best of 0.6 to 0.85
LEAST_FOCUS = 0.5  # with 0, long answers are found less well; with 1, the documents are fewer


def places_of(
    spans: Sequence[tuple[Hashable, float, float]],
) -> tuple[Ints1d, Floats1d, Floats1d]:
    """Return three arrays of passages: document numbers by first appearance, starts, ends.

    >>> [array.tolist() for array in places_of([("b", 3, 9), ("a", 0, 4), ("b", 0, 3)])]
    [[0, 1, 0], [3.0, 0.0, 0.0], [9.0, 4.0, 3.0]]
    """
    number = {name: i for i, name in enumerate(dict.fromkeys(name for name, _, _ in spans))}
    places = [(number[name], start, end) for name, start, end in spans]
    document, start, end = np.array(places, dtype=np.float64).reshape(-1, 3).T
    return document.astype(np.int64), start, end


def nearness(document: Ints1d, start: Floats1d, end: Floats1d) -> Floats2d:
    """Compute how close passages are in reading order.

    Parameters
    ----------
    document : (n,) int
        A passage with an unknown position must have a document number of its own.
    start, end : (n,) floats

    Returns
    -------
    (n, n) float64 in [0, 1]
        0.8 to the power of the distance between the passages' middles, in units of the mean
        length of non-empty passages; 0 between documents.

    Examples
    --------
    >>> nearness(np.array([0, 0, 7]), np.array([0, 9, 0]), np.array([9, 18, 9])).tolist()
    [[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    middle, length = (start + end) / 2, end - start
    typical = length[length > 0].mean() if length.any() else 1.0
    distance = np.abs(middle[:, None] - middle) / typical
    return np.where(document[:, None] == document, DECAY**distance, 0.0)


def reach(scores: Floats1d, K: Floats2d) -> float:
    """Estimate how many consecutive passages are relevant: p' K p / p' p, from 1 to n.

    p is the softmax of the scores, K the `nearness`.
    """
    p = np.exp(scores - scores.max())
    return float(p @ K @ p / (p @ p))


def focus(scores: Floats1d, document: Ints1d) -> float:
    """Estimate how much relevance is concentrated in one document, from 0.5 to 1.

    With p the sum over each document of the softmax of the scores: max(0.5, 2 * p' p - 1).
    """
    p = np.exp(scores - scores.max())
    _, row = np.unique(document, return_inverse=True)
    share = np.bincount(row, p / p.sum())  # (n_documents,)
    return float(np.clip(2 * (share @ share) - 1, LEAST_FOCUS, 1))


def in_context(scores: Floats1d, document: Ints1d, K: Floats2d) -> Floats1d:
    """Add the evidence of a passage's document and of nearby passages to its score.

    With m_d and m_n the soft maxima, log sum exp(s), over the passage's document and over nearby
    passages weighted by K, the score is ((s + m_d) / 2 + b m_n) / (1 + b), b the `reach`. Passages
    that score higher than the passage itself are weighted by the `focus`.

    Parameters
    ----------
    scores : (n,) floats
        From `blended`.
    document : (n,) int
    K : (n, n) floats
        From `nearness`.

    Returns
    -------
    (n,) float64
        Not below `scores`, and equal for the only passage of a document.

    Notes
    -----
    Costs O(n^2). The kernel over positions is from Lv and Zhai, Positional Language Models (SIGIR
    2009), the document's score from Callan, Passage-Level Evidence in Document Retrieval (SIGIR
    1994), and the discount of higher-ranked evidence, which leaves top ranks to other documents,
    from Chen and Karger, Less is More (SIGIR 2006). Measured by
    `tests/benchmarks/ways.py`.

    Examples
    --------
    >>> document, start = np.array([0, 0, 1]), np.array([0, 9, 0])
    >>> K = nearness(document, start, start + 9)
    >>> in_context(np.array([1.0, -1.0, 0.1]), document, K).round(2).tolist()
    [1.08, 0.1, 0.1]
    """
    if len(scores) == 0:
        return np.zeros(0)
    W = np.where(scores > scores[:, None], focus(scores, document), 1.0)  # (n, n)
    own = (scores + soft_maximum(scores, W * (document[:, None] == document))) / 2
    b = reach(scores, K)
    return np.asarray((own + b * soft_maximum(scores, W * K)) / (1 + b))
