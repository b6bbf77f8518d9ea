"""What makes a sentence relevant to its group, by name."""

from collections.abc import Callable
from typing import NamedTuple

from scipy.sparse import csr_array

from hierindex.core.membership import Floats1d, Floats2d, Ints1d
from hierindex.core.relevance import centroid_similarity, lexrank, opening, theme_centrality
from hierindex.core.salience import REDUNDANCY


class Text(NamedTuple):
    """What a method knows of a group's sentences."""

    S: Floats2d | csr_array  # (n_sentences, n_dims) unit rows
    document: Ints1d  # (n_sentences,)
    n_themes: int  # sentences of average length that the budget holds
    seed: int


class Method(NamedTuple):
    """A sentence's relevance, 1 at most, and the redundancy that goes with it."""

    relevance: Callable[[Text], Floats1d]
    redundancy: float


OPENING_LEXRANK = "opening-lexrank"
METHODS = {
    OPENING_LEXRANK: Method(lambda text: _scaled(lexrank(text.S, opening(text.document))), 0.4),
    "lexrank": Method(lambda text: _scaled(lexrank(text.S)), 0.4),
    "mmr": Method(lambda text: centroid_similarity(text.S), REDUNDANCY),
    "centroid": Method(lambda text: centroid_similarity(text.S), 0.0),
    "k-means": Method(lambda text: theme_centrality(text.S, text.n_themes, seed=text.seed), 0.0),
}
"""LexRank that starts afresh at the openings of documents, LexRank as published, likeness to the
centroid with and without redundancy, and the middles of k-means' clusters."""


def _scaled(distribution: Floats1d) -> Floats1d:
    """So that the largest is 1, like a cosine."""
    largest: float = distribution.max(initial=1e-300)
    return distribution / largest
