"""Selection of sentences for an extractive summary."""

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.membership import Floats1d, Floats2d, Ints1d
from hierindex.core.ranking import MarginalRelevance

NEAR_DUPLICATE = 0.9  # cosine similarity


def select_sentences(
    S: Floats2d | csr_array,
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
