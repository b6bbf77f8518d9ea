"""Ranking: fusion of scores and rankings, maximal marginal relevance, reading order."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE_SHARE = 0.6  # best hit@1 on the sections of tech_books
RRF = 60  # Cormack, Clarke and Buettcher 2009


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
        Of all candidates, or of each.

    Returns
    -------
    (n,) float64
        In standard deviations from the mean; all 0 if all scores are equal.
    """
    return _standardised(share * _standardised(dense) + (1 - share) * _standardised(lexical))


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


class MarginalRelevance:
    """Maximal marginal relevance of rows that are chosen one by one.

    Parameters
    ----------
    S : (n, n_dims) unit vectors, dense or sparse
    relevance : (n,) floats
    redundancy : float in [0, 1]
        Weight of the cosine similarity to the chosen rows; relevance has the rest of 1.

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


def soft_maximum(scores: Floats1d, M: Floats2d) -> Floats1d:
    """Return log(M exp(scores)), at least the scores; M is (n, n) with 1 on its diagonal."""
    top = scores.max()
    with np.errstate(divide="ignore"):  # underflow keeps the score
        return np.asarray(np.maximum(top + np.log(M @ np.exp(scores - top)), scores))


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


def _standardised(x: Floats1d) -> Floats1d:
    x = x - (x.mean() if len(x) else 0.0)
    deviation = float(np.sqrt((x * x).mean())) if len(x) else 0.0
    return x / deviation if deviation > 1e-12 else np.zeros(len(x))
