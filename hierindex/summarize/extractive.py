"""Extractive summaries, made of verbatim sentences of the children."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hierindex.core.arrays import Ints1d
from hierindex.core.salience import lexrank, opening, select_sentences
from hierindex.summarize.summary import Budget, Group, Resources, Summary, join_sentences
from hierindex.text.sentences import Sentence, stripped, telling, tokens

if TYPE_CHECKING:
    from scipy.sparse import csr_array

REDUNDANCY = 0.4  # weight of the similarity to chosen sentences, see `select_sentences`


def tf_idf(texts: Sequence[str]) -> "csr_array":
    """Compute TF-IDF weights, with the texts themselves as corpus.

    The weights are (1 + log tf) * (1 + log((1 + n_texts) / (1 + df))), as in scikit-learn's
    TfidfVectorizer with `sublinear_tf`, which is much slower for a few dozen texts.

    Returns
    -------
    (n_texts, n_words) csr_array
        Rows have length 1. Texts without words have equal rows.

    Examples
    --------
    >>> S = tf_idf(["A letter.", "a LETTER!", "? ?"])
    >>> (S @ S.T).toarray().round(3).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    from scipy.sparse import csr_array

    n_texts = len(texts)
    tokens_of = [tokens(text.lower()) or [""] for text in texts]
    words = [*chain.from_iterable(tokens_of)]
    column = {word: i for i, word in enumerate(dict.fromkeys(words))}
    n_words = max(1, len(column))
    row = np.repeat(np.arange(n_texts), [*map(len, tokens_of)])
    indices = np.fromiter(map(column.__getitem__, words), np.int64, len(words))
    cells, tf = np.unique(row * n_words + indices, return_counts=True)
    row, indices = np.divmod(cells, n_words)
    idf = 1 + np.log((1 + n_texts) / (1 + np.bincount(indices, minlength=n_words)))
    weights = (1 + np.log(tf)) * idf[indices]
    norm = np.sqrt(np.bincount(row, weights=weights**2, minlength=n_texts))
    starts = np.searchsorted(row, np.arange(n_texts + 1)).astype(np.int32)  # for k-means
    indices = indices.astype(np.int32)
    return csr_array((weights / norm[row], indices, starts), shape=(n_texts, len(column)))


class Extractor(Protocol):
    """Protocol of objects that choose verbatim sentences of each group within a budget."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine the choice."""

    def extract(self, groups: Sequence[Group], budget: Budget) -> list[list[Sentence]]:
        """Return at least one sentence of each group, in reading order."""


class SalientSentences:
    """An extractor of relevant, diverse sentences, balanced between the documents of a group.

    Sentences are compared by TF-IDF weights, with the group as corpus. Their relevance is LexRank
    whose random walk restarts at the openings of documents. The method and its constants were
    chosen by `tests/benchmarks/extractive.py`.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine the choice."""
        return {"method": "opening-lexrank", "redundancy": REDUNDANCY}

    def extract(self, groups: Sequence[Group], budget: Budget) -> list[list[Sentence]]:
        """Return at least one sentence of each group, in reading order."""
        if not groups:
            return []
        pools = [telling(group) for group in groups]
        costs = np.split(  # one batch per level, as counting dominates the cost
            budget.costs([s for pool in pools for s in pool]),
            np.cumsum([*map(len, pools)])[:-1],
        )
        fitting = [_fitting(s, n, budget) for s, n in zip(pools, costs, strict=True)]
        return [self._chosen(pool, n_tokens, budget.max_tokens) for pool, n_tokens in fitting]

    def _chosen(self, pool: list[Sentence], n_tokens: Ints1d, budget: int) -> list[Sentence]:
        S = tf_idf([s.text for s in pool])  # (n_sentences, n_words)
        document = _numbers([sentence.document for sentence in pool])
        p = lexrank(S, opening(document))
        chosen = select_sentences(
            S,
            n_tokens,
            p / p.max(initial=1e-300),  # at most 1, like a cosine
            budget=budget,
            redundancy=REDUNDANCY,
            source=document,
        )
        return [pool[i] for i in chosen]


class ExtractiveSummarizer:
    """A summariser that joins the sentences an extractor chooses.

    Parameters
    ----------
    extractor : Extractor, optional
        `SalientSentences` by default; `BertExtractor` is another.
    """

    name = "extractive"

    def __init__(self, extractor: Extractor | None = None) -> None:
        self.extractor = SalientSentences() if extractor is None else extractor

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine a summary's text."""
        return {"type": self.name, "extractor": self.extractor.to_dict()}

    def summarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """Return one summary for each group, in order, each within the budget."""
        extracts = self.extractor.extract(groups, budget)
        if resources is not None:
            resources.progress("summarize", len(groups), len(groups))
        return [join_sentences(budget.trimmed(extract), "extractive") for extract in extracts]


def fitting_sentences(sentences: Group, budget: Budget) -> list[Sentence]:
    """Return the sentences, with those over the budget halved until they fit."""
    return _fitting(sentences, budget.costs(sentences), budget)[0]


def _fitting(sentences: Group, costs: Ints1d, budget: Budget) -> tuple[list[Sentence], Ints1d]:
    """Return the sentences, halved until they fit, and their costs, at most the budget."""
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
    """Halve a sentence, at a blank if possible, until its pieces fit."""
    text = sentence.text
    if len(text) < 2 or budget.costs([sentence])[0] <= budget.max_tokens:
        return [sentence]
    middle = len(text) // 2
    middle = max(text.rfind(" ", 1, middle), 0) or middle
    halves = stripped(text, 0, middle), stripped(text, middle, len(text))
    start = sentence.at
    parts = [
        replace(sentence, text=text[at:to], at=start + at, to=start + to)
        for at, to in halves
        if at < to
    ]
    return [piece for part in parts for piece in _cut(part, budget)]


def _numbers(names: Sequence[Hashable]) -> Ints1d:
    """Number the names by first appearance, (n_names,) int64."""
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64)
