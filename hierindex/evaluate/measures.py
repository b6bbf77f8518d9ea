"""Measures of retrieval with their confidence intervals, and the report of an evaluation."""

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from hierindex.core.arguments import Floats1d
from hierindex.evaluate.datasets import Question
from hierindex.models.record import llm_tokenizer
from hierindex.node import Node, Span
from hierindex.respond.answer import Answer
from hierindex.text.display import counted
from hierindex.text.sentences import tokens
from hierindex.text.words import WORD

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode


OVERLAP = 41  # characters of gold that make a passage a hit; fewer may be the end of a sentence
N_RESAMPLES = 2_000  # of an interval
NUMBER = re.compile(r"\[\d*[?*]?\]")  # of a citation in an answer

Measure = tuple[str, int | None]
"""A measure's name, and its token budget if it has one."""


class Passage(NamedTuple):
    """A retrieved text and the passages of documents that it is based on."""

    id: str
    text: str
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, node: "Node | BaseNode") -> Self:
        """Return the passage of a node of hierindex, or of LlamaIndex if its offsets are known."""
        node = node if isinstance(node, Node) else Node.of(node)
        if node.maker is not None:
            return cls(node.id, node.text, tuple(node.citations))
        offsets = (node.others.get(name) for name in ("start_char_idx", "end_char_idx"))
        place = node.source.get("node_id"), *offsets
        return cls(node.id, node.text, () if None in place else (Span(*place),))  # type: ignore[arg-type]


@lru_cache(maxsize=100_000)
def count_tokens(text: str) -> int:
    """Count the tokens of a text with LlamaIndex's global tokenizer, as retrievers do."""
    return len(llm_tokenizer()(text))


def fill(passages: Iterable[Passage], budget: int) -> list[Passage]:
    """Return the passages that fit a token budget, in order; skip those that do not fit."""
    kept = []
    for passage in passages:
        if (n_tokens := count_tokens(passage.text)) <= budget:
            kept.append(passage)
            budget -= n_tokens
    return kept


def held(
    question: Question, texts: Mapping[str, str], kept: Sequence[Passage], budget: int | None
) -> dict[Measure, float]:
    """Measure how much of a question's gold is in the passages that fit a budget, from 0 to 1.

    `coverage` is the number of characters of gold spans that are returned, divided by the number
    that fits the budget; `documents` is the share of gold documents; `answer` tells whether an
    answer is there word for word.

    Parameters
    ----------
    question : Question
    texts : Mapping[str, str]
        Texts of the documents, by id.
    kept : Sequence[Passage]
    budget : int, optional
        Tokens; without it, `coverage` is the share of the characters of gold spans.
    """
    gold, spans = question.spans, [span for passage in kept for span in passage.spans]
    figures = dict[Measure, float]()
    if gold:
        n_tokens = sum(count_tokens(texts[span.document][span.start : span.end]) for span in gold)
        most = n_covered(gold, gold) * min(1.0, (budget or math.inf) / max(1, n_tokens))
        figures["coverage", budget] = min(1.0, n_covered(gold, spans) / most)
    if question.documents:
        documents = {*question.documents}
        found = documents & {span.document for span in spans}
        figures["documents", budget] = len(found) / len(documents)
    if question.answers:
        text = _words("\n".join(passage.text for passage in kept))
        figures["answer", budget] = float(any(_words(a) in text for a in question.answers))
    return figures


def said(question: Question, texts: Mapping[str, str], answer: Answer) -> dict[Measure, float]:
    """Measure how much of a question's gold is in the citations and the text of an answer.

    Has the measures of `held` without a budget. In addition, `words` is the number of words of the
    answer, and `refused` tells whether the answer is a refusal.
    """
    places = (place for each in answer.citations for place in (each, *each.also))
    spans = tuple(Span(place.document, place.start, place.end) for place in places)
    text = NUMBER.sub(" ", answer.answer)
    figures = {("words", None): float(len(tokens(text))), ("refused", None): float(answer.refused)}
    return held(question, texts, [Passage("", text, spans)], None) | figures


def _words(text: str) -> str:
    """Return the words of a text in lower case, each between spaces."""
    return f" {' '.join(WORD.findall(text.lower()))} "


def n_covered(gold: Iterable[Span], spans: Iterable[Span]) -> int:
    """Count the characters of gold spans that are covered by other spans.

    >>> n_covered([Span("a", 0, 10)], [Span("a", 4, 8), Span("a", 6, 12), Span("b", 0, 10)])
    6
    """
    covered = set[tuple[str, int]]()
    spans = list(spans)
    for sought in gold:
        for span in spans:
            if span.document == sought.document:
                both = range(max(sought.start, span.start), min(sought.end, span.end))
                covered |= {(span.document, character) for character in both}
    return len(covered)


def ranked(question: Question, passages: Sequence[Passage]) -> dict[Measure, float]:
    """Return the measures of a ranking of at most ten passages.

    `hit@1` and `hit@5` tell whether one of the first passages is relevant; `MRR@10` is 1 divided by
    the rank of the first relevant one, or 0. A passage is relevant if it is from a gold document,
    or contains at least 41 characters or half of a gold span.
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
    """Return the ends of the 95% confidence interval of a mean, from 2,000 bootstrap resamples.

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


class Row(NamedTuple):
    """The mean of a measure over the questions of a kind, for one retrieval method.

    `budget` is in tokens, None for a measure of rankings. The mean is over `questions` questions in
    `groups` groups; `low` and `high` are the ends of its 95% interval. `difference` is the mean
    difference to the baseline `Report.against`, paired by question, with its interval; None for the
    baseline itself.
    """

    data: str
    kind: str
    measure: str
    budget: int | None
    way: str
    questions: int
    groups: int
    mean: float
    low: float
    high: float
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None


@dataclass(frozen=True)
class Report:
    """The result of `evaluate`.

    Parameters
    ----------
    against : str
        Name of the baseline method.
    rows : list[Row]
    notes : list[str]
        Notes on questions and methods that were not measured.
    seconds : float
    """

    against: str
    rows: list[Row]
    notes: list[str]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dict, each row as a dict."""
        return {**asdict(self), "rows": [row._asdict() for row in self.rows]}

    def __str__(self) -> str:
        return table(self.to_json())


def table(report: Mapping[str, Any], width: int | None = None) -> str:
    """Format the dict of `Report.to_json`: a Markdown table for each kind of question.

    A cell has the mean, and the 95% interval of its difference to the baseline. Methods with
    different measures are in separate tables. A table wider than `width` columns is split into
    several tables with fewer measures.
    """
    blocks = []
    for data, kind in dict.fromkeys((row["data"], row["kind"]) for row in report["rows"]):
        rows = [row for row in report["rows"] if (row["data"], row["kind"]) == (data, kind)]
        n_questions, n_groups = (max(row[n] for row in rows) for n in ("questions", "groups"))
        head = f"{data}, {kind}".removesuffix(", ")
        sizes = f"{counted(n_questions, 'question')}, {counted(n_groups, 'group')}"
        blocks.append(f"{head}: {sizes}\n\n{_cells(rows, width)}")
    told = f"[low, high]: 95% interval of the difference to {report['against']}."
    return "\n\n".join([*blocks, told, *report["notes"]])


def _cells(rows: Sequence[Mapping[str, Any]], width: int | None) -> str:
    cells = {(row["way"], row["measure"], row["budget"]): _cell(row) for row in rows}
    every = dict.fromkeys(row["way"] for row in rows)
    tables, room, shown = list[list[list[str]]](), 0, list[str]()
    for name, budget in dict.fromkeys((row["measure"], row["budget"]) for row in rows):
        ways = [way for way in every if (way, name, budget) in cells]
        head = name if budget is None else f"{name} at {budget:,}"
        column = [head, *(cells[way, name, budget] for way in ways)]
        taken = max(map(len, column)) + len(" | ")
        if ways != shown or (width is not None and taken > room):
            shown = ways
            tables.append([["way", *ways]])
            room = (width or 0) - max(map(len, tables[-1][0])) - len("|  |")
        tables[-1].append(column)
        room -= taken
    return "\n\n".join(map(_markdown, tables))


def _markdown(columns: Sequence[Sequence[str]]) -> str:
    """Format columns, each with its head, as a Markdown table."""
    widths = [max(map(len, column)) for column in columns]
    head, *body = zip(*columns, strict=True)
    lines = [head, ["-" * width for width in widths], *body]
    padded = ([c.ljust(w) for c, w in zip(line, widths, strict=True)] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def _cell(row: Mapping[str, Any]) -> str:
    if row["difference"] is None:
        return f"{row['mean']:.3f}"
    return f"{row['mean']:.3f} [{row['difference_low']:+.3f}, {row['difference_high']:+.3f}]"
