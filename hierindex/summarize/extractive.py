"""Extractive summaries: verbatim sentences of all children, all groups of a level at once."""

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from scipy.sparse import csr_array

from hierindex.core.arguments import is_number, is_whole, require
from hierindex.core.membership import Floats2d, Ints1d
from hierindex.core.salience import select_sentences
from hierindex.summarize.methods import METHODS, OPENING_LEXRANK, Text
from hierindex.summarize.sentences import Sentence, stripped, telling
from hierindex.summarize.summary import Budget, Group, Resources, Summary, join_sentences
from hierindex.summarize.vectors import SentenceVectors, as_vectors

Share = Literal["documents", "children", "none"]


class Extractor(Protocol):
    """Chooses verbatim sentences of each group, in order, within a budget."""

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes the choice."""

    def extract(self, groups: Sequence[Group], budget: Budget) -> list[list[Sentence]]:
        """Sentences of each group, ascending; one at least."""


class SalientSentences:
    """Sentences that matter to their group, few alike, no document crowded out.

    Parameters
    ----------
    vectors : "tf-idf", "lsa", BaseEmbedding or SentenceVectors
        What makes two sentences alike. TF-IDF with the group as corpus is next to free; an
        embedding model costs about as much again as embedding the chunks.
    method : {"opening-lexrank", "lexrank", "mmr", "centroid", "k-means"}
        What makes a sentence relevant: see `METHODS`.
    redundancy : float in [0, 1], optional
        Weight of likeness to what is chosen already, see `select_sentences`; by default the
        method's own.
    share : {"documents", "children", "none"}
        Who has an equal share of a summary's tokens, until nobody else needs it.
    seed : int
        Where k-means begins.

    Raises
    ------
    InputError
        If an argument is not what it must be.

    Notes
    -----
    The defaults are chosen by `tests/benchmarks/extractive.py`: no lower than
    bert-extractive-summarizer on reports, books and meetings alike, at a hundredth of its cost.
    Children have no shares by default: with equal ones for six runs of a document, ROUGE-1 of
    reports fell from 0.56 to 0.50.
    """

    def __init__(
        self,
        vectors: SentenceVectors | BaseEmbedding | str = "tf-idf",
        *,
        method: str = OPENING_LEXRANK,
        redundancy: float | None = None,
        share: Share = "documents",
        seed: int = 0,
    ) -> None:
        require(method in METHODS, "method", f"one of {', '.join(METHODS)}", method)
        require(share in get_args(Share), "share", f"one of {', '.join(get_args(Share))}", share)
        redundancy = METHODS[method].redundancy if redundancy is None else redundancy
        within = is_number(redundancy) and 0 <= redundancy <= 1
        require(within, "redundancy", "a number in [0, 1]", redundancy)
        require(is_whole(seed), "seed", "an integer of at least 0", seed)
        self.vectors = as_vectors(vectors)
        self.method = method
        self.redundancy = redundancy
        self.share = share
        self.seed = seed

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes the choice."""
        return {
            "sentence_vectors": self.vectors.name,
            "method": self.method,
            "redundancy": self.redundancy,
            "share": self.share,
            "seed": self.seed,
        }

    def extract(self, groups: Sequence[Group], budget: Budget) -> list[list[Sentence]]:
        """Sentences of each group, ascending; one at least."""
        if not groups:
            return []
        told = [telling(group) for group in groups]
        costs = np.split(  # of a level in one batch: counting is most of the cost
            budget.costs([s for sentences in told for s in sentences]),
            np.cumsum([*map(len, told)])[:-1],
        )
        fitting = [_fitting(s, n, budget) for s, n in zip(told, costs, strict=True)]
        pools, n_tokens = zip(*fitting, strict=True)
        matrices = self.vectors.of([[s.text for s in pool] for pool in pools])
        extracts = [
            self._chosen(pool, n, S, budget.max_tokens)
            for pool, n, S in zip(pools, n_tokens, matrices, strict=True)
        ]
        self.vectors.keep({s.text for extract in extracts for s in extract})
        return extracts

    def _chosen(
        self, pool: list[Sentence], n_tokens: Ints1d, S: Floats2d | csr_array, budget: int
    ) -> list[Sentence]:
        document = _numbers([s.quote.source and s.quote.source.document for s in pool])
        child = np.array([s.child for s in pool], dtype=np.int64)
        n_themes = max(1, int(budget / max(n_tokens.mean(), 1)))
        chosen = select_sentences(
            S,
            n_tokens,
            METHODS[self.method].relevance(Text(S, document, n_themes, self.seed)),
            budget=budget,
            redundancy=self.redundancy,
            source={"documents": document, "children": child, "none": None}[self.share],
        )
        return [pool[i] for i in chosen]


class ExtractiveSummarizer:
    """A summary made of the sentences that an extractor chooses.

    Parameters
    ----------
    extractor : Extractor, optional
        `SalientSentences` on TF-IDF vectors by default; `BertExtractor` is another.
    """

    name = "extractive"

    def __init__(self, extractor: Extractor | None = None) -> None:
        self.extractor = SalientSentences() if extractor is None else extractor

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes a summary's text."""
        return {"type": self.name, "extractor": self.extractor.to_dict()}

    def summarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """One summary for each group, in order, each within the budget."""
        extracts = self.extractor.extract(groups, budget)
        if resources is not None:
            resources.progress("summarize", len(groups), len(groups))
        return [join_sentences(budget.trimmed(extract), "extractive") for extract in extracts]

    async def asummarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """As `summarize`, in a thread."""
        return await asyncio.to_thread(self.summarize, groups, budget, resources)


def fitting_sentences(sentences: Group, budget: Budget) -> list[Sentence]:
    """The sentences, those over the budget cut in half until they fit."""
    return _fitting(sentences, budget.costs(sentences), budget)[0]


def _fitting(sentences: Group, costs: Ints1d, budget: Budget) -> tuple[list[Sentence], Ints1d]:
    """The sentences with their costs, those over the budget cut in half until they fit.

    What cannot be cut costs the whole budget, so that something always fits.
    """
    fits = costs <= budget.max_tokens
    if fits.all():
        return list(sentences), costs
    parts = [
        part
        for sentence, fit in zip(sentences, fits, strict=True)
        for part in ([sentence] if fit else _cut(sentence, budget))
    ]
    return parts, np.minimum(budget.costs(parts), budget.max_tokens)


def _cut(sentence: Sentence, budget: Budget) -> list[Sentence]:
    """Halves of a sentence, at a blank if there is one, and their halves until they fit."""
    text = sentence.text
    if len(text) < 2 or budget.costs([sentence])[0] <= budget.max_tokens:
        return [sentence]
    middle = len(text) // 2
    middle = max(text.rfind(" ", 1, middle), 0) or middle
    halves = stripped(text, 0, middle), stripped(text, middle, len(text))
    return [part for at, to in halves if at < to for part in _cut(_part(sentence, at, to), budget)]


def _part(sentence: Sentence, at: int, to: int) -> Sentence:
    quote = sentence.quote.part(sentence.quote.at + at, sentence.quote.at + to)
    return replace(sentence, text=sentence.text[at:to], quote=quote)


def _numbers(names: Sequence[Hashable]) -> Ints1d:
    """(n_names,) int64, equal for equal names, counted by first appearance."""
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64)
