"""Grounding of summaries: whether sentences and numbers are supported by their sources."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock
from typing import Any, Protocol
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arguments import is_number, require
from hierindex.core.arrays import Floats2d
from hierindex.core.calibration import Scale
from hierindex.summarize.extractive import tf_idf

Pair = tuple[Sequence[str], Sequence[str]]
"""The sentences of a summary, and its source sentences."""

SUPPORTED = 0.7  # from 0, chance, to 1, known sources; see tests/benchmarks/grounding.py
MOST = 3  # sources of a sentence
NEARLY = 0.9  # similarity of a further source, relative to the best
WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand million billion"
).split()
VALUES = dict(zip(WORDS, [*range(20), *range(20, 100, 10), 100, 10**3, 10**6, 10**9], strict=True))
WORD = "|".join(WORDS)
SPELLED = re.compile(rf"\b(?:{WORD})(?:[\s-]+(?:and[\s-]+)?(?:{WORD}))*\b")
NUMBER = re.compile(r"(?<![^\W\d_])\d+(?:[.,'’\u00a0\u2009\u202f]\d+)*")  # noqa: RUF001
NOT_CLAIMED = re.compile(r"(?m)^\s*(?:Response )?\d{1,3}[.):]\s|\[\d[\d\s,;–?-]*\]")  # noqa: RUF001
"""Marks of lists, labels of LlamaIndex's several answers, and citations."""
Embed = Callable[[Sequence[str]], Floats2d]
"""A function from texts to unit vectors (n_texts, n_dims)."""


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


def numbers_in(text: str) -> set[Decimal]:
    """Return the values of all numbers in a text, in digits or English words.

    A number that can be read in two ways has both values: "1.200" is 1.2, or 1200 where points
    group digits. A number in several words also has the values of its words and beginnings.

    >>> sorted(map(str, numbers_in("The 4th of twenty-five, 12.50 of 1,200")))
    ['12.50', '1200', '20', '25', '4', '5']
    """
    values = set[Decimal]().union(*_values(text))
    for number in SPELLED.findall(text.lower()):
        total = 0
        for value in (VALUES[word] for word in re.findall("[a-z]+", number) if word != "and"):
            below = total % value if value >= 100 else 0  # what "hundred" multiplies
            total += max(below, 1) * value - below
            values |= {Decimal(value), Decimal(total)}
    return values


def has_other_number(sentence: str, known: set[Decimal]) -> bool:
    """Return whether a sentence has a number in digits that is not known.

    Numbers in words are not compared: in people's true summaries, more of these are unknown.

    >>> has_other_number("2. It cost $1200.00 [3].", numbers_in("for 1,200 dollars"))
    False
    """
    return any(map(known.isdisjoint, _values(NOT_CLAIMED.sub(" ", sentence))))


def _values(text: str) -> Iterator[set[Decimal]]:
    """Yield the possible values of each number in digits; each part of a date is a number."""
    for number in NUMBER.findall(text):
        parts, marks = re.split(r"\D", number), re.sub(r"\d", "", number)
        values, is_grouped = set[Decimal](), all(len(part) == 3 for part in parts[1:])
        if is_grouped:
            values.add(Decimal("".join(parts)))
        if marks[-1:] in ({"."} if is_grouped else {".", ","}) and marks.count(marks[-1]) == 1:
            values.add(Decimal(f"{''.join(parts[:-1])}.{parts[-1]}"))
        yield from [values] if values else ({Decimal(part)} for part in parts)


class KnownPairs:
    """Pairs of texts, with a cache of their vectors for each embedding model.

    Parameters
    ----------
    pairs : str
        Two lines per pair: a text, and a text that belongs to it and to no other.
    beside : sequence of str
        Further texts to embed in the same batch.
    """

    def __init__(self, pairs: str, beside: Sequence[str] = ()) -> None:
        lines = [line.strip() for line in pairs.strip().splitlines()]
        self.sides = lines[::2], lines[1::2]
        self._texts = [*lines[::2], *lines[1::2], *beside]
        self._vectors: dict[int, list[Floats2d]] = {}  # by id, as models are not hashable
        self._lock = Lock()

    def vectors(self, model: object, embed: Embed) -> list[Floats2d]:
        """Return the vectors of the first texts, of the second, and of the texts beside.

        Parameters
        ----------
        model : object
            The vectors are cached until it is garbage-collected.
        embed : Embed
            The model's embedding function, called once per model, also by several threads.
        """
        with self._lock:
            if id(model) not in self._vectors:
                n = len(self.sides[0])
                self._vectors[id(model)] = np.split(embed(self._texts), [n, 2 * n])
                finalize(model, self._vectors.pop, id(model), None)
            return self._vectors[id(model)]


SUPPORT = KnownPairs("""
The ferry was cancelled because of high waves.
    Since the sea was too rough, no boat crossed to the island that day.
Most members voted against a higher fee.
    The proposal to raise the annual fee failed by nineteen votes to seven.
The enzyme breaks down starch in the mouth.
    Amylase in saliva begins to split starch into sugar while food is being chewed.
Her first novel found no publisher for years.
    Eleven houses had returned the manuscript before one of them agreed to print her novel.
Unemployment fell to its lowest level in a decade.
    At four percent, fewer people were out of work than in any of the ten years before.
The cache must be cleared after every update.
    Once the new version is installed, delete the cached files, or old pages will be shown.
The general ordered a retreat across the river.
    At dusk the commander sent word that all troops were to withdraw over the bridge.
Wild bees pollinate the orchard better than hives do.
    More blossoms set fruit where solitary bees nested than where keepers had put colonies.
The designer prefers a wooden handle to a plastic one.
    I would make the grip out of wood, she said, plastic feels cheap in the hand.
The defendant was acquitted for lack of evidence.
    As nothing proved that he had been in the house, the jury found him not guilty.
The planet turns once in about ten hours.
    Jupiter's day is the shortest of all, less than ten hours from one sunrise to the next.
The agency did not check how the grants were spent.
    No official had asked the recipients for receipts, so the use of the funds is unknown.
He learned to play the violin from his uncle.
    It was his mother's brother who put a fiddle into his hands and gave him lessons.
The bread should rest overnight in a cold place.
    Leave the dough in the refrigerator until the next morning before it is baked.
New trains will run every six minutes.
    From spring on, ten departures an hour are planned on the underground line.
The painting had been hidden behind a wall.
    When workmen removed the panelling, they came upon a portrait that nobody knew of.
Patients who slept longer recovered sooner from surgery.
    After the operation, those with eight hours of sleep went home two days earlier.
The glacier has lost a third of its ice.
    Measured against the maps of 1950, one third of the ice sheet has melted.
The teacher wants smaller classes in mathematics.
    With thirty pupils she cannot help anyone with algebra; fifteen, she says, would do.
The two companies agreed to share their patents.
    Under the contract, each firm may use the inventions of the other without a licence fee.
""")
"""Sentences and their sources, each on its own topic, so that it supports no other sentence."""
