"""Salience of sentences by LexRank and by topics, and selection of salient sentences."""

from typing import TYPE_CHECKING

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d
from hierindex.core.ranking import MarginalRelevance

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DAMPING = 0.85  # as in PageRank
CONVERGED = 1e-12  # L1 change of a step
NEAR_DUPLICATE = 0.9  # cosine similarity
SHORT = 30  # tokens of a sentence that a part may always begin with


def lexrank(S: "csr_array", restart: Floats1d) -> Floats1d:
    """Return the stationary distribution of a random walk between similar sentences.

    A step goes to another sentence with probability proportional to its cosine similarity. The
    walk restarts with probability 0.15, or if no sentence is similar.

    Parameters
    ----------
    S : (n_sentences, n_words) csr_array
        Unit vectors without negative entries.
    restart : (n_sentences,) positive floats
        Relative probability of a restart at each sentence.

    Returns
    -------
    (n_sentences,) in [0, 1]
        Sums to 1.

    Notes
    -----
    About 40 products with S and its transpose.
    Erkan and Radev, LexRank (JAIR 2004), section 3.2, without the threshold and without self-loops,
    which favour isolated sentences. `restart` is from Otterbacher, Erkan and Radev, Using Random
    Walks for Question-focused Sentence Retrieval (HLT 2005).

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> lexrank(csr_array(np.eye(2)), np.ones(2)).tolist()
    [0.5, 0.5]
    """
    n = S.shape[0]
    p = start = np.asarray(restart / restart.sum())
    T, itself = S.T, np.asarray(S.multiply(S).sum(axis=1)).ravel()
    degree = S @ T.sum(axis=1) - itself
    # The probability of a step per unit of similarity; 0 without similar sentences.
    per_degree = np.divide(DAMPING, degree, out=np.zeros(n), where=degree > 1e-9)
    change = float(n)
    while change > CONVERGED:
        step = p * per_degree
        stepped = S @ (T @ step) - itself * step
        after = stepped + (1 - stepped.sum()) * start  # all that did not step restarts
        p, change = after, float(np.abs(after - p).sum())
    return p


def opening(document: Ints1d) -> Floats1d:
    """Return 1 / position of each sentence in its document, as a `restart` that favours openings.

    >>> opening(np.array([0, 0, 7, 0])).tolist()
    [1.0, 0.5, 1.0, 0.3333333333333333]
    """
    order = np.argsort(document, kind="stable")
    ordered = document[order]
    place = np.empty(len(document))
    place[order] = 1 + np.arange(len(document)) - np.searchsorted(ordered, ordered)
    return 1 / place


def topicality(X: "csr_array", part: Ints1d, n_words: Ints1d) -> Floats1d:
    """Return how much each sentence says about the topics of its part.

    A word's weight is log(n) * (1 + log(n_parts / m)), where n is the number of sentences of the
    part that contain it, and m the number of parts that do. A word that is in no other sentence of
    its part has no weight, and is no topic.

    Parameters
    ----------
    X : (n_sentences, n_terms) csr_array
        A nonzero entry for each distinct word of a sentence.
    part : (n_sentences,) int
    n_words : (n_sentences,) positive int
        The lengths of the sentences, including words that X does not have.

    Returns
    -------
    (n_sentences,) floats, at least 0
        The mean weight of a sentence's words, times the share of its words in X that are topics.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[1, 0, 0], [1, 1, 0], [1, 0, 1]])
    >>> topicality(X, np.zeros(3, dtype=np.int64), np.array([1, 2, 4])).round(2).tolist()
    [1.1, 0.27, 0.14]
    """
    n, n_terms = X.shape
    row = np.repeat(np.arange(n), np.diff(X.indptr))
    parts, part = np.unique(part, return_inverse=True)
    cells, cell, counts = np.unique(
        part[row] * n_terms + X.indices, return_inverse=True, return_counts=True
    )
    n_within, n_parts = counts[cell], np.bincount(cells % n_terms, minlength=n_terms)[X.indices]
    weights = np.log(n_within) * (1 + np.log(len(parts) / n_parts))
    total, n_topics, n_distinct = (
        np.bincount(row, weights=of, minlength=n) for of in (weights, n_within > 1, n_within > 0)
    )
    return np.asarray(total / n_words * n_topics / np.maximum(n_distinct, 1))


def select_sentences(
    S: "Floats2d | csr_array",
    n_tokens: Ints1d,
    relevance: Floats1d,
    *,
    budget: int,
    redundancy: float,
    part: Ints1d,
    size: Floats1d,
) -> Ints1d:
    """Select sentences of each part by `MarginalRelevance` within a token budget.

    Each part gets one sentence before any part gets a second one, starting with the largest part.
    After that, parts get sentences in proportion to their sizes. Near duplicates of a selected
    sentence are skipped.

    Parameters
    ----------
    S : (n_sentences, n_dims) unit vectors, dense or sparse
    n_tokens : (n_sentences,) int
    relevance : (n_sentences,) floats
    budget : int
        Total tokens; a sentence that does not fit is skipped. A part's first sentence has at most
        the larger of budget / n_parts and 30 tokens, if the part has such a sentence.
    redundancy : float in [0, 1]
    part : (n_sentences,) int
        The part of each sentence, from 0.
    size : (n_parts,) positive floats

    Returns
    -------
    (n_selected,) int64
        Ascending row indices; empty if no sentence fits.

    Notes
    -----
    O(n_selected * size of S). The order of the parts is d'Hondt's.

    Examples
    --------
    >>> S = np.array([[1, 0], [1, 0], [0.6, 0.8]])
    >>> one, size = np.zeros(3, dtype=np.int64), np.ones(1)
    >>> options = {"budget": 10, "redundancy": 0.3, "part": one, "size": size}
    >>> select_sentences(S, np.full(3, 5), S[:, 0], **options).tolist()
    [0, 2]
    """
    S = S.astype(np.float64, copy=False)
    marginal = MarginalRelevance(S, relevance, redundancy)
    n_taken, fair = np.zeros(len(size)), budget / max(len(np.unique(part)), 1)
    remaining, chosen = budget, list[int]()
    open_ = n_tokens <= remaining
    while open_.any():
        claim = np.where(n_taken == 0, np.inf, size / (n_taken + 1))
        of = np.unique(part[open_])
        turn = of[np.lexsort((-size[of], -claim[of]))[0]]
        among = open_ & (part == turn)
        short = among & (n_tokens <= max(fair, SHORT))
        best, _ = marginal.choose(short if not n_taken[turn] and short.any() else among)
        chosen.append(best)
        remaining -= int(n_tokens[best])
        n_taken[turn] += 1
        open_[best] = False
        open_ &= (n_tokens <= remaining) & (np.round(marginal.likeness, 9) < NEAR_DUPLICATE)
    return np.sort(np.array(chosen, dtype=np.int64))
