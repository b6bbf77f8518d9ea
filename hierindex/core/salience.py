"""Which sentences stand for a text."""

import numpy as np
from scipy.sparse import csr_array, issparse

from hierindex.core.membership import Floats1d, Floats2d, Ints1d
from hierindex.core.relevance import centroid_similarity

REDUNDANCY = 0.3  # weight of likeness to what is chosen already
NEAR_DUPLICATE = 0.9  # cosine from which a sentence says what another has said


def select_sentences(
    S: Floats2d | csr_array,
    n_tokens: Ints1d,
    relevance: Floats1d | None = None,
    *,
    budget: int,
    redundancy: float = REDUNDANCY,
    near_duplicate: float = NEAR_DUPLICATE,
    source: Ints1d | None = None,
) -> Ints1d:
    """Relevant sentences, few alike, under a token budget that their sources share.

    Maximal marginal relevance: one by one, the sentence that maximises
    (1 - redundancy) * relevance[i] - redundancy * max_j S[i] @ S[j] over the chosen j.

    Parameters
    ----------
    S : (n_sentences, n_dims) unit vectors, dense or sparse
    n_tokens : (n_sentences,) int
    relevance : (n_sentences,) floats, optional
        By default the cosine with the centroid.
    budget : int
        Tokens of all chosen together; a sentence that does not fit is passed over.
    redundancy : float in [0, 1]
    near_duplicate : float
        Cosine to a chosen sentence from which one is never chosen; inclusive.
    source : (n_sentences,) int, optional
        Where each sentence is from. A source that has used up budget / n_sources waits until
        no other has a sentence to offer.

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
    relevance = centroid_similarity(S) if relevance is None else relevance
    shares = _Shares(np.zeros(len(n_tokens), dtype=np.int64) if source is None else source, budget)
    nearest = np.full(len(relevance), -1.0)  # likeness to the likest chosen sentence
    left, chosen = budget, list[int]()
    open_ = n_tokens <= left
    while open_.any():
        score = (1 - redundancy) * relevance - redundancy * nearest
        # Rounded: what is equal but for the order of a sum is taken in the order of the text.
        best = int(np.argmax(np.where(shares.first(open_), np.round(score, 9), -np.inf)))
        chosen.append(best)
        left -= int(n_tokens[best])
        shares.spend(best, int(n_tokens[best]))
        row = S[[best]].toarray()[0] if issparse(S) else S[best]
        nearest = np.maximum(nearest, S @ row)
        open_[best] = False
        open_ &= (n_tokens <= left) & (np.round(nearest, 9) < near_duplicate)
    return np.sort(np.array(chosen, dtype=np.int64))


class _Shares:
    """What each source has spent of its equal share of the budget."""

    def __init__(self, source: Ints1d, budget: int) -> None:
        names, self._source = np.unique(source, return_inverse=True)
        self._spent = np.zeros(len(names), dtype=np.int64)
        self._share = budget / max(len(names), 1)

    def first(self, open_: np.ndarray) -> np.ndarray:
        """Those of sources that have not spent their share; if there are none, all."""
        within = open_ & (self._spent < self._share)[self._source]
        return within if within.any() else open_

    def spend(self, row: int, n_tokens: int) -> None:
        self._spent[self._source[row]] += n_tokens
