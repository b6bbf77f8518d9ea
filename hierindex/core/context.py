"""A passage's relevance where it stands: its own score, its document's, and its neighbours'.

The scores around a passage are evidence, for what a question asks about is rarely said in one
passage alone. How much to make of them shows in the scores: where the best passages of a
question stand together, neighbours count for more than where each stands alone.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from hierindex.core.membership import Floats1d, Floats2d, Ints1d
from hierindex.core.ranking import finite, soft_maximum
from hierindex.errors import InputError

DECAY = 0.85  # a chunk further off: 6.7 chunks in sum on either side, as in a segment of a tree


def places_of(
    spans: Sequence[tuple[Hashable, float, float]],
) -> tuple[Ints1d, Floats1d, Floats1d]:
    """Documents of passages, numbered by first appearance, their starts and their ends.

    >>> [found.tolist() for found in places_of([("b", 3, 9), ("a", 0, 4), ("b", 0, 3)])]
    [[0, 1, 0], [3.0, 0.0, 0.0], [9.0, 4.0, 3.0]]
    """
    number = {name: i for i, name in enumerate(dict.fromkeys(name for name, _, _ in spans))}
    places = [(number[name], start, end) for name, start, end in spans]
    document, start, end = np.array(places, dtype=np.float64).reshape(-1, 3).T
    return document.astype(np.int64), start, end


def nearness(document: Ints1d, start: Floats1d, end: Floats1d) -> Floats2d:
    """How near passages stand in reading order, (n, n) float64 in [0, 1], 1 on the diagonal.

    0.85 to the power of the distance of their middles, in passages of mean length (of those
    that have one); 0 between documents. Places are as `places_of` gives them; a passage whose
    place is unknown has a document of its own.

    Raises
    ------
    InputError
        If the arrays differ in length, a place is not finite, or an end is before its start.

    Examples
    --------
    >>> nearness(np.array([0, 0, 7]), np.array([0, 9, 0]), np.array([9, 18, 9])).tolist()
    [[1.0, 0.85, 0.0], [0.85, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    start, end = finite(start, "starts"), finite(end, "ends")
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
    p' K p / p' p, how likely two draws from it are near each other, against being the same:
    from 1, where no two likely passages are near each other, to n. K is their `nearness`.
    """
    p = np.exp(scores - scores.max())
    return float(p @ K @ p / (p @ p))


def focus(scores: Floats1d, document: Ints1d) -> float:
    """How far one document is what a question is about.

    Of two draws from the softmax of the scores, how much likelier they are of one document than
    of two: 0 if they are not, 1 where all passages that count are of one document.
    """
    p = np.exp(scores - scores.max())
    _, row = np.unique(document, return_inverse=True)
    share = np.bincount(row, p / p.sum())  # (n_documents,)
    return float(np.clip(2 * (share @ share) - 1, 0, 1))


def in_context(scores: Floats1d, document: Ints1d, K: Floats2d) -> Floats1d:
    """Scores of passages, each with those of its document and of the passages near it.

    The soft maxima, log of the sum of exp(s), of what is in a passage's document and of what is
    near it are evidence for the two. The score is ((s + that of the document) / 2 + b that of
    those near) / (1 + b), b the question's `reach`. Evidence that is read before, in passages
    whose own scores are higher, counts by the question's `focus` alone.

    Scores are as `blended` gives them, K as `nearness` does. The result, (n,) float64, is not
    below them; a passage alone in its document keeps its own.

    Notes
    -----
    O(n^2): 2.6 ms for 300 candidates, all functions together. The soft maximum does not
    dilute a passage that stands out, as a mean of neighbours would, so of passages that share
    a context the best stays the best.

    Kernels over the places in a text go back to Lv and Zhai, Positional Language Models (SIGIR
    2009), where the width is tuned, and to add the document's score to a passage's to Callan,
    Passage-Level Evidence in Document Retrieval (SIGIR 1994); here each question's scores say
    how much to make of either. That each rank should count on those before having been of no
    use, if one good passage is enough, is from Chen and Karger, Less is More (SIGIR 2006): it
    keeps a stretch from taking all first ranks where several documents may be meant. Where one
    is, its best stretch is read on. Figures: tests/benchmarks/retrieval.py.

    Examples
    --------
    >>> document, start = np.array([0, 0, 1]), np.array([0, 9, 0])
    >>> K = nearness(document, start, start + 9)
    >>> in_context(np.array([1.0, -1.0, 0.1]), document, K).round(2).tolist()
    [1.09, -0.3, 0.1]
    """
    if len(scores) == 0:
        return np.zeros(0)
    W = np.where(scores > scores[:, None], focus(scores, document), 1.0)  # (n, n), of columns
    own = (scores + soft_maximum(scores, W * (document[:, None] == document))) / 2
    b = reach(scores, K)
    return np.asarray((own + b * soft_maximum(scores, W * K)) / (1 + b))
