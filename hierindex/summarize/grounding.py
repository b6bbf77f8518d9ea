"""Grounding of summaries: whether their sentences are similar to their sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arguments import is_number, require
from hierindex.core.calibration import Scale
from hierindex.core.membership import Floats2d
from hierindex.summarize.known import SUPPORT, Embed
from hierindex.summarize.tf_idf import tf_idf

Pair = tuple[Sequence[str], Sequence[str]]
"""The sentences of a summary, and its source sentences."""

SUPPORTED = 0.7  # from 0, chance, to 1, known sources; see tests/benchmarks/grounding.py
MOST = 3  # sources of a sentence
NEARLY = 0.9  # similarity of a further source, relative to the best


@dataclass(frozen=True)
class Support:
    """The sources of each sentence of a summary, best first, and whether they are similar to it.

    `carried` is (n_sentences,) bool, or None if that was not judged.
    """

    sources: list[list[int]]
    carried: NDArray[np.bool_] | None = None


class Grounding(Protocol):
    """Protocol of objects that find the sources of each sentence and judge their similarity."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine the result."""

    def support(self, pairs: Sequence[Pair], embed: Embed) -> list[Support]:
        """Return the sources of each pair's summary; `embed` is the tree's embedding model."""


class EmbeddingGrounding:
    """A grounding by the cosine similarity between sentences and their sources.

    Parameters
    ----------
    threshold : float in (-1, 1], optional
        Cosine similarity from which a source counts as similar, inclusive. By default it is
        calibrated for each embedding model on known pairs of a sentence and its source.
    """

    def __init__(self, threshold: float | None = None) -> None:
        within = threshold is None or (is_number(threshold) and -1 < threshold <= 1)
        require(within, "threshold", "a number in (-1, 1]", threshold)
        self.threshold = threshold

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine the result."""
        return {"type": "embedding", "threshold": self.threshold}

    def support(self, pairs: Sequence[Pair], embed: Embed) -> list[Support]:
        """Return the sources of each pair's summary."""
        if not pairs:
            return []
        threshold = known_threshold(embed) if self.threshold is None else self.threshold
        return [_support(S @ T.T, threshold) for S, T in _vectors(pairs, embed)]


def known_threshold(embed: Embed) -> float:
    """Return the calibrated cosine threshold of an embedding model."""
    model = getattr(embed, "__self__", embed)  # a bound method does not outlive the call
    S, T, _ = SUPPORT.vectors(model, embed)
    return Scale.of(S @ T.T, nearest=True).similarity(SUPPORTED)


def support_by_words(pairs: Sequence[Pair]) -> list[Support]:
    """Return the sources with the most similar words, without judging them."""
    supports = []
    for sentences, sources in pairs:
        S = tf_idf([*sentences, *sources])
        supports.append(_support((S[: len(sentences)] @ S[len(sentences) :].T).toarray()))
    return supports


def _vectors(pairs: Sequence[Pair], embed: Embed) -> list[tuple[Floats2d, Floats2d]]:
    texts = list(dict.fromkeys(text for pair in pairs for side in pair for text in side))
    row = {text: i for i, text in enumerate(texts)}
    X = embed(texts)
    return [(X[[row[t] for t in S]], X[[row[t] for t in T]]) for S, T in pairs]


def _support(similarity: Floats2d, threshold: float | None = None) -> Support:
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :MOST]
    best = similarity.max(axis=1)
    least = NEARLY * best if threshold is None else np.maximum(NEARLY * best, threshold)
    sources = [
        [int(j) for rank, j in enumerate(row) if rank == 0 or similarity[i, j] >= least[i]]
        for i, row in enumerate(order)
    ]
    return Support(sources, None if threshold is None else best >= threshold)
