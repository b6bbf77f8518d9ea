"""Extractive summaries: verbatim sentences of all children, all groups of a level at once."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from scipy.sparse import csr_array

from hierindex.core.membership import Floats2d
from hierindex.core.salience import REDUNDANCY, select_sentences
from hierindex.progress import Progress, silent
from hierindex.summarize.sentences import TOKEN, Sentence, stripped, telling
from hierindex.summarize.summary import Budget, Group, Summary, join_sentences


class Extractor(Protocol):
    """Chooses verbatim sentences of each group, in order, within a budget."""

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes the choice."""

    def extract(self, groups: Sequence[Group], budget: Budget) -> list[list[Sentence]]:
        """Sentences of each group, ascending; one at least."""


class SalientSentences:
    """Sentences near a group's centroid and far from each other, by maximal marginal relevance.

    Parameters
    ----------
    embed_model : BaseEmbedding, optional
        Gives the sentences' vectors, all of a level in one pass; it costs about as much
        again as embedding the chunks. Without it they are TF-IDF vectors with the group as
        corpus: next to free, and a summary depends on nothing but its group.
    redundancy : float in [0, 1]
        See `select_sentences`.
    """

    def __init__(
        self, embed_model: BaseEmbedding | None = None, *, redundancy: float = REDUNDANCY
    ) -> None:
        self.embed_model = embed_model
        self.redundancy = redundancy
        self._kept: dict[str, list[float]] = {}  # of chosen sentences: the next level has no others

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes the choice."""
        vectors = "tf-idf" if self.embed_model is None else self.embed_model.model_name
        return {"sentence_vectors": vectors, "redundancy": self.redundancy}

    def extract(self, groups: Sequence[Group], budget: Budget) -> list[list[Sentence]]:
        """Sentences of each group, ascending; one at least."""
        if not groups:
            return []
        pools = [fitting_sentences(telling(group), budget) for group in groups]
        n_tokens = np.split(
            budget.count([s.text for pool in pools for s in pool]),
            np.cumsum([*map(len, pools)])[:-1],
        )
        matrices = self._vectors(pools)
        extracts = []
        for pool, n, S in zip(pools, n_tokens, matrices, strict=True):
            chosen = select_sentences(S, n, budget=budget.max_tokens, redundancy=self.redundancy)
            extracts.append([pool[i] for i in chosen])
        if self.embed_model is not None:
            texts = {s.text for extract in extracts for s in extract}
            self._kept = {text: v for text, v in self._kept.items() if text in texts}
        return extracts

    def _vectors(self, pools: Sequence[Group]) -> Sequence[Floats2d | csr_array]:
        """(n_sentences, n_dims) unit vectors of each pool."""
        if self.embed_model is None:
            return [tf_idf([s.text for s in pool]) for pool in pools]
        new = list(
            dict.fromkeys(s.text for pool in pools for s in pool if s.text not in self._kept)
        )
        new.sort(key=len)  # batches of like length waste no padding
        vectors = self.embed_model.get_text_embedding_batch(new) if new else []
        self._kept |= dict(zip(new, vectors, strict=True))
        return [_unit(np.array([self._kept[s.text] for s in pool])) for pool in pools]


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
        self, groups: Sequence[Group], budget: Budget, *, progress: Progress = silent
    ) -> list[Summary]:
        """One summary for each group, in order, each within the budget."""
        extracts = self.extractor.extract(groups, budget)
        progress("summarize", len(groups), len(groups))
        return [join_sentences(budget.trimmed(extract), "extractive") for extract in extracts]

    async def asummarize(
        self, groups: Sequence[Group], budget: Budget, *, progress: Progress = silent
    ) -> list[Summary]:
        """As `summarize`, in a thread."""
        return await asyncio.to_thread(self.summarize, groups, budget, progress=progress)


def tf_idf(texts: Sequence[str]) -> csr_array:
    """(n_texts, n_words) unit rows of TF-IDF weights, with the texts themselves as corpus."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(token_pattern=TOKEN, sublinear_tf=True)
    analyze = vectorizer.build_analyzer()
    if not any(map(analyze, texts)):  # nothing but punctuation: all alike
        return csr_array(np.ones((len(texts), 1)))
    return csr_array(vectorizer.fit_transform(texts))


def fitting_sentences(sentences: Group, budget: Budget) -> list[Sentence]:
    """The sentences, those over the budget cut in half until they fit."""
    fits = budget.costs(sentences) <= budget.max_tokens
    return [
        part
        for sentence, fit in zip(sentences, fits, strict=True)
        for part in ([sentence] if fit else _cut(sentence, budget))
    ]


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
    quote = sentence.quote
    return Sentence(sentence.text[at:to], quote.part(quote.at + at, quote.at + to))


def _unit(V: Floats2d) -> Floats2d:
    return np.asarray(V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-12))
