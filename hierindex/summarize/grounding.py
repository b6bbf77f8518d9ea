"""How well the sentences of a summary are supported by the sentences that it was written from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arguments import is_number, require
from hierindex.core.membership import Floats2d
from hierindex.summarize.vectors import tf_idf

Pair = tuple[Sequence[str], Sequence[str]]
"""The sentences of a summary, and the sentences that it was written from."""

Embed = Callable[[Sequence[str]], Floats2d]
"""Unit vectors (n_texts, n_dims) of texts."""

THRESHOLD = 0.5  # cosine, where there are too few pairs to calibrate it
CALIBRATED_FROM = 20  # sentences
CHANCE = 0.05  # of a sentence to find support in the sources of another summary
SAME = 0.999  # cosine of a source that both summaries have
MOST = 3  # sources of a sentence
NEARLY = 0.9  # of the best source's likeness: what supports the sentence as well


@dataclass(frozen=True)
class Support:
    """Of each sentence of a summary: its sources, the best first, and whether they carry it.

    `carried` is (n_sentences,) bool; None where that was not looked at.
    """

    sources: list[list[int]]
    carried: NDArray[np.bool_] | None = None


class Grounding(Protocol):
    """Looks for the support of each sentence of each summary."""

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes what is found."""

    def support(self, pairs: Sequence[Pair], embed: Embed | None) -> list[Support]:
        """The support of each pair's summary."""


class EmbeddingGrounding:
    """A sentence is supported if a source's embedding is near enough.

    Parameters
    ----------
    threshold : float in (-1, 1], optional
        Cosine, inclusive. By default the one that all but 5% of the sentences stay below when
        they are compared with the sources of another summary of the level, if there are
        enough; else 0.5.
    """

    def __init__(self, threshold: float | None = None) -> None:
        within = threshold is None or (is_number(threshold) and -1 < threshold <= 1)
        require(within, "threshold", "a number in (-1, 1]", threshold)
        self.threshold = threshold

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes what is found."""
        return {"type": "embedding", "threshold": self.threshold}

    def support(self, pairs: Sequence[Pair], embed: Embed | None) -> list[Support]:
        """The support of each pair's summary; by words alone where nothing embeds."""
        if embed is None or not pairs:
            return support_by_words(pairs)
        vectors = _vectors(pairs, embed)
        threshold = calibrated_threshold(vectors) if self.threshold is None else self.threshold
        return [_support(S @ T.T, threshold) for S, T in vectors]


def calibrated_threshold(vectors: Sequence[tuple[Floats2d, Floats2d]]) -> float:
    """The likeness that chance hardly reaches: of sentences to the sources of another summary.

    Parameters
    ----------
    vectors : sequence of (n_sentences, n_dims) and (n_sources, n_dims)
        Unit vectors of each summary and of its sources.

    Returns
    -------
    float
        A cosine: the 95th percentile of the sentences' nearest foreign sources.
    """
    away = len(vectors) // 2  # those next to each other may be of one document
    nearest = []
    for i, (S, own) in enumerate(vectors):
        T = vectors[(i + away) % len(vectors)][1]
        foreign = T[(T @ own.T).max(axis=1, initial=-1.0) < SAME]
        if len(foreign):
            nearest.append((S @ foreign.T).max(axis=1))
    found = np.concatenate(nearest) if away and nearest else np.zeros(0)
    return float(np.quantile(found, 1 - CHANCE)) if len(found) >= CALIBRATED_FROM else THRESHOLD


def support_by_words(pairs: Sequence[Pair]) -> list[Support]:
    """The sources that each sentence is most like by its words; whether they carry it is open."""
    found = []
    for sentences, sources in pairs:
        S = tf_idf([*sentences, *sources])
        found.append(_support((S[: len(sentences)] @ S[len(sentences) :].T).toarray()))
    return found


def _vectors(pairs: Sequence[Pair], embed: Embed) -> list[tuple[Floats2d, Floats2d]]:
    texts = list(dict.fromkeys(text for pair in pairs for side in pair for text in side))
    row = {text: i for i, text in enumerate(texts)}
    X = embed(texts)
    return [(X[[row[t] for t in told]], X[[row[t] for t in given]]) for told, given in pairs]


def _support(likeness: Floats2d, threshold: float | None = None) -> Support:
    """Sources by likeness (n_sentences, n_sources)."""
    order = np.argsort(-likeness, axis=1, kind="stable")[:, :MOST]
    best = likeness.max(axis=1)
    least = NEARLY * best if threshold is None else np.maximum(NEARLY * best, threshold)
    sources = [
        [int(j) for rank, j in enumerate(row) if rank == 0 or likeness[i, j] >= least[i]]
        for i, row in enumerate(order)
    ]
    return Support(sources, None if threshold is None else best >= threshold)
