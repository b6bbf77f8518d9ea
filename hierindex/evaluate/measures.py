"""Measures: how much of a question's gold is in what a way to retrieve returns; their intervals."""

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from hierindex.core.arrays import Floats1d
from hierindex.evaluate.datasets import Question
from hierindex.models.tokenizer import llm_tokenizer
from hierindex.node import Node, Span

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

OVERLAP = 41  # characters of gold that make a passage a hit; fewer may be the end of a sentence
N_RESAMPLES = 2_000  # of an interval
WORD = re.compile(r"\w+")

Measure = tuple[str, int | None]
"""A measure's name, and its token budget if it has one."""


class Passage(NamedTuple):
    """What a node returns: its text, and the passages of documents that it stands on."""

    id: str
    text: str
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, node: "Node | BaseNode") -> Self:
        """Return the passage of a node of ours, or of another with offsets in its document."""
        node = node if isinstance(node, Node) else Node.of(node)
        if node.maker is not None:
            return cls(node.id, node.text, tuple(node.citations))
        offsets = (node.others.get(name) for name in ("start_char_idx", "end_char_idx"))
        place = node.source.get("node_id"), *offsets
        return cls(node.id, node.text, () if None in place else (Span(*place),))  # type: ignore[arg-type]


@lru_cache(maxsize=100_000)
def count_tokens(text: str) -> int:
    """Count the tokens of a text by LlamaIndex's global tokenizer, as retrievers do."""
    return len(llm_tokenizer()(text))


def fill(passages: Iterable[Passage], budget: int) -> list[Passage]:
    """Return the passages that fit a token budget, taken in order; one that does not is skipped."""
    kept = []
    for passage in passages:
        if (n_tokens := count_tokens(passage.text)) <= budget:
            kept.append(passage)
            budget -= n_tokens
    return kept


def held(
    question: Question, texts: Mapping[str, str], kept: Sequence[Passage], budget: int
) -> dict[Measure, float]:
    """Return what passages that fill a budget hold of a question's gold, from 0 to 1.

    `coverage` is the number of characters of gold spans that are returned, divided by the number
    that fits the budget; `documents` is the share of gold documents; `answer` tells whether an
    answer is there word for word.

    Parameters
    ----------
    question : Question
    texts : Mapping[str, str]
        Of the documents, by id.
    kept : Sequence[Passage]
    budget : int
        Tokens.
    """
    gold, spans = question.spans, [span for passage in kept for span in passage.spans]
    figures = dict[Measure, float]()
    if gold:
        n_tokens = sum(count_tokens(texts[span.document][span.start : span.end]) for span in gold)
        most = n_covered(gold, gold) * min(1.0, budget / max(1, n_tokens))
        figures["coverage", budget] = min(1.0, n_covered(gold, spans) / most)
    if question.documents:
        documents = {*question.documents}
        found = documents & {span.document for span in spans}
        figures["documents", budget] = len(found) / len(documents)
    if question.answers:
        text = _words("\n".join(passage.text for passage in kept))
        figures["answer", budget] = float(any(_words(a) in text for a in question.answers))
    return figures


def _words(text: str) -> str:
    """Return the words of a text in lower case, each between blanks."""
    return f" {' '.join(WORD.findall(text.lower()))} "


def n_covered(gold: Iterable[Span], spans: Iterable[Span]) -> int:
    """Count the characters of gold spans that lie in some of the spans.

    >>> n_covered([Span("a", 0, 10)], [Span("a", 4, 8), Span("a", 6, 12), Span("b", 0, 10)])
    6
    """
    sought: dict[str, int] = {}
    for span in (gold := list(gold)):
        sought[span.document] = max(span.end, sought.get(span.document, 0))
    marks = {d: np.zeros((2, n), dtype=bool) for d, n in sought.items()}  # (gold or not, character)
    for row, each in enumerate((gold, spans)):
        for span in each:
            if span.document in marks:
                marks[span.document][row, span.start : span.end] = True
    return sum(int(np.count_nonzero(marked.all(axis=0))) for marked in marks.values())


def ranked(question: Question, passages: Sequence[Passage]) -> dict[Measure, float]:
    """Return the figures of a ranking of at most ten passages.

    `hit@1` and `hit@5` tell whether one of the first passages is relevant; `MRR@10` is 1 divided
    by the place of the first relevant one, or 0. A passage is relevant if it is of a gold
    document, or holds at least 41 characters or half of a gold span.
    """
    hits = (place for place, each in enumerate(passages, 1) if _is_relevant(question, each))
    first = next(hits, math.inf)
    values = {"hit@1": float(first <= 1), "hit@5": float(first <= 5), "MRR@10": 1 / first}
    return {(name, None): value for name, value in values.items()}


def _is_relevant(question: Question, passage: Passage) -> bool:
    if any(span.document in question.documents for span in passage.spans):
        return True
    return any(
        n_covered([gold], passage.spans) >= min(OVERLAP, (gold.end - gold.start) / 2)
        for gold in question.spans
    )


def interval(values: Floats1d, groups: Sequence[Hashable]) -> tuple[float, float]:
    """Return the ends of the 95% interval of a mean, by percentiles of 2,000 resamples.

    Groups, such as documents, are drawn with replacement, each with all its values, because
    questions about one document are not independent. Davison and Hinkley, Bootstrap Methods and
    their Application (1997), section 3.8.

    >>> interval(np.array([0.5, 0.5, 0.5]), "aab")
    (0.5, 0.5)
    """
    _, number = np.unique(np.array(list(groups)), return_inverse=True)
    total, n = np.bincount(number, values), np.bincount(number)
    drawn = np.random.default_rng(0).integers(len(n), size=(N_RESAMPLES, len(n)))
    means = total[drawn].sum(axis=1) / n[drawn].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
