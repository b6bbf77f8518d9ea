"""Outlines of meetings, and summaries of whole documents, beside what people wrote.

Of an outline within 250, 500 and 1,000 tokens, with chunks of 254 and of 128 tokens:

* breadth: the share of the meeting's topics of which it quotes at least 60 characters,
* named: the share of the words of a topic's name that it quotes from within the topic,
* recall: ROUGE-1 recall of people's answers to general questions about the meeting,

beside two controls on sentences of at least 60 characters: those at even distances, and one of
each of k equal runs, the one with the highest TF-IDF of words that the run has more than the rest.

Of the node of a whole document: ROUGE-1, 2 and L (F, stemmed) of its text beside summaries that
people wrote, the best of several for stories, the mean for meetings.

Means with 95% bootstrap intervals over topics, questions or documents.

Usage: python tests/benchmarks/outlines.py outlines FOLDER   (of qmsum)
       python tests/benchmarks/outlines.py roots FOLDER      (of the evaluation data)
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from llama_index.core.schema import Document
from llama_index.core.utils import get_tokenizer
from measures import rows_of, with_interval
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from hierindex import HierarchicalIndex, Node

BUDGETS = (250, 500, 1000)
CHUNK_SIZES = (None, 128)  # the default is 254, the model's window
MIN_CHARACTERS = 60
SENTENCE = re.compile(r"\S[^.!?]*[.!?]*")
SETS = ("govreport_mini", "qmsum", "squality")

Spans = Sequence[tuple[int, int]]


def build(documents: Sequence[dict], folder: str, chunk_size: int | None = None):
    read = [
        Document(id_=d["doc_id"], text=d["text"], metadata={"title": d["title"]}) for d in documents
    ]
    return HierarchicalIndex.build(read, folder, chunk_size=chunk_size)


def content_words(text: str) -> list[str]:
    return [w for w in re.findall("[a-z]{3,}", text.lower()) if w not in ENGLISH_STOP_WORDS]


def recall(reference: str, text: str) -> float:
    wanted, has = (Counter(re.findall("[a-z0-9]+", each.lower())) for each in (reference, text))
    return (wanted & has).total() / max(1, wanted.total())


def scores_of(meeting: dict, answers: Sequence[str], quoted: Spans) -> Iterator[tuple[str, float]]:
    text, turns = meeting["text"], meeting["turn_offsets"]
    for topic in meeting["topics"]:
        within = [(turns[a][0], turns[min(b, len(turns) - 1)][1]) for a, b in topic["spans"]]
        inside = [(at, to) for at, to in quoted if any(a <= at < b for a, b in within)]
        said = {w[:5] for at, to in inside for w in content_words(text[at:to])}
        name = {w[:5] for w in content_words(topic["topic"])}
        yield "breadth", sum(to - at for at, to in inside) >= MIN_CHARACTERS
        yield "named", len(name & said) / max(1, len(name))
    whole = " ".join(text[at:to] for at, to in quoted)
    yield from (("recall", recall(answer, whole)) for answer in answers)


def controls(meeting: dict, budget: int) -> dict[str, Spans]:
    """The spans of as many sentences as fit the budget, by each control."""
    spans = []
    for start, end in meeting["turn_offsets"]:
        turn = meeting["text"][start:end]
        speaker = turn.find(":") + 1 if ":" in turn[:40] else 0
        parts = (part.span() for part in SENTENCE.finditer(turn, speaker))
        spans += [(start + a, start + b) for a, b in parts if b - a >= MIN_CHARACTERS]
    texts = [meeting["text"][at:to] for at, to in spans]
    tokens = get_tokenizer()
    n_tokens = np.array([len(tokens(text)) for text in texts])
    vectors = TfidfVectorizer(analyzer=content_words, sublinear_tf=True, min_df=2)
    X = vectors.fit_transform(texts).toarray()
    n = len(texts)

    def even(k: int) -> list[int]:
        return [n * (2 * i + 1) // (2 * k) for i in range(k)]

    def by_contrast(k: int) -> list[int]:
        edges = [n * i // k for i in range(k + 1)]
        more = [np.maximum(X[a:b].mean(axis=0) - X.mean(axis=0), 0) for a, b in _pairs(edges)]
        return [
            a + int((X[a:b] @ v).argmax()) for (a, b), v in zip(_pairs(edges), more, strict=True)
        ]

    def fits(k: int, pick: Callable[[int], list[int]]) -> bool:
        return n_tokens[pick(k)].sum() <= budget

    chosen = {}
    for name, pick in (("even", even), ("contrast", by_contrast)):
        low, high = 1, n
        while low < high:  # the most sentences that fit
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle, pick) else (low, middle - 1)
        chosen[name] = [spans[i] for i in pick(low)]
    return chosen


def _pairs(edges: Sequence[int]) -> list[tuple[int, int]]:
    return [*pairwise(edges)]


def outlines(folder: Path) -> None:
    meetings, asked = rows_of(folder / "documents.jsonl"), rows_of(folder / "questions.jsonl")
    answers = {
        meeting["doc_id"]: [
            q["answer"]
            for q in asked
            if q["doc_id"] == meeting["doc_id"] and q["kind"] == "general"
        ]
        for meeting in meetings
    }
    found: dict[tuple[int, str], dict[str, list[float]]] = {}

    def note(budget: int, way: str, meeting: dict, quoted: Spans) -> None:
        of = found.setdefault((budget, way), {})
        for name, score in scores_of(meeting, answers[meeting["doc_id"]], quoted):
            of.setdefault(name, []).append(score)

    for meeting in meetings:
        for budget in BUDGETS:
            for name, quoted in controls(meeting, budget).items():
                note(budget, name, meeting, quoted)
    for size in CHUNK_SIZES:
        with TemporaryDirectory() as where:
            index = build(meetings, where, size)
            for meeting in meetings:
                for budget in BUDGETS:
                    nodes = map(Node.of, index.outline(budget, of=meeting["doc_id"]))
                    quoted = [(s.start, s.end) for node in nodes for s in node.citations]
                    note(budget, f"outline, chunks of {size or 254}", meeting, quoted)
    for (budget, way), scores in sorted(found.items()):
        said = "  ".join(f"{name} {with_interval(of)}" for name, of in scores.items())
        print(f"{budget:>5}  {way:<24}{said}")


def references(folder: Path, name: str) -> dict[str, list[str]]:
    if name == "squality":
        return {s["doc_id"]: s["summaries"] for s in rows_of(folder / name / "summaries.jsonl")}
    if name == "qmsum":
        by_meeting: dict[str, list[str]] = {}
        for q in rows_of(folder / name / "questions.jsonl"):
            if q["kind"] == "general":
                by_meeting.setdefault(q["doc_id"], []).append(q["answer"])
        return by_meeting
    return {d["doc_id"]: [d["summary"]] for d in rows_of(folder / name / "documents.jsonl")}


def roots(folder: Path) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    kinds = ("rouge1", "rouge2", "rougeL")
    scorer = RougeScorer([*kinds], use_stemmer=True)
    for name in SETS:
        golds, joined = references(folder, name), np.max if name == "squality" else np.mean
        documents = [d for d in rows_of(folder / name / "documents.jsonl") if d["doc_id"] in golds]
        with TemporaryDirectory() as where:
            nodes = build(documents, where).store.table.snapshot().nodes()
        texts = {node.whole_document: node.text for node in nodes if node.whole_document}
        scores = [
            joined([[scorer.score(g, text)[k].fmeasure for k in kinds] for g in golds[d]], axis=0)
            for d, text in texts.items()
        ]
        said = map(with_interval, np.array(scores).T)
        print(f"{name:<16}{len(texts):>3}  ROUGE-1, 2, L  {'  '.join(said)}", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["outlines", folder] if Path(folder).is_dir():
            outlines(Path(folder))
        case ["roots", folder] if Path(folder).is_dir():
            roots(Path(folder))
        case _:
            sys.exit("Usage: python tests/benchmarks/outlines.py outlines|roots FOLDER")
