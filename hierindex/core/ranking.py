"""Ranking: scores standardised and fused, marginal relevance, soft maxima, reading order."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from hierindex.core.membership import Floats1d, Floats2d, Ints1d
from hierindex.errors import InputError

DENSE_SHARE = 0.6  # at 0.7 tech_books sections' hit@1 is 0.553 for 0.571; at 0.5 it is 0.547
RRF = 60  # Cormack, Clarke and Buettcher 2009: near the best, and not critical


def blended(dense: Floats1d, lexical: Floats1d) -> Floats1d:
    """Dense and lexical scores of the candidates of one question as one score, (n,) float64.

    0.6 of the standardised dense scores, of any similarity, and 0.4 of the standardised lexical
    ones, as BM25, which are 0 for a candidate that the search by words did not find; in standard
    deviations above the mean of the candidates, and all 0 where all are alike.

    Raises
    ------
    InputError
        If the arrays differ in length or a score is not finite.
    """
    dense, lexical = finite(dense, "dense scores"), finite(lexical, "lexical scores")
    if len(lexical) != len(dense):
        raise InputError(
            f"There must be as many lexical as dense scores, got {len(lexical)} and {len(dense)}."
        )
    return _standardised(
        DENSE_SHARE * _standardised(dense) + (1 - DENSE_SHARE) * _standardised(lexical)
    )


def reciprocal_ranks(
    rankings: Sequence[Sequence[Hashable]], weights: Sequence[float]
) -> dict[Hashable, float]:
    """Rankings fused into one: the score of each item, 1 for the first of all rankings.

    The sum of weight / (60 + rank) over the rankings that have it, ranks counted from 1, times
    61; for weights that sum to 1.

    >>> reciprocal_ranks([["a", "b"], ["a"]], [0.5, 0.5])["a"]
    1.0
    """
    scores: dict[Hashable, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + weight * (RRF + 1) / (RRF + rank)
    return scores


class MarginalRelevance:
    """Maximal marginal relevance: what is relevant and unlike what was chosen before.

    Parameters
    ----------
    S : (n, n_dims) unit vectors, dense or sparse
    relevance : (n,) floats
    redundancy : float in [0, 1]
        Weight of the likeness to what was chosen; that of relevance is what is left of 1.

    Notes
    -----
    A choice costs a product with S. Carbonell and Goldstein, The Use of MMR (SIGIR 1998).
    """

    def __init__(self, S: Floats2d | csr_array, relevance: Floats1d, redundancy: float) -> None:
        self._S = S
        self._relevance = self._scores = (1 - redundancy) * relevance
        self._redundancy = redundancy
        self.likeness = np.full(len(relevance), -np.inf)
        """(n,) cosine of each row to the likest chosen one."""

    def choose(self, among: NDArray[np.bool_]) -> tuple[int, float]:
        """The best of some rows, and its score.

        Rounded: what is equal but for the order of a sum is taken in the order of the rows.
        """
        best = int(np.argmax(np.where(among, np.round(self._scores, 9), -np.inf)))
        score = float(self._scores[best])
        x = self._S[[best]].toarray()[0] if issparse(self._S) else self._S[best]
        self.likeness = np.maximum(self.likeness, self._S @ x)
        self._scores = self._relevance - self._redundancy * self.likeness
        return best, score


def diversified(
    S: Floats2d, relevance: Floats1d, n: int, redundancy: float
) -> tuple[list[int], list[float]]:
    """The n rows of greatest `MarginalRelevance`, each chosen after those before it.

    Returns
    -------
    rows, scores : n each, or fewer if there are no more rows
    """
    marginal, left = MarginalRelevance(S, relevance, redundancy), np.ones(len(relevance), bool)
    rows, scores = list[int](), list[float]()
    for _ in range(min(n, len(relevance))):
        row, score = marginal.choose(left)
        left[row] = False
        rows.append(row)
        scores.append(score)
    return rows, scores


def soft_maximum(scores: Floats1d, M: Floats2d) -> Floats1d:
    """log(M exp(scores)), not below the scores; M is (n, n), 1 on its diagonal."""
    top = scores.max()
    with np.errstate(divide="ignore"):  # what is so far below that it vanishes keeps its score
        return np.asarray(np.maximum(top + np.log(M @ np.exp(scores - top)), scores))


def shared_words(has: NDArray[np.bool_]) -> Floats1d:
    """Weight of the question's words that each sentence has: log(1 + n_sentences / df) each.

    `has` is (n_sentences, n_words), whether a sentence has a word of the question.

    >>> shared_words(np.array([[True, False], [True, True]])).round(2).tolist()
    [0.69, 1.79]
    """
    df = np.maximum(has.sum(axis=0), 1)
    return np.asarray(has @ np.log(1 + len(has) / df), dtype=np.float64)


def reading_order(relevance: Floats1d, document: Ints1d, start: Floats1d) -> Ints1d:
    """Sentences in the order of their documents, that with the most relevant of all first.

    Row indices, by the number of each sentence's document and where it begins there. Of documents
    that are as relevant, the one with the lower number is first.

    >>> reading_order(np.array([2, 9, 3]), np.array([0, 1, 0]), np.array([5, 0, 1])).tolist()
    [1, 2, 0]
    """
    names, number = np.unique(document, return_inverse=True)
    best = np.full(len(names), -np.inf)
    np.maximum.at(best, number, relevance)
    return np.lexsort((start, number, -best[number]))


def finite(x: Floats1d, what: str) -> Floats1d:
    """An array as floats, refused by name if one of them is not finite."""
    x = np.asarray(x, dtype=np.float64)
    if not np.isfinite(x).all():
        raise InputError(f"The {what} must be finite, got {x[~np.isfinite(x)][0]}.")
    return x


def _standardised(x: Floats1d) -> Floats1d:
    x = x - (x.mean() if len(x) else 0.0)
    deviation = float(np.sqrt((x * x).mean())) if len(x) else 0.0
    return x / deviation if deviation > 1e-12 else np.zeros(len(x))
