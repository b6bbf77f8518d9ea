"""Salience of sentences by LexRank or the centroid, and selection of salient sentences."""

from typing import TYPE_CHECKING

import numpy as np

from hierindex.core.arrays import Floats1d, Floats2d, Ints1d
from hierindex.core.ranking import MarginalRelevance

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DAMPING = 0.85  # as in PageRank
MOST_DENSE = 99  # sentences; with more, OpenBLAS starts threads, which cost more than the system
CONVERGED = 1e-12  # L1 change of a step
NEAR_DUPLICATE = 0.9  # cosine similarity


def centroid_similarity(S: "Floats2d | csr_array") -> Floats1d:
    """Return the cosine similarity of each sentence to the mean of all.

    Parameters
    ----------
    S : (n_sentences, n_dims) unit vectors, dense or sparse

    Returns
    -------
    (n_sentences,) in [-1, 1]
        All 0 if the sentences cancel out.

    Notes
    -----
    Radev et al., Centroid-based Summarization of Multiple Documents (2004).
    """
    mean = np.asarray(S.sum(axis=0), dtype=np.float64).ravel()
    return np.asarray(S @ (mean / max(float(np.linalg.norm(mean)), 1e-12)))


def lexrank(S: "csr_array", restart: Floats1d | None = None) -> Floats1d:
    """Return the stationary distribution of a random walk between similar sentences.

    A step goes to another sentence with probability proportional to its cosine similarity. The
    walk restarts with probability 0.15, or if no sentence is similar.

    Parameters
    ----------
    S : (n_sentences, n_words) csr_array
        Unit vectors without negative entries.
    restart : (n_sentences,) positive floats, optional
        Relative probability of a restart at each sentence; uniform by default.

    Returns
    -------
    (n_sentences,) in [0, 1]
        Sums to 1.

    Notes
    -----
    O(n_sentences^3) for up to 99 sentences, or else about 40 products with S and its transpose.
    Erkan and Radev, LexRank (JAIR 2004), section 3.2, without the threshold and without self-loops,
    which favour isolated sentences. `restart` is from Otterbacher, Erkan and Radev, Using Random
    Walks for Question-focused Sentence Retrieval (HLT 2005).

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> lexrank(csr_array(np.eye(2))).tolist()
    [0.5, 0.5]
    """
    n = S.shape[0]
    start = np.full(n, 1 / max(n, 1)) if restart is None else restart / restart.sum()
    if n <= MOST_DENSE:
        cosine = (S @ S.T).toarray()  # sparse, as S has many more columns than rows
        np.fill_diagonal(cosine, 0.0)
        p = np.linalg.solve(np.eye(n) - cosine * _per_degree(cosine.sum(axis=0)), start)
        return np.asarray(p / p.sum())
    T, itself = S.T, np.asarray(S.multiply(S).sum(axis=1)).ravel()
    per_degree = _per_degree(S @ T.sum(axis=1) - itself)
    p, change = start, float(n)
    while change > CONVERGED:
        step = p * per_degree
        stepped = S @ (T @ step) - itself * step
        after = stepped + (1 - stepped.sum()) * start  # all that did not step restarts
        p, change = after, float(np.abs(after - p).sum())
    return p


def _per_degree(degree: Floats1d) -> Floats1d:
    """Return the probability of a step per unit of similarity; 0 for one that is like no other."""
    return np.divide(DAMPING, degree, out=np.zeros(len(degree)), where=degree > 1e-9)


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


def select_sentences(
    S: "Floats2d | csr_array",
    n_tokens: Ints1d,
    relevance: Floats1d,
    *,
    budget: int,
    redundancy: float,
    source: Ints1d | None = None,
) -> Ints1d:
    """Select sentences by `MarginalRelevance` under a token budget that sources share.

    Near duplicates of a selected sentence are skipped.

    Parameters
    ----------
    S : (n_sentences, n_dims) unit vectors, dense or sparse
    n_tokens : (n_sentences,) int
    relevance : (n_sentences,) floats
    budget : int
        Total tokens; a sentence that does not fit is skipped.
    redundancy : float in [0, 1]
    source : (n_sentences,) int, optional
        A source that has used budget / n_sources tokens is considered again only when the others
        have no sentence to offer.

    Returns
    -------
    (n_selected,) int64
        Ascending row indices; empty if no sentence fits.

    Notes
    -----
    O(n_selected * size of S).

    Examples
    --------
    >>> S = np.array([[1, 0], [1, 0], [0.6, 0.8]])
    >>> select_sentences(S, np.full(3, 5), S[:, 0], budget=10, redundancy=0.3).tolist()
    [0, 2]
    """
    S = S.astype(np.float64, copy=False)
    marginal = MarginalRelevance(S, relevance, redundancy)
    source = np.zeros(len(n_tokens), dtype=np.int64) if source is None else source
    names, source = np.unique(source, return_inverse=True)
    spent = np.zeros(len(names), dtype=np.int64)  # tokens per source
    remaining, chosen = budget, list[int]()
    open_ = n_tokens <= remaining
    while open_.any():
        within_share = open_ & (spent * len(names) < budget)[source]
        among = within_share if within_share.any() else open_
        best, _ = marginal.choose(among)
        chosen.append(best)
        remaining -= int(n_tokens[best])
        spent[source[best]] += n_tokens[best]
        open_[best] = False
        open_ &= (n_tokens <= remaining) & (np.round(marginal.likeness, 9) < NEAR_DUPLICATE)
    return np.sort(np.array(chosen, dtype=np.int64))
