"""The gold of the evaluation sets, and measures of it beside those of `hierindex evaluate`.

`read_labelled` reads a set, and `further` is given to `evaluate` as `measures`:

* `breadth`: the share of topics of which at least 60 characters or half are returned;
* `evidence`: the share of the evidence's word trigrams;
* `answer words`: the share of the content words of a person's answer;
* `ROUGE-1` and `ROUGE-2` (F, stemmed) of the first 150 words, at the largest budget, against a
  person's answer of ten words or more;
* `all@5`: whether all gold documents are among those of the first five passages, and `nDCG@10` of
  the documents of ten passages.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.schema import Document

from hierindex import Span
from hierindex.evaluate import Dataset, Question
from hierindex.evaluate.measures import Measure, Passage, interval, n_covered

MENTION = 60  # characters of a topic that make it mentioned
ROUGE_WORDS, LONG = 150, 10  # words that ROUGE reads, and of the shortest answer it is used for
ALL_AT, DOCUMENTS = 5, 10
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class LabelledQuestion(Question):
    """A question with more gold.

    It is the passages of each of the `topics` that an overview mentions, texts that are
    `evidence`, or a person's answer, the `reference`.
    """

    topics: tuple[tuple[Span, ...], ...] = ()
    evidence: tuple[str, ...] = ()
    reference: str = ""

    @property
    def has_gold(self) -> bool:
        """Whether there is gold of any kind."""
        passages = self.spans or self.documents or self.topics or self.evidence
        return bool(passages or self.answers or self.reference)


def read_labelled(path: str | Path) -> Dataset:
    """Read documents, and the questions with gold.

    A question's gold is `start` and `end`; `spans`, pairs of the first and last turn, counted from
    0, of which the document's `turn_offsets` are the start and end; `pid`, one of the document's
    `paragraphs`; `evidence`; `gold_titles`; and `answer` or `answers`, which passages must contain
    if there is `pid` or `usable`. A document's `topics`, each with `spans`, or `sections`, each
    with `start`, are gold of questions about the whole of it. A question with `start`, `pid` or
    `gold_titles` is asked of all documents, others of their own.
    """
    folder = Path(path)
    rows = {row["doc_id"]: row for row in rows_of(folder / "documents.jsonl")}
    documents = [Document(text=row["text"], id_=name) for name, row in rows.items()]
    asked = [
        _question(row, rows.get(row["doc_id"], {"text": ""}))
        for row in rows_of(folder / "questions.jsonl")
        if row.get("usable", True)
    ]
    return Dataset(folder.name, documents, [question for question in asked if question.has_gold])


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines."""
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def with_interval(scores: Sequence[float]) -> str:
    """Return the mean of scores, each of a group of its own, with its 95% interval."""
    x = np.array(scores, dtype=float)
    low, high = interval(x, range(len(x)))
    return f"{x.mean():.3f} [{low:.3f}, {high:.3f}]"


def _question(row: Mapping[str, Any], document: Mapping[str, Any]) -> LabelledQuestion:
    name, spans = row["doc_id"], tuple(_spans(row, document))
    answers = tuple(row.get("answers") or filter(None, [row.get("answer")]))
    verbatim = "pid" in row or "usable" in row  # in SQuAD and Natural Questions
    anywhere = {"start", "pid", "gold_titles"} & row.keys()
    whole = not spans or (spans[0].start == 0 and spans[0].end >= len(document["text"]))
    return LabelledQuestion(
        id=row["qid"],
        text=row["question"],
        group=name,
        kind=row.get("kind") or "",
        within=None if anywhere else name,
        spans=spans,
        documents=tuple(row.get("gold_titles") or ()),
        topics=tuple(_topics(name, document)) if whole else (),
        evidence=tuple(row.get("evidence") or ()),
        answers=answers if verbatim else (),
        reference="" if verbatim else "".join(answers[:1]),
    )


def _spans(row: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Span]:
    name = row["doc_id"]
    if "start" in row:
        yield Span(name, row["start"], row["end"])
    elif "pid" in row:
        paragraphs = {each["pid"]: each["text"].strip() for each in document["paragraphs"]}
        text = paragraphs[row["pid"]]
        start = document["text"].index(text)
        yield Span(name, start, start + len(text))
    else:
        yield from _turns(name, document, row.get("spans") or ())


def _turns(
    name: str, document: Mapping[str, Any], spans: Iterable[tuple[int, int]]
) -> Iterator[Span]:
    for first, last in spans:
        turns = document["turn_offsets"]
        yield Span(name, turns[first][0], turns[min(last, len(turns) - 1)][1])


def _topics(name: str, document: Mapping[str, Any]) -> Iterator[tuple[Span, ...]]:
    """Yield the passages of each topic, or the text of each section up to the next one."""
    for topic in document.get("topics") or ():
        yield tuple(_turns(name, document, topic["spans"]))
    starts = sorted(
        {section["start"] for section in document.get("sections") or () if "start" in section}
    )
    if len(starts) > 1:
        yield from ((Span(name, *ends),) for ends in pairwise([*starts, len(document["text"])]))


def further(
    question: LabelledQuestion, passages: Sequence[Passage], budget: int | None
) -> dict[Measure, float]:
    """Return the further figures of passages that fill a budget, or of a ranking."""
    if budget is None:
        return _of_ranking({*question.documents}, passages) if question.documents else {}
    text, figures = "\n".join(passage.text for passage in passages), dict[Measure, float]()
    if question.topics:
        spans = [span for passage in passages for span in passage.spans]
        mentioned = [_is_mentioned(topic, spans) for topic in question.topics]
        figures["breadth", budget] = float(np.mean(mentioned))
    if evidence := set().union(*map(_trigrams, question.evidence)):
        found = set().union(*(_trigrams(passage.text) for passage in passages))
        figures["evidence", budget] = len(evidence & found) / len(evidence)
    if words := _content_words(question.reference):
        figures["answer words", budget] = len(words & _content_words(text)) / len(words)
    if len(question.reference.split()) >= LONG:
        begin = " ".join(text.split()[:ROUGE_WORDS])
        for name, score in _rouge().score(question.reference, begin).items():
            figures[f"ROUGE-{name[-1]}", None] = score.fmeasure
    return figures


def _of_ranking(gold: set[str], passages: Sequence[Passage]) -> dict[Measure, float]:
    first = {span.document for passage in passages[:ALL_AT] for span in passage.spans}
    order = dict.fromkeys(span.document for passage in passages for span in passage.spans)
    discount = 1 / np.log2(np.arange(DOCUMENTS) + 2)
    gain = [document in gold for document in [*order][:DOCUMENTS]]
    nDCG = discount[: len(gain)] @ gain / discount[: len(gold)].sum()
    return {(f"all@{ALL_AT}", None): float(gold <= first), (f"nDCG@{DOCUMENTS}", None): nDCG}


def _is_mentioned(topic: Sequence[Span], spans: Sequence[Span]) -> bool:
    return n_covered(topic, spans) >= min(MENTION, n_covered(topic, topic) / 2)


@cache
def _rouge() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rouge1", "rouge2"], use_stemmer=True)


def _words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return WORD.findall(text.lower())


@lru_cache(maxsize=10_000)
def _trigrams(text: str) -> set[tuple[str, str, str]]:
    words = _words(text)
    return {*zip(words, words[1:], words[2:], strict=False)}


def _content_words(text: str) -> set[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return {word for word in _words(text) if word not in ENGLISH_STOP_WORDS}
