"""Which sentences stand for a text."""

import numpy as np
from scipy.sparse import csr_array, issparse

from hierindex.core.membership import Floats1d, Floats2d, Ints1d

REDUNDANCY = 0.3  # weight of likeness to what is chosen already


def select_sentences(
    S: Floats2d | csr_array,
    n_tokens: Ints1d,
    *,
    budget: int,
    towards: Floats1d | None = None,
    redundancy: float = REDUNDANCY,
) -> Ints1d:
    """Sentences most like a direction and least like each other, under a token budget.

    Maximal marginal relevance: one by one, the sentence that maximises
    (1 - redundancy) * S[i] @ towards - redundancy * max_j S[i] @ S[j] over the chosen j.

    Parameters
    ----------
    S : (n_sentences, n_dims) unit vectors, dense or sparse
    n_tokens : (n_sentences,) int
    budget : int
        Tokens of all chosen together; a sentence that does not fit is passed over.
    towards : (n_dims,) unit vector, optional
        By default the sentences' centroid; the question, for an answer.
    redundancy : float in [0, 1]

    Returns
    -------
    (n_chosen,) int64
        Ascending row indices. Empty if no sentence fits.

    Notes
    -----
    O(n_chosen * size of S). Carbonell and Goldstein, The Use of MMR (SIGIR 1998).

    Examples
    --------
    >>> S = np.array([[1, 0], [1, 0], [0.6, 0.8]])
    >>> select_sentences(S, np.array([5, 5, 5]), budget=10).tolist()
    [0, 2]
    """
    S = S.astype(np.float64)
    relevance = S @ (_centroid(S) if towards is None else towards)
    nearest = np.full(len(relevance), -1.0)  # likeness to the likest chosen sentence
    left, chosen = budget, list[int]()
    open_ = n_tokens <= left
    while open_.any():
        score = (1 - redundancy) * relevance - redundancy * nearest
        best = int(np.argmax(np.where(open_, np.round(score, 9), -np.inf)))
        chosen.append(best)
        left -= int(n_tokens[best])
        open_[best] = False
        open_ &= n_tokens <= left
        row = S[[best]].toarray()[0] if issparse(S) else S[best]
        nearest = np.maximum(nearest, S @ row)
    return np.sort(np.array(chosen, dtype=np.int64))


def _centroid(S: Floats2d | csr_array) -> Floats1d:
    mean = np.asarray(S.sum(axis=0), dtype=np.float64).ravel()
    return mean / max(float(np.linalg.norm(mean)), 1e-12)
