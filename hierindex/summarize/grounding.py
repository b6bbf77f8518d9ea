"""Checks whether the sentences of a text are supported by its sources, and by which ones."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from weakref import finalize

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d
from hierindex.core.ranking import Scale
from hierindex.summarize.extractive import tf_idf
from hierindex.summarize.facts import STEM, Facts, folded, names_in, values_in
from hierindex.text.sentences import tokens
from hierindex.text.words import EVERY_STOP_WORD

Pair = tuple[Sequence[str], Sequence[str]]
"""The sentences of a text, and its source sentences."""
Embed = Callable[[Sequence[str]], Floats2d]
"""A function from texts to unit vectors (n_texts, n_dims)."""

# All are from tests/benchmarks/grounding.py.
MAX_SOURCES = 3  # of a sentence
NEARLY = 0.9  # similarity of a further source, relative to the best
N_NEAREST = 8  # nearest sources, whose words count
SUPPORTED = 0.8  # least similarity, from 0, chance, to 1, known sources
WORD_WEIGHT = 1.6  # how much a full overlap of words lowers the required similarity
COPIED = 0.5  # share of words from which a source is taken for the original of a sentence
LONGER = 1.5  # an original that may be negated elsewhere, relative to the sentence
MAX_GAP = {"numbers": 0.05, "names": 0.25}  # less similarity than the nearest source's
NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|unable|nicht|kein\w*|nie"
    r"|niemals|ohne|pas|jamais|nunca|senza|n\u00e3o|niet|geen)\b|n['\u2019]t\b"
    r"|[\u4e0d\u6ca1\u6c92\u672a\u7121\u65e0]",
    re.IGNORECASE,
)


class Verdict(NamedTuple):
    """The indices of the sources most similar to a sentence, best first, and its fault.

    `fault` says why no source supports the sentence; "" if one does.
    """

    sources: tuple[int, ...]
    fault: str = ""


def judged(
    pairs: Sequence[Pair], embed: Embed | None, also_known: Sequence[str] = ()
) -> list[list[Verdict]]:
    """Check each sentence of each pair against its sources.

    A sentence is supported if three things hold. The sources contain its numbers, units, names and
    quoted words, near the most similar source. It is similar to a source, by the embedding model
    and by its words. It is negated like a source with most of its words, if there is one. A
    sentence that relates the same facts in a wrong way is not detected.

    Parameters
    ----------
    pairs : sequence of Pair
    embed : Embed, optional
        By default, similarity is computed from words, and only facts and negation are checked.
    also_known : sequence of str, optional
        A text for each pair; facts in it are accepted.
    """
    if not pairs:
        return []
    texts = list(dict.fromkeys(text for pair in pairs for side in pair for text in side))
    row = {text: i for i, text in enumerate(texts)}
    X, scale = (None, None) if embed is None else (embed(texts), known_scale(embed))
    verdicts = []
    for (sentences, sources), more in zip(pairs, also_known or [""] * len(pairs), strict=True):
        if X is None:
            W = tf_idf([*sentences, *sources])
            similarity = (W[: len(sentences)] @ W[len(sentences) :].T).toarray()
        else:
            similarity = X[[row[s] for s in sentences]] @ X[[row[s] for s in sources]].T
        known = Sources(sources, scale, more)
        verdicts.append([known.verdict(*each) for each in zip(sentences, similarity, strict=True)])
    return verdicts


class Sources:
    """The source sentences of a text; if a scale is given, similarity is checked, too."""

    def __init__(self, sources: Sequence[str], scale: Scale | None, also_known: str = "") -> None:
        self._sources, self._scale = sources, scale
        self._all, self._each = Facts("\n".join([*sources, also_known])), [*map(Facts, sources)]
        self._words = [_content(source) for source in sources]
        self._n_with = Counter(word for words in self._words for word in words)

    def verdict(self, sentence: str, similarity: Floats1d) -> Verdict:
        """Check a sentence, given its similarity to each source, (n_sources,)."""
        order = np.argsort(-similarity, kind="stable")
        least = NEARLY * similarity[order[0]]
        nearest = tuple(
            int(i) for i in order[:MAX_SOURCES] if i == order[0] or similarity[i] >= least
        )
        fault = (
            _listed(self._all.lack(sentence), "not in the sources")
            or _listed(self._far(sentence, similarity), "only elsewhere in the sources")
            or self._fault_of_meaning(sentence, similarity, order)
        )
        return Verdict(nearest, fault)

    def _far(self, sentence: str, similarity: Floats1d) -> dict[str, list[str]]:
        """Return the numbers and names that occur only far from the nearest source."""
        padded = np.pad(similarity, 1, constant_values=-1)
        around = np.maximum.reduce([padded[:-2], similarity, padded[2:]])
        numbers, names, far = values_in(sentence), names_in(sentence), dict[str, list[str]]()
        found = [  # facts, and which sources have them
            *(
                ("numbers", n, [not values.isdisjoint(f.numbers) for f in self._each])
                for n, values in numbers
            ),
            *(("names", name, [f.has_name(name) for f in self._each]) for name in names),
        ]
        for kind, fact, has in found:
            if any(has) and around[has].max() < similarity.max() - MAX_GAP[kind]:
                far.setdefault(kind, []).append(fact)
        return far

    def _fault_of_meaning(self, sentence: str, similarity: Floats1d, order: Ints1d) -> str:
        """Return why the words or meaning of a sentence do not match its sources."""
        words = {
            word: np.log1p(len(self._sources) / (1 + self._n_with[word]))
            for word in _content(sentence)
        }
        total = sum(words.values()) or 1.0

        def share(rows: Sequence[int]) -> float:
            known = set[str]().union(*(self._words[i] for i in rows))
            return float(sum(weight for word, weight in words.items() if word in known) / total)

        original = max(order[:MAX_SOURCES].tolist(), key=lambda row: share([row]))
        is_copy = share([original]) > COPIED
        if is_copy and _differ_in_negation(sentence, self._sources[original]):
            return "negation differs from the sources"
        if self._scale is None:
            return ""
        least = self._scale.similarity(SUPPORTED - WORD_WEIGHT * share(order[:N_NEAREST].tolist()))
        return "" if similarity[order[0]] >= least else "no source is similar"


def _listed(lacking: Mapping[str, Sequence[str]], where: str) -> str:
    """Format missing facts as a phrase; empty if nothing is missing."""
    return "; ".join(
        f"{kind} {where}: {', '.join(dict.fromkeys(found))}" for kind, found in lacking.items()
    )


def _differ_in_negation(sentence: str, source: str) -> bool:
    """Return whether only one is negated; a longer source may be negated in another part."""
    if NEGATION.search(sentence):
        return not NEGATION.search(source)
    return NEGATION.search(source) is not None and len(source) < LONGER * len(sentence)


def _content(text: str) -> set[str]:
    """Return the stems of the words with content."""
    return {folded(word)[:STEM] for word in tokens(text) if word.lower() not in EVERY_STOP_WORD}


def known_scale(embed: Embed) -> Scale:
    """Return the scale of similarities between sentences and their sources for a model."""
    model = getattr(embed, "__self__", embed)  # a bound method does not outlive the call
    S, T, _ = SUPPORT.vectors(model, embed)
    return Scale.of(S @ T.T, nearest=True)


class KnownPairs:
    """Pairs of texts, with a cache of their vectors for each embedding model.

    Parameters
    ----------
    pairs : str
        Two lines per pair: a text, and a text that matches it but none of the other texts.
    beside : sequence of str
        Further texts to embed in the same batch.
    """

    def __init__(self, pairs: str, beside: Sequence[str] = ()) -> None:
        lines = [line.strip() for line in pairs.strip().splitlines()]
        self.sides: tuple[list[str], list[str]] = lines[::2], lines[1::2]
        self._texts = [*lines[::2], *lines[1::2], *beside]
        self._vectors: dict[int, list[Floats2d]] = {}  # by id, as models are not hashable

    def vectors(self, model: object, embed: Embed) -> list[Floats2d]:
        """Return the vectors of the first texts, of the second texts, and of the texts in `beside`.

        Parameters
        ----------
        model : object
            The model; vectors are cached until it is garbage-collected.
        embed : Embed
            The model's embedding function, called once per model.
        """
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
