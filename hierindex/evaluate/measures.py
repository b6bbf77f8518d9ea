"""Measures: how much of a question's gold is in what a way to retrieve returns; their intervals."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.utils import get_tokenizer

from hierindex.core.membership import Floats1d
from hierindex.evaluate.datasets import Question
from hierindex.record import DETAILS, NodeRecord, Span

OVERLAP = 41  # characters of gold that make a node a hit; fewer may be the end of a sentence
MENTION = 60  # characters of a topic that make it mentioned
ROUGE_WORDS, LONG = 150, 10  # words that ROUGE reads, and of the shortest answer it is used for
ALL_AT = 5  # first passages, among whose documents all gold documents are sought
RANKED = {"Success@1": "hit@1", "Success@5": "hit@5", "RR@10": "MRR@10", "nDCG@10": "nDCG@10"}
"""Measures of rankings, by their names in ir-measures, and ours."""
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
    def of(cls, node: BaseNode) -> Self:
        """Return the passage of a node of ours, or of another with offsets in its document."""
        text = node.get_content(MetadataMode.NONE)
        if DETAILS in node.metadata:
            return cls(node.node_id, text, tuple(NodeRecord.from_metadata(node.metadata).citations))
        place = (
            node.ref_doc_id,
            getattr(node, "start_char_idx", None),
            getattr(node, "end_char_idx", None),
        )
        return cls(node.node_id, text, () if None in place else (Span(*place),))  # type: ignore[arg-type]


@lru_cache(maxsize=100_000)
def count_tokens(text: str) -> int:
    """Count the tokens of a text by LlamaIndex's global tokenizer, as retrievers do."""
    return len(get_tokenizer()(text))


def fill(passages: Iterable[Passage], budget: int) -> list[Passage]:
    """Return the passages that fit a token budget, taken in order; one that does not is skipped."""
    kept = []
    for passage in passages:
        if (n_tokens := count_tokens(passage.text)) <= budget:
            kept.append(passage)
            budget -= n_tokens
    return kept


class Gold:
    """The gold of a question, prepared for measuring, given the texts of the documents."""

    def __init__(self, question: Question, texts: Mapping[str, str]) -> None:
        self._spans, self._topics = question.spans, question.topics
        self._documents = question.documents.keys()
        self._n_tokens = sum(count_tokens(texts[d][start:end]) for d, start, end, *_ in self._spans)
        self._n_characters = n_covered(self._spans, self._spans)
        self._evidence = set().union(*map(_trigrams, question.evidence))
        self._answers = [_plain(answer) for answer in question.answers]
        self._reference, self._words = question.reference, _content_words(question.reference)

    def held(self, kept: Sequence[Passage], budget: int) -> dict[Measure, float]:
        """Return what passages that fill a budget hold of the gold, from 0 to 1.

        `coverage` is the number of characters of gold spans that are returned, divided by the
        number that fits the budget; `breadth` the share of topics of which at least 60 characters
        or half are returned; `documents` the share of gold documents; `evidence` the share of the
        evidence's word trigrams; `answer` whether an answer is there word for word; `answer words`
        the share of the reference's content words. `ROUGE-1` and `ROUGE-2` (F, stemmed) compare
        the first 150 words with a long reference; they are named without the budget, because only
        those of the largest one are reported.
        """
        spans = [span for passage in kept for span in passage.spans]
        text, figures = "\n".join(passage.text for passage in kept), dict[Measure, float]()
        if self._n_characters:
            most = self._n_characters * min(1.0, budget / max(1, self._n_tokens))
            figures["coverage", budget] = min(1.0, n_covered(self._spans, spans) / most)
        if self._topics:
            mentioned = [_holds(spans, topic, MENTION) for topic in self._topics]
            figures["breadth", budget] = float(np.mean(mentioned))
        if self._documents:
            documents = self._documents & {span.document for span in spans}
            figures["documents", budget] = len(documents) / len(self._documents)
        if self._evidence:
            found = set().union(*(_trigrams(passage.text) for passage in kept))
            figures["evidence", budget] = len(self._evidence & found) / len(self._evidence)
        if self._answers:
            figures["answer", budget] = float(any(a in _plain(text) for a in self._answers))
        if self._words:
            shared = self._words & _content_words(text)
            figures["answer words", budget] = len(shared) / len(self._words)
        if len(self._reference.split()) >= LONG:
            begin = " ".join(text.split()[:ROUGE_WORDS])
            for name, score in _rouge().score(self._reference, begin).items():
                figures[f"ROUGE-{name[-1]}", None] = score.fmeasure
        return figures


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


def _holds(spans: Sequence[Span], gold: Sequence[Span], enough: int) -> bool:
    """Return whether spans cover `enough` characters of gold or half of it, whichever is less."""
    return n_covered(gold, spans) >= min(enough, n_covered(gold, gold) / 2)


def ranked(
    question: Question, found: Mapping[str, Sequence[Passage]]
) -> dict[str, dict[Measure, float]]:
    """Return the figures of several rankings by name; ir-measures computes them.

    `hit@1` and `hit@5` tell whether one of the first results is relevant; `MRR@10` is 1 divided by
    the place of the first relevant one of ten, or 0. A result is a passage, relevant if it
    holds at least 41 characters or half of a gold span. Where gold is documents, a result is a
    document, at the place of its first passage, so that `MRR@10` and `nDCG@10`, which counts
    grades of relevance, are of ten documents, as in BEIR; and `all@5` tells whether all gold
    documents are among those of the first five passages.
    """
    import ir_measures

    figures: dict[str, dict[Measure, float]] = {name: {} for name in found}
    qrels, run, gold = (
        dict[str, dict[str, int]](),
        dict[str, dict[str, float]](),
        question.documents,
    )
    for name, passages in found.items():
        if gold:
            order = [span.document for passage in passages for span in passage.spans]
            qrels[name] = dict(gold)
            first = {span.document for passage in passages[:ALL_AT] for span in passage.spans}
            figures[name][f"all@{ALL_AT}", None] = float(gold.keys() <= first)
        else:
            order = [passage.id for passage in passages]
            gold_spans = [(span,) for span in question.spans]
            hits = [p.id for p in passages if any(_holds(p.spans, g, OVERLAP) for g in gold_spans)]
            qrels[name] = dict.fromkeys(hits, 1) or {"missed": 1}
        places = {each: -float(place) for place, each in enumerate(dict.fromkeys(order))}
        run[name] = places or {"nothing": 0.0}
    measures = [ir_measures.parse_measure(m) for m in RANKED if gold or m != "nDCG@10"]
    for name, measure, value in ir_measures.iter_calc(measures, qrels, run) if found else ():
        figures[name][RANKED[str(measure)], None] = float(value)
    return figures


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


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rouge1", "rouge2"], use_stemmer=True)


def _words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return WORD.findall(text.lower())


def _plain(text: str) -> str:
    return f" {' '.join(_words(text))} "


def _trigrams(text: str) -> set[tuple[str, str, str]]:
    words = _words(text)
    return {*zip(words, words[1:], words[2:], strict=False)}


def _content_words(text: str) -> set[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return {word for word in _words(text) if word not in ENGLISH_STOP_WORDS}
