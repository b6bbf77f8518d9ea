"""Which sentences stand for a text."""

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.membership import Floats1d, Floats2d, Ints1d
from hierindex.core.ranking import MarginalRelevance

NEAR_DUPLICATE = 0.9  # cosine from which a sentence says what another has said


def select_sentences(
    S: Floats2d | csr_array,
    n_tokens: Ints1d,
    relevance: Floats1d,
    *,
    budget: int,
    redundancy: float,
    source: Ints1d | None = None,
) -> Ints1d:
    """Relevant sentences, few alike, under a token budget that their sources share.

    One by one, that of greatest `MarginalRelevance`, but none that says what a chosen one has
    said.

    Parameters
    ----------
    S : (n_sentences, n_dims) unit vectors, dense or sparse
    n_tokens : (n_sentences,) int
    relevance : (n_sentences,) floats
    budget : int
        Tokens of all chosen together; a sentence that does not fit is passed over.
    redundancy : float in [0, 1]
    source : (n_sentences,) int, optional
        Where each sentence is from. A source that has used up budget / n_sources waits until
        no other has a sentence to offer.

    Returns
    -------
    (n_chosen,) int64
        Ascending row indices. Empty if no sentence fits.

    Notes
    -----
    O(n_chosen * size of S).

    Examples
    --------
    >>> S = np.array([[1, 0], [1, 0], [0.6, 0.8]])
    >>> select_sentences(S, np.full(3, 5), S[:, 0], budget=10, redundancy=0.3).tolist()
    [0, 2]
    """
    S = S.astype(np.float64)
    marginal = MarginalRelevance(S, relevance, redundancy)
    source = np.zeros(len(n_tokens), dtype=np.int64) if source is None else source
    names, source = np.unique(source, return_inverse=True)
    spent = np.zeros(len(names), dtype=np.int64)  # of each source's share
    left, chosen = budget, list[int]()
    open_ = n_tokens <= left
    while open_.any():
        first = open_ & (spent * len(names) < budget)[source]
        among = first if first.any() else open_
        best, _ = marginal.choose(among)
        chosen.append(best)
        left -= int(n_tokens[best])
        spent[source[best]] += n_tokens[best]
        open_[best] = False
        open_ &= (n_tokens <= left) & (np.round(marginal.likeness, 9) < NEAR_DUPLICATE)
    return np.sort(np.array(chosen, dtype=np.int64))
