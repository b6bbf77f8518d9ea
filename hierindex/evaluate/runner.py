"""Runs an evaluation: asks every question by every retrieval method and compares the results."""

import json
import math
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, Document, QueryBundle

from hierindex.core.arguments import Floats1d, is_whole, require
from hierindex.errors import InputError, LevelError
from hierindex.evaluate.datasets import Dataset, Question, read_dataset
from hierindex.evaluate.measures import (
    Measure,
    Passage,
    Report,
    Row,
    count_tokens,
    fill,
    held,
    interval,
    ranked,
    said,
)
from hierindex.index import HierarchicalIndex
from hierindex.models.embedder import EmbedLike, as_embed_model, fingerprint
from hierindex.models.load import load_embed_model
from hierindex.progress import Progress, silent
from hierindex.respond.answer import Answer
from hierindex.store.filters import CHUNKS, Filters, on_documents
from hierindex.store.table import Table
from hierindex.tree.hierarchy import SemanticHierarchy

LEVEL = re.compile(r"level-(\d+)")
BUDGETS = (500, 2_000)  # tokens; the second holds most of a short document
AGAINST = "dense"
ANSWER = "answer"  # not of all ways, as its measures are others
WITHOUT_GOLD = "without gold"  # the kind of questions that have none
TOP_K = 10  # results of a ranking
SPARE = 1.5  # nodes to fill a budget with, as some may not fit


@dataclass(frozen=True)
class Asked:
    """A question, the index of its data set, and the question as a LlamaIndex `QueryBundle`.

    `bundle` holds the question's embedding.
    """

    question: Question
    index: HierarchicalIndex
    bundle: QueryBundle

    @property
    def filters(self) -> Filters:
        """The question's `within` and `without` as filters for `as_retriever` and `ask`."""
        within, without = self.question.within, self.question.without
        searched = () if within is None else (on_documents([within]),)
        excluded = () if without is None else (Filters((on_documents([without]),), "not"),)
        return Filters((*searched, *excluded))


Way = Callable[[Asked, int, int | None], Sequence[BaseNode] | Answer]
"""A retrieval method: a function of a question, a sufficient number of nodes, and the token budget
(None for a ranking). It returns nodes, best first; nodes that exceed the budget are skipped. Or it
returns an answer, and is called once.
"""


def retrieved(**options: Any) -> Way:
    """Return a retrieval method for `evaluate`: a `HierarchyRetriever` with these options.

    The method returns [] if no node fits the budget.

    Parameters
    ----------
    **options
        Options of `HierarchyRetriever`, except `top_k`, `token_budget` and `filters`.

    Returns
    -------
    callable
        To use as a value in the mapping `ways` of `evaluate`.
    """

    def way(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
        retriever = asked.index.as_retriever(
            top_k=top_k, token_budget=budget, filters=asked.filters, **options
        )
        try:
            return [found.node for found in retriever.retrieve(asked.bundle)]
        except InputError as error:
            if budget is None or isinstance(error, LevelError):
                raise
            return []

    return way


def answered(asked: Asked, top_k: int, budget: int | None) -> Answer:
    """Return the answer of `HierarchicalIndex.ask` without a language model."""
    return asked.index.ask(asked.question.text, filters=asked.filters)


WAYS: dict[str, Way] = {
    "auto": retrieved(mode="auto"),
    "dense": retrieved(level=0, by="dense"),
    "text": retrieved(level=0, by="text"),
    "hybrid": retrieved(level=0, by="hybrid"),
    "collapsed": retrieved(mode="collapsed"),
}
"""Retrieval methods by name: the default, chunks by vectors, words or both, and all levels."""
NAMED = {**WAYS, ANSWER: answered}


def ways_of(ways: Sequence[str] | Mapping[str, Way] | None) -> dict[str, Way]:
    """Return retrieval methods by name, by default the ones in `WAYS`; a mapping may add others.

    Raises
    ------
    InputError
        If a name is unknown, or no method is named.
    """
    chosen = WAYS if ways is None else ways
    require(len(chosen) > 0, "ways", "one name or more", chosen)
    if isinstance(chosen, Mapping):
        return dict(chosen)
    return {name: _named(name) for name in chosen}


def of_levels(index: HierarchicalIndex) -> dict[str, Way]:
    """Return retrieval methods that each search one level of summaries."""
    levels = (each["level"] for each in index.info()["levels"])
    return {name: _named(name) for name in (f"level-{level}" for level in levels if level)}


def _named(name: str) -> Way:
    if name in NAMED:
        return NAMED[name]
    if found := LEVEL.fullmatch(name):
        return retrieved(mode="level", level=int(found[1]))
    raise InputError(
        f"There is no retrieval method {name!r}; there are {', '.join(NAMED)}, and level-N."
    )


Figures = dict[Measure, dict[int, float]]
"""Figures of one retrieval method, by measure and question number."""
Measures = Callable[[Question, Sequence[Passage], int | None], dict[Measure, float]]
"""Further figures of passages within a budget, or of a ranking if the budget is None."""


def evaluate(
    data: str | Path | Dataset | Sequence[str | Path | Dataset],
    *,
    ways: Sequence[str] | Mapping[str, Way] | None = None,
    budgets: Sequence[int] = BUDGETS,
    against: str | None = None,
    limit: int | None = None,
    index: str | Path | None = None,
    embed_model: EmbedLike | None = None,
    chunk_size: int | None = None,
    measures: Measures | None = None,
    progress: Progress = silent,
) -> Report:
    """Compare retrieval methods on the same questions, chunks, vectors and token budgets.

    Parameters
    ----------
    data : path or Dataset, or a sequence of them
        See `read_dataset`.
    ways : sequence of str or mapping, optional
        Names of methods: "auto" (as `HierarchicalIndex.ask` retrieves), "dense", "text" and
        "hybrid" (chunks by vectors, by words, and by both), "collapsed" (all levels at once),
        "level-1", "level-2" and so on; by default all of these. "answer", which must be listed
        explicitly, measures the answers of `HierarchicalIndex.ask` without a language model. Or a
        mapping of names to functions of your own, `way(asked, top_k, budget)`; see `retrieved`.
    budgets : sequence of int
        Token budgets of the retrieved text, counted by LlamaIndex's global tokenizer; 500 and 2,000
        by default.
    against : str, optional
        Baseline of the comparison; by default "dense", or if that is not compared, the first method
        other than "answer".
    limit : int, optional
        Maximum number of questions per data set, taken at even intervals; no limit by default.
    index : str or Path, optional
        Folder in which indices are kept and reused; a temporary one by default. Existing
        indices are not rebuilt; delete the folder if an upgrade of hierindex changes trees.
    embed_model : BaseEmbedding or callable, optional
        The bundled model by default.
    chunk_size : int, optional
        Maximum number of tokens in a chunk; by default as in `HierarchicalIndex.build`.
    measures : callable, optional
        A function `measures(question, passages, budget)` that computes further measures. It returns
        a dict of values by (name, budget). It is called for each token budget, with the passages
        that fit. If a question has gold passages or documents, it is also called for each ranking
        of ten passages, with budget None. It is not called for answers. If it is given, questions
        without gold are used, too.
    progress : Progress

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If data is missing, incomplete or without gold, two data sets have the same name, a method
        does not exist, or a number is out of range.

    Notes
    -----
    Gold is what is expected: the documents, passages or answers given with a question.

    `coverage` is the number of gold characters returned, as a share of the most that could fit the
    token budget; `documents` is the share of the gold documents that were returned; `answer` is the
    share of questions for which the returned text contains a gold answer word for word, ignoring
    case and punctuation. `hit@1`, `hit@5` and `MRR@10` are measured on rankings of ten passages. A
    passage is relevant if it is from a gold document, or contains at least 41 characters of a gold
    passage or at least half of it.

    For the method "answer", `coverage` and `documents` measure the citations, and `answer` measures
    the text of the answer, without a budget; `words` is the mean number of words, and `refused` the
    share of answers that say that no answer was found.

    Questions without gold have only `words` and `refused`. Their default `kind` is "without gold",
    so that refusals, which may be right for them, are counted separately. A function in `ways` may
    also return an `Answer`; a function named "answer" is also asked questions without gold.
    """
    started = time.perf_counter()
    chosen = ways_of(ways)
    against = against or min(chosen, key=lambda way: (way != AGAINST, way == ANSWER))
    require(against in chosen, "against", f"one of {', '.join(chosen)}", against)
    counts = bool(budgets) and all(is_whole(budget, 1) for budget in budgets)
    require(counts, "budgets", "integers of at least 1", [*budgets])
    require(limit is None or is_whole(limit, 1), "limit", "an integer of at least 1", limit)
    rows, notes = list[Row](), list[str]()
    given = [data] if isinstance(data, str | Path | Dataset) else data
    datasets = _read(given, ANSWER in chosen, measures, notes)
    model = embed_model or load_embed_model()
    with tempfile.TemporaryDirectory() if index is None else nullcontext(index) as folder:
        for dataset in datasets:
            tree = _index_of(dataset, Path(folder), model, chunk_size, progress)
            every = chosen if ways is not None else chosen | of_levels(tree)
            dataset = replace(dataset, questions=spread(dataset.questions, limit))
            figures = _figures(dataset, tree, every, sorted({*budgets}), measures, notes, progress)
            rows += _rows(dataset, figures, against)
    return Report(against, rows, notes, seconds=round(time.perf_counter() - started, 3))


def _read(
    data: Sequence[str | Path | Dataset], answers: bool, measures: Measures | None, notes: list[str]
) -> list[Dataset]:
    """Return the data sets, which must have different names, and note missing parts.

    Questions without gold are kept for answers and for further measures.
    """
    require(len(data) > 0, "data", "one data set or more", data)
    datasets = [d if isinstance(d, Dataset) else read_dataset(d) for d in data]
    ((name, n), *_) = Counter(dataset.name for dataset in datasets).most_common(1)
    if n > 1:
        raise InputError(f"Data sets need different names; {n} are named {name!r}.")
    for number, d in enumerate(datasets):
        texts, kept = d.texts, d.questions
        judged = [name for q in kept for name in q.documents]
        if missing := [name for name in judged if name not in texts]:
            named = ", ".join(map(repr, [*dict.fromkeys(missing)][:3]))
            notes.append(
                f"{d.name}: {len(missing):,} of {len(judged):,} judgements are of documents "
                f"outside the corpus, such as {named}. They count as not found."
            )
        if answers:
            kept = [q if _has_gold(q) else replace(q, kind=q.kind or WITHOUT_GOLD) for q in kept]
        elif measures is None:
            kept = [q for q in kept if _has_gold(q)]
            if n_left := len(d.questions) - len(kept):
                notes.append(f"{d.name}: {n_left} questions without gold were left out.")
        if not kept:
            raise InputError(f"{d.name} has no question with an expected answer (gold).")
        datasets[number] = replace(d, questions=kept)
    return datasets


def _has_gold(question: Question) -> bool:
    return bool(question.spans or question.documents or question.answers)


def spread(questions: Sequence[Question], limit: int | None) -> list[Question]:
    """Return at most `limit` questions, evenly spaced; all without a limit."""
    n = min(limit or len(questions), len(questions))
    return [questions[i * len(questions) // n] for i in range(n)]


def _index_of(
    dataset: Dataset,
    folder: Path,
    model: EmbedLike,
    chunk_size: int | None,
    progress: Progress,
) -> HierarchicalIndex:
    """Return the index of a data set, found in the folder or built there.

    It is found if the documents, the model and the chunk size are the same.
    """
    known = as_embed_model(model)
    settings = [dataset.texts, fingerprint(known) or known.model_name, chunk_size]
    digest = sha256(json.dumps(settings).encode()).hexdigest()
    uri = folder / f"{dataset.name}-{digest[:8]}"
    if Table.of(uri).snapshot().exists:
        return HierarchicalIndex.open(uri, model)

    def shown(stage: str, done: int, total: int, cost: str = "", /) -> None:
        progress(f"{dataset.name}: {stage}", done, total, cost)

    return HierarchicalIndex.build(
        [Document(text=text, id_=name) for name, text in dataset.texts.items()],
        uri,
        hierarchy=SemanticHierarchy(embed_model=model),
        chunk_size=chunk_size,
        progress=shown,
    )


def _figures(
    dataset: Dataset,
    index: HierarchicalIndex,
    ways: Mapping[str, Way],
    budgets: Sequence[int],
    measures: Measures | None,
    notes: list[str],
    progress: Progress,
) -> dict[str, Figures]:
    """Return the figures of each method, except those that a note reports as left out."""
    figures: dict[str, Figures] = {way: defaultdict(dict) for way in ways}
    further, texts = measures or (lambda *_: {}), dataset.texts
    chunks = index.table.snapshot().nodes(where=CHUNKS)
    mean = fmean(count_tokens(Passage.of(chunk).text) for chunk in chunks)

    def measured(way: Way, asked: Asked) -> dict[Measure, float]:
        question, found = asked.question, dict[Measure, float]()
        ranks = question.spans or question.documents
        for budget in (*budgets, None) if ranks else budgets:
            enough = max(TOP_K, math.ceil(SPARE * (budget or 0) / mean))
            result = way(asked, enough, budget)
            if isinstance(result, Answer):
                return said(question, texts, result)
            passages = map(Passage.of, result)
            kept = fill(passages, budget) if budget else [*islice(passages, TOP_K)]
            found |= held(question, texts, kept, budget) if budget else ranked(question, kept)
            found |= further(question, kept, budget)
        return found

    for number, question in enumerate(dataset.questions):
        vector = index.embed_model.get_query_embedding(question.text)
        asked = Asked(question, index, QueryBundle(question.text, embedding=vector))
        for way in list(figures):
            if way != ANSWER and measures is None and not _has_gold(question):
                continue
            try:
                found = measured(ways[way], asked)
            except InputError as error:
                del figures[way]
                notes.append(f"{dataset.name}: {way} was left out. {error}")
                continue
            for measure, value in found.items():
                figures[way][measure][number] = value
        progress(f"{dataset.name}: questions", number + 1, len(dataset.questions))
    return figures


def _rows(dataset: Dataset, figures: Mapping[str, Figures], against: str) -> Iterator[Row]:
    data, questions = dataset.name, dataset.questions
    for kind in dict.fromkeys(question.kind for question in questions):
        of_kind = {i for i, question in enumerate(questions) if question.kind == kind}
        for way, of_way in figures.items():
            for measure, value_of in of_way.items():
                if not (numbers := sorted(of_kind & value_of.keys())):
                    continue
                groups = [questions[i].group for i in numbers]
                values, apart = np.array([value_of[i] for i in numbers]), list[float]()
                base = figures[against].get(measure, {}) if against in figures else {}
                if way != against and base.keys() >= {*numbers}:
                    apart = _mean(values - np.array([base[i] for i in numbers]), groups)
                counts = len(numbers), len({*groups})
                yield Row(data, kind, *measure, way, *counts, *_mean(values, groups), *apart)


def _mean(values: Floats1d, groups: Sequence[str]) -> list[float]:
    return [round(x, 4) for x in (float(values.mean()), *interval(values, groups))]
