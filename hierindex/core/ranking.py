"""Ranking: scores calibrated, combined and put in context; maximal marginal relevance; order."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d

if TYPE_CHECKING:
    from scipy.sparse import csr_array

TELLS = 1e-3  # smallest difference of matching and random pairs that is significant
DENSE_SHARE = 0.6  # best hit@1 on the sections of tech_books
RRF = 60  # Cormack, Clarke and Buettcher 2009
# Chosen on two thirds of the evaluation data.
DECAY = 0.8  # per chunk; the best of 0.6 to 0.85
LEAST_FOCUS = 0.5  # with 0, long answers are found less well; with 1, the documents are fewer


class Scale(NamedTuple):
    """A scale of similarity: 0 is the mean of random pairs, 1 the mean of matching pairs.

    Values on it are comparable between embedding models.
    """

    chance: float
    pairs: float

    @classmethod
    def of(cls, known: Floats2d, *, nearest: bool = False) -> "Scale":
        """Calibrate a model on n > 1 matching pairs of texts.

        Parameters
        ----------
        known : (n, n) floats
            Similarities of texts to each other's counterparts; the matching pairs are on the
            diagonal.
        nearest : bool
            Whether 0 is the mean similarity to the nearest wrong counterpart instead of the mean
            similarity to all wrong counterparts.
        """
        n, own = len(known), np.diag(known)
        if nearest:
            chance = np.where(np.eye(n, dtype=bool), -1, known).max(axis=1).mean()
        else:
            chance = (known.sum() - own.sum()) / (n * (n - 1))
        return cls(chance, own.mean())

    def shares(self, similarity: Floats1d) -> Floats1d:
        """Convert similarities to the scale; values may lie outside [0, 1].

        All values are 1 if matching pairs are no more similar than random ones.

        >>> scale = Scale.of(np.array([[0.7, 0.2], [0.2, 0.9]]))
        >>> scale.shares(np.array([0.2, 0.5, 0.8])).round(2).tolist()
        [0.0, 0.5, 1.0]
        """
        if self.pairs - self.chance < TELLS:
            return np.ones(len(similarity))
        return np.asarray((similarity - self.chance) / (self.pairs - self.chance))

    def similarity(self, share: float) -> float:
        """Convert a value on the scale to a similarity.

        >>> known = np.array([[0.7, 0.1], [0.3, 0.9]])
        >>> round(Scale.of(known, nearest=True).similarity(0.7), 2)  # 0.2 + 0.7 * (0.8 - 0.2)
        0.62
        """
        return float(self.chance + share * (self.pairs - self.chance))


def cosines(X: Floats2d, q: NDArray[np.floating]) -> Floats1d:
    """Return the cosine similarity of each row to a vector; for a zero vector it is 0.

    >>> cosines(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([2.0, 0.0])).tolist()
    [0.6, 0.0]
    """
    length = np.linalg.norm(X, axis=1) * np.linalg.norm(q)
    return np.asarray(X @ q / np.maximum(length, np.finfo(np.float32).tiny))


def blended(dense: Floats1d, lexical: Floats1d, share: float | Floats1d = DENSE_SHARE) -> Floats1d:
    """Combine a question's dense and lexical scores of candidates into one score each.

    Parameters
    ----------
    dense : (n,) floats
        Any similarity; weighs `share` after standardisation.
    lexical : (n,) floats
        For instance BM25, 0 for candidates without a match; weighs 1 - `share` after
        standardisation.
    share : float or (n,) floats in [0, 1]
        One value for all candidates, or one for each.

    Returns
    -------
    (n,) float64
        In standard deviations from the mean; all 0 if all scores are equal.
    """
    return _standardised(share * _standardised(dense) + (1 - share) * _standardised(lexical))


def _standardised(x: Floats1d) -> Floats1d:
    x = x - (x.mean() if len(x) else 0.0)
    deviation = float(np.sqrt((x * x).mean())) if len(x) else 0.0
    return x / deviation if deviation > 1e-12 else np.zeros(len(x))


def reciprocal_ranks(
    rankings: Sequence[Sequence[Hashable]], weights: Sequence[float]
) -> dict[Hashable, float]:
    """Fuse rankings by reciprocal rank; return the score of each item.

    The score is the sum of 61 * weight / (60 + rank), ranks counted from 1. An item that is first
    in all rankings has a score of 1 if the weights sum to 1.

    >>> reciprocal_ranks([["a", "b"], ["a"]], [0.5, 0.5])["a"]
    1.0
    """
    scores: dict[Hashable, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + weight * (RRF + 1) / (RRF + rank)
    return scores


def numbered(names: Sequence[Hashable]) -> Ints1d:
    """Number names by first appearance, (n_names,) int64.

    >>> numbered(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64)


def places_of(
    spans: Sequence[tuple[Hashable, float, float] | None],
) -> tuple[Ints1d, Floats1d, Floats1d]:
    """Return three arrays of passages: document numbers by first appearance, starts, ends.

    A passage without a span gets its own document.

    >>> [array.tolist() for array in places_of([("b", 3, 9), None, ("b", 0, 3)])]
    [[0, 1, 0], [3.0, 0.0, 0.0], [9.0, 0.0, 3.0]]
    """
    known = [(i, 0, 0) if span is None else span for i, span in enumerate(spans)]
    start, end = np.array([span[1:] for span in known], dtype=np.float64).reshape(-1, 2).T
    return numbered([name for name, _, _ in known]), start, end


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


def soft_maximum(scores: Floats1d, M: Floats2d) -> Floats1d:
    """Return log(M exp(scores)), at least the scores; M is (n, n) with 1 on its diagonal."""
    top = scores.max()
    with np.errstate(divide="ignore"):  # underflow keeps the score
        return np.asarray(np.maximum(top + np.log(M @ np.exp(scores - top)), scores))


class MarginalRelevance:
    """Maximal marginal relevance of rows that are chosen one by one.

    Parameters
    ----------
    S : (n, n_dims) unit vectors, dense or sparse
    relevance : (n,) floats
    redundancy : float in [0, 1]
        Weight of the cosine similarity to the chosen rows; relevance has 1 - redundancy.

    Notes
    -----
    A choice costs a product with S. Carbonell and Goldstein, The Use of MMR (SIGIR 1998).
    """

    def __init__(self, S: "Floats2d | csr_array", relevance: Floats1d, redundancy: float) -> None:
        self._S = S
        self._relevance = self._scores = (1 - redundancy) * relevance
        self._redundancy = redundancy
        self.likeness: Floats1d = np.full(len(relevance), -np.inf)
        """(n,) cosine similarity of each row to the most similar chosen one."""

    def choose(self, among: NDArray[np.bool_]) -> tuple[int, float]:
        """Choose the best of the rows in a mask; return its index and score.

        Scores are rounded for the comparison, so that ties go to the first row.
        """
        best = int(np.argmax(np.where(among, np.round(self._scores, 9), -np.inf)))
        score = float(self._scores[best])
        row = self._S[best] if isinstance(self._S, np.ndarray) else self._S[[best]].toarray()[0]
        self.likeness = np.maximum(self.likeness, self._S @ row)
        self._scores = self._relevance - self._redundancy * self.likeness
        return best, score


def diversified(
    S: Floats2d, relevance: Floats1d, n: int, redundancy: float
) -> tuple[list[int], list[float]]:
    """Choose up to n rows by `MarginalRelevance`; return their indices and scores in order."""
    marginal, available = MarginalRelevance(S, relevance, redundancy), np.ones(len(relevance), bool)
    rows, scores = list[int](), list[float]()
    for _ in range(min(n, len(relevance))):
        row, score = marginal.choose(available)
        available[row] = False
        rows.append(row)
        scores.append(score)
    return rows, scores


def reading_order(relevance: Floats1d, document: Ints1d, start: Floats1d) -> Ints1d:
    """Order sentences by document and start, the most relevant sentence's document first.

    Documents of equal relevance are in the order of their numbers. Returns row indices.

    >>> reading_order(np.array([2, 9, 3]), np.array([0, 1, 0]), np.array([5, 0, 1])).tolist()
    [1, 2, 0]
    """
    names, number = np.unique(document, return_inverse=True)
    best = np.full(len(names), -np.inf)
    np.maximum.at(best, number, relevance)
    return np.lexsort((start, number, -best[number]))
