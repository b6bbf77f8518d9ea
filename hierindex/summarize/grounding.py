"""How well the sentences of a summary are supported by the sentences that it was written from."""

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
"""The sentences of a summary, and the sentences that it was written from."""

# Between chance, 0, and known support, 1: 5% of the sentences of reports and of chapters find
# support in the sources of another summary (tests/benchmarks/grounding.py).
SUPPORTED = 0.7
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
        Cosine, inclusive. By default it lies, for each embedding model, between chance and the
        mean cosine of sentences to the sources that are known to support them.
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
        threshold = known_threshold(embed) if self.threshold is None else self.threshold
        return [_support(S @ T.T, threshold) for S, T in _vectors(pairs, embed)]


def known_threshold(embed: Embed) -> float:
    """The cosine from which a source supports a sentence, by one embedding model."""
    model = getattr(embed, "__self__", embed)  # a bound method does not last as its object does
    S, T, _ = SUPPORT.vectors(model, embed)
    return Scale.of(S @ T.T, nearest=True).similarity(SUPPORTED)


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
