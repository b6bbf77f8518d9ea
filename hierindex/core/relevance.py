"""How much each sentence of a text says of the whole: scores in [0, 1] or cosines."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.membership import Floats1d, Floats2d, Ints1d

DAMPING = 0.85  # the share of a step that follows the graph, as in PageRank
MOST_DENSE = 500  # sentences; for fewer, many sparse products cost more than one dense matrix
CONVERGED = 1e-12  # L1 change of a step; each step brings the limit nearer by DAMPING at least


def centroid_similarity(S: Floats2d | csr_array) -> Floats1d:
    """Cosine of each sentence with the mean of all.

    Parameters
    ----------
    S : (n_sentences, n_dims) unit vectors, dense or sparse

    Returns
    -------
    (n_sentences,) in [-1, 1]
        0 where the sentences cancel each other out.

    Notes
    -----
    Radev et al., Centroid-based Summarization of Multiple Documents (2004).
    """
    mean = np.asarray(S.sum(axis=0), dtype=np.float64).ravel()
    return np.asarray(S @ (mean / max(float(np.linalg.norm(mean)), 1e-12)))


def lexrank(
    S: Floats2d | csr_array, restart: Floats1d | None = None, *, damping: float = DAMPING
) -> Floats1d:
    """Where a walk from sentence to like sentence spends its time.

    The walk steps to another sentence with probability proportional to the cosine, where that is
    positive, and starts afresh with probability 1 - damping, or where nothing is alike.

    Parameters
    ----------
    S : (n_sentences, n_dims) unit vectors, dense or sparse
        Sparse ones without negative entries.
    restart : (n_sentences,) positive floats, optional
        Where the walk starts afresh; uniform by default.
    damping : float in [0, 1)

    Returns
    -------
    (n_sentences,) in [0, 1]
        The stationary distribution; sums to 1.

    Notes
    -----
    Some 40 products with S where it is sparse and large, else with a matrix of n_sentences^2.
    Erkan and Radev, LexRank (JAIR 2004), section 3.2, without its threshold and
    without steps to the same sentence, which favour a sentence like no other; with `restart`,
    Otterbacher, Erkan and Radev, Using Random Walks for Question-focused Sentence Retrieval
    (HLT 2005).

    Examples
    --------
    >>> lexrank(np.eye(2)).tolist()
    [0.5, 0.5]
    """
    n = S.shape[0]
    start = np.full(n, 1 / max(n, 1)) if restart is None else restart / restart.sum()
    likeness = _likeness(S)
    degree = likeness(np.ones(n))  # of the graph's nodes
    per_degree = np.divide(1.0, degree, out=np.zeros(n), where=degree > 1e-9)
    p, change = start, float(n)
    while change > CONVERGED:
        stepped = likeness(p * per_degree)
        stuck = 1 - stepped.sum()  # at sentences like no other
        after = damping * (stepped + stuck * start) + (1 - damping) * start
        p, change = after, float(np.abs(after - p).sum())
    return p


def _likeness(S: Floats2d | csr_array) -> Callable[[Floats1d], Floats1d]:
    """Product with the matrix of the sentences' positive cosines to each other."""
    if isinstance(S, csr_array) and S.shape[0] > MOST_DENSE:
        itself = np.asarray(S.multiply(S).sum(axis=1)).ravel()
        return lambda weights: np.asarray(S @ (S.T @ weights) - itself * weights)
    S = S.astype(np.float64)
    cosine = (S @ S.T).toarray() if isinstance(S, csr_array) else S @ S.T
    cosine = np.maximum(cosine, 0.0)
    np.fill_diagonal(cosine, 0.0)
    return lambda weights: np.asarray(cosine @ weights)


def opening(document: Ints1d) -> Floats1d:
    """One over each sentence's place in its document, counted from 1: for `lexrank`'s `restart`.

    Texts tend to say first what they are about.

    >>> opening(np.array([0, 0, 7, 0])).tolist()
    [1.0, 0.5, 1.0, 0.3333333333333333]
    """
    order = np.argsort(document, kind="stable")
    ordered = document[order]
    place = np.empty(len(document))
    place[order] = 1 + np.arange(len(document)) - np.searchsorted(ordered, ordered)
    return 1 / place
