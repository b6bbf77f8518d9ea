"""The runner: asks every question in every way, and compares what comes back."""

import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM

from hierindex.core.arguments import is_whole, require
from hierindex.core.membership import Floats1d
from hierindex.embed.load import load_embed_model
from hierindex.errors import InputError
from hierindex.evaluate.answers import answered, figures_of
from hierindex.evaluate.datasets import Dataset, Part, Question
from hierindex.evaluate.formats import read_dataset
from hierindex.evaluate.intervals import interval
from hierindex.evaluate.measures import Gold, Measure, Passage, fill, ranked
from hierindex.evaluate.report import Report, Row
from hierindex.evaluate.trees import Asked, Trees, Way
from hierindex.evaluate.ways import ways_of
from hierindex.progress import Progress, silent

BUDGETS = (500, 2_000)  # tokens; the second holds most of a short document
AGAINST = "dense"
TOP_K = 10  # results of a ranking
MOST = 100  # nodes, asked for where ten have fewer than ten documents
SPARE = 1.5  # nodes to fill a budget with, as some may not fit
NEEDED = ("ir_measures", "rouge_score", "bm25s", "Stemmer", "matplotlib")
NO_LLM = "Figures of answers (token F1, ROUGE-L, choice) need an LLM: --llm and --llm-base-url."

Figures = dict[Measure, dict[int, float]]
"""Figures of one way, by measure and by number of the question."""


def evaluate(
    data: str | Path | Dataset | Sequence[str | Path | Dataset],
    *,
    ways: Sequence[str] | Mapping[str, Way] | None = None,
    budgets: Sequence[int] = BUDGETS,
    part: Part = "all",
    against: str | None = None,
    limit: int | None = None,
    index: str | Path | None = None,
    embed_model: BaseEmbedding | None = None,
    chunk_size: int | None = None,
    llm: LLM | None = None,
    progress: Progress = silent,
) -> Report:
    """Compare ways to retrieve on the same questions, chunks, vectors and token budgets.

    Parameters
    ----------
    data : path or Dataset, or a sequence of them
        See `read_dataset`.
    ways : sequence of str or mapping, optional
        Names in `hierindex.evaluate.ways.WAYS`, by default all; or a mapping of names to
        functions of a question, the number of nodes and the token budget, which return nodes.
    budgets : sequence of int
        Tokens that a reader gets, counted by LlamaIndex's global tokenizer.
    part : {"all", "tuning", "held-out"}
        Questions to ask: those of a third of the documents are held out, by the SHA-256 hashes of
        their ids (0 modulo 3), so that constants can be chosen on the others.
    against : str, optional
        Way that the others are compared with; "dense" or else the first by default.
    limit : int, optional
        Maximum number of questions of a data set, evenly spaced.
    index : str or Path, optional
        Folder where indices are kept and found again; a temporary one by default. They are not
        rebuilt if a new version of hierindex grows other trees; delete them then.
    embed_model : BaseEmbedding, optional
        The bundled model by default.
    chunk_size : int, optional
        Maximum tokens of a chunk, by default those of `HierarchicalIndex.build`.
    llm : LLM, optional
        Answers each question from what each way returns for each budget.
    progress : Progress

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If data are missing, incomplete or of the same name, a way does not exist, a number is out
        of range, or the extra `evaluate` is not installed.
    """
    started = time.perf_counter()
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        install = "`pip install 'hierindex[evaluate]'`"
        raise InputError(f"Evaluation needs {install}; {missing[0]} is missing.")
    chosen = ways_of(ways)
    against = against or (AGAINST if AGAINST in chosen else next(iter(chosen)))
    require(against in chosen, "against", f"one of {', '.join(chosen)}", against)
    counts = bool(budgets) and all(is_whole(budget, 1) for budget in budgets)
    require(counts, "budgets", "integers of at least 1", [*budgets])
    require(limit is None or is_whole(limit, 1), "limit", "an integer of at least 1", limit)
    datasets = _read([data] if isinstance(data, str | Path | Dataset) else data)
    asked = [spread(dataset.part(part), limit) for dataset in datasets]
    model = embed_model or load_embed_model()
    rows, notes = list[Row](), [] if llm else [NO_LLM]
    with tempfile.TemporaryDirectory() if index is None else nullcontext(index) as folder:
        for dataset, questions in zip(datasets, asked, strict=True):
            trees = Trees(dataset, Path(folder), model, chunk_size, progress)
            figures = _figures(trees, questions, chosen, sorted({*budgets}), llm, progress, notes)
            rows += _rows(dataset.name, questions, figures, against)
    seconds = round(time.perf_counter() - started, 3)
    return Report(part, against, rows, notes, seconds)


def _read(data: Sequence[str | Path | Dataset]) -> list[Dataset]:
    """Return data sets, whose names must differ, because figures are reported by name."""
    require(len(data) > 0, "data", "one data set or more", data)
    datasets = [d if isinstance(d, Dataset) else read_dataset(d) for d in data]
    for (a, given), (b, other) in combinations(zip(datasets, data, strict=True), 2):
        if a.name == b.name:
            two = ["a Dataset" if isinstance(d, Dataset) else d for d in (given, other)]
            told = f"{two[0]} and {two[1]} are both named {a.name!r}"
            raise InputError(f"Data sets need different names; {told}.")
    return datasets


def spread(questions: Sequence[Question], limit: int | None) -> list[Question]:
    """Return at most so many questions, evenly spaced; all without a limit."""
    n = min(limit or len(questions), len(questions))
    return [questions[i * len(questions) // n] for i in range(n)]


def _figures(
    trees: Trees,
    questions: Sequence[Question],
    ways: Mapping[str, Way],
    budgets: Sequence[int],
    llm: LLM | None,
    progress: Progress,
    notes: list[str],
) -> dict[str, Figures]:
    """Return the figures of each way but those that a note says were left out."""
    figures: dict[str, Figures] = {way: defaultdict(dict) for way in ways}
    tasks: list[tuple[str, int, int, list[Passage]]] = []  # way, question, budget, passages
    mean = trees.chunks.mean_tokens
    for number, question in enumerate(questions):
        asked, gold, rankings = Asked(question, trees), Gold(question, trees.texts), {}
        for way in list(figures):
            try:
                if question.spans or question.documents:
                    rankings[way] = _ranking(ways[way], asked)
                for budget in budgets:
                    enough = max(TOP_K, math.ceil(SPARE * budget / mean))
                    kept = fill(map(Passage.of, ways[way](asked, enough, budget)), budget)
                    for measure, value in gold.held(kept, budget).items():
                        figures[way][measure][number] = value
                    if llm is not None:
                        tasks.append((way, number, budget, kept))
            except InputError as error:
                del figures[way]
                rankings.pop(way, None)
                tasks = [task for task in tasks if task[0] != way]
                notes.append(f"{trees.name}: {way} was left out. {error}")
        for way, values in ranked(question, rankings).items():
            for measure, value in values.items():
                figures[way][measure][number] = value
        progress(f"{trees.name}: questions", number + 1, len(questions))
    if llm is not None:
        pairs = [(questions[number], kept) for _, number, _, kept in tasks]
        answers = answered(llm, pairs, progress, f"{trees.name}: answers")
        for (way, number, budget, _), answer in zip(tasks, answers, strict=True):
            for name, value in figures_of(questions[number], answer).items():
                figures[way][name, budget][number] = value
    return figures


def _ranking(way: Way, asked: Asked) -> list[Passage]:
    """Return ten passages and, where gold is documents, more if those are of fewer than ten."""
    passages = [Passage.of(node) for node in way(asked, TOP_K, None)[:TOP_K]]
    documents = {span.document for passage in passages for span in passage.spans}
    if asked.question.documents and len(documents) < TOP_K:
        passages += map(Passage.of, way(asked, MOST, None)[:MOST])
    return passages


def _rows(
    data: str, questions: Sequence[Question], figures: Mapping[str, Figures], against: str
) -> Iterator[Row]:
    for kind in dict.fromkeys(question.kind for question in questions):
        of_kind = {i for i, question in enumerate(questions) if question.kind == kind}
        for way, of_way in figures.items():
            for measure, value_of in of_way.items():
                numbers = sorted(of_kind & value_of.keys())
                if not numbers:
                    continue
                groups = [questions[i].group for i in numbers]
                values, apart = np.array([value_of[i] for i in numbers]), list[float]()
                if way != against and against in figures:
                    theirs = np.array([figures[against][measure][i] for i in numbers])
                    apart = _mean(values - theirs, groups)
                counts = len(numbers), len({*groups})
                yield Row(data, kind, *measure, way, *counts, *_mean(values, groups), *apart)


def _mean(values: Floats1d, groups: Sequence[str]) -> list[float]:
    return [round(x, 4) for x in (float(values.mean()), *interval(values, groups))]
