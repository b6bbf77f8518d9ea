"""Answers without a language model: how often they say the fact that is asked for.

Questions with a short gold string (as SQuAD's): those of four data sets, at most 200 of each,
drawn by document, without those answered by yes or no; and `questions.jsonl`, written for this:
twenty on each of two corpora, and 52 on one that ask for an explanation. Gold stands in a text if
its words do after SQuAD's normalisation. A question counts if the five best passages of `level=0,
by="hybrid"` hold its gold. Which do is written into `facts_denominator.json` once, and read from
there ever after, so that shares can be compared between versions.

Printed are the shares of these questions whose gold stands in the first 60, 120 and 250 words of
the answer of `ask` with its defaults (a refusal holds none), with 95% intervals by bootstrap over
documents, the mean words of answers that are no refusals, and the median processor milliseconds of
`ask`, which other work on the machine hardly changes. The last row pools the sets.

Usage: python tests/benchmarks/facts.py DATA CORPORA INDEX_FOLDER [SET ...]
(folders of the evaluation data and of its corpora; indices are built in INDEX_FOLDER, or found)
"""

import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import punctuation
from unicodedata import category

import numpy as np
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from measures import LabelledQuestion, read_labelled, rows_of

from hierindex import HierarchicalIndex, HierarchyStore, load_embed_model
from hierindex.evaluate.measures import interval

SETS = ("squad", "hotpotqa100", "nq_long", "qasper")
WRITTEN = ("warren-report", "tech-books")
HERE = Path(__file__).parent
QUESTIONS, DENOMINATOR = HERE / "questions.jsonl", HERE / "facts_denominator.json"
MOST, SEED = 200, 0
N_PASSAGES = 5
LONGEST = 10  # words of a gold string; longer ones are sentences of an annotator
NOT_FACTS = {"", "yes", "no", "unanswerable"}
FIRST = (60, 120, 250)  # words
WAYS = tuple(f"first {n} words" for n in FIRST)


def normalised(text: str) -> str:
    """Lower case without articles and punctuation, as SQuAD's script, that of Unicode included."""
    plain = "".join(c for c in text.lower() if not (c in punctuation or category(c)[0] == "P"))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


def says(text: str, answers: tuple[str, ...]) -> bool:
    """Whether one of the answers stands in a text, at the bounds of words."""
    return any(f" {normalised(answer)} " in f" {normalised(text)} " for answer in answers)


def short(answers: list[str]) -> tuple[str, ...]:
    """The gold strings that are facts; none if the question is answered by yes or no."""
    words = [normalised(answer) for answer in answers]
    if NOT_FACTS.intersection(words):
        return ()
    return tuple(a for a, w in zip(answers, words, strict=True) if len(w.split()) <= LONGEST)


def drawn(questions: list[LabelledQuestion]) -> list[LabelledQuestion]:
    """At most 200 questions, one of each document in turn."""
    groups, rng = defaultdict(list), np.random.default_rng(SEED)
    for question in questions:
        groups[question.group].append(question)
    turns = [(turn, q) for of in groups.values() for turn, q in enumerate(rng.permutation(of))]
    return [q for _, q in sorted(turns, key=lambda pair: pair[0])[:MOST]]


def questions_of(name: str, data: Path) -> list[LabelledQuestion]:
    """The questions of a set with short gold strings, and how many there are, printed."""
    if name in WRITTEN:
        rows = [row for row in rows_of(QUESTIONS) if row["set"] == name]
        return [
            LabelledQuestion(
                row["qid"], row["question"], row["file"], answers=tuple(row["answers"])
            )
            for row in rows
        ]
    gold = {row["qid"]: row for row in rows_of(data / name / "questions.jsonl")}
    usable = [
        replace(q, answers=short(gold[q.id].get("answers") or [gold[q.id]["answer"]]))
        for q in read_labelled(data / name).questions
    ]
    facts = [q for q in usable if q.answers]
    kept = drawn(facts)
    print(
        f"{name}: {len(gold)} questions, {len(facts)} with a short gold string, {len(kept)} drawn"
    )
    return kept


def index_of(name: str, data: Path, corpora: Path, folder: Path) -> HierarchicalIndex:
    """The index of a set, built if it is not found."""
    model, sources = load_embed_model(), corpora / name
    if not HierarchyStore(folder / name).snapshot().exists:
        documents = [str(sources)] if name in WRITTEN else read_labelled(data / name).documents
        HierarchicalIndex.build(list(documents), folder / name)
    return HierarchicalIndex.open(folder / name, model)


def within(question: LabelledQuestion) -> dict:
    """The options that search only the document that a question is asked of."""
    if question.within is None:
        return {}
    return {"filters": of_documents([question.within])}


def of_documents(documents: Sequence[str]) -> MetadataFilters:
    """A filter for the nodes that stand on these documents alone."""
    of = MetadataFilter(key="hierindex_documents", value=[*documents], operator=FilterOperator.ANY)
    return MetadataFilters(filters=[of])


def passages(index: HierarchicalIndex, question: LabelledQuestion) -> dict[str, str]:
    """The five best passages by id, the best first."""
    retriever = index.as_retriever(level=0, by="hybrid", top_k=N_PASSAGES, **within(question))
    found = retriever.retrieve(question.text)
    return {node.node_id: node.get_content(MetadataMode.NONE) for node in found}


def said(index: HierarchicalIndex, question: LabelledQuestion) -> dict:
    """What each way says, whether `ask` refuses, and its processor time."""
    options, start = within(question), time.process_time()
    answer = index.ask(question.text, **options)
    milliseconds = 1000 * (time.process_time() - start)
    words = [] if answer.refused else re.sub(r" ?\[\d+\]", "", answer.answer).split()
    return {
        **{way: " ".join(words[:n]) for way, n in zip(WAYS, FIRST, strict=True)},
        "words": len(words),
        "refused": answer.refused,
        "milliseconds": milliseconds,
    }


def measured(
    name: str, index: HierarchicalIndex, questions: list[LabelledQuestion]
) -> list[tuple[str, LabelledQuestion, dict]]:
    """What is said to each question that counts; which do is written if it is not known."""
    known = json.loads(DENOMINATOR.read_text()) if DENOMINATOR.exists() else {}
    if name not in known:
        five = {q.id: "\n".join(passages(index, q).values()) for q in questions}
        known[name] = [q.id for q in questions if says(five[q.id], q.answers)]
        lines = [f"{json.dumps(key)}: {json.dumps(ids)}" for key, ids in known.items()]
        DENOMINATOR.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    told = [(name, q, said(index, q)) for q in questions if q.id in set(known[name])]
    missed = [q.id for _, q, of in told if not says(of[WAYS[-1]], q.answers)]
    print(f"{name}: not said: {' '.join(missed)}")
    return told


def row(name: str, told: list[tuple[str, LabelledQuestion, dict]]) -> str:
    """A row of the table."""
    groups, cells = [f"{of_set} {q.group}" for of_set, q, _ in told], [name, str(len(told))]
    for way in WAYS:
        shares = np.array([says(of[way], q.answers) for _, q, of in told], dtype=float)
        low, high = interval(shares, groups)
        cells.append(f"{shares.mean():.3f} [{low:.2f}, {high:.2f}]")
    refused, words, median = (
        np.mean([of["refused"] for _, _, of in told]),
        np.mean([of["words"] for _, _, of in told if not of["refused"]]),
        np.median([of["milliseconds"] for _, _, of in told]),
    )
    return f"| {' | '.join(cells)} | {refused:.1%} | {words:.0f} | {median:.0f} |"


def main(data: Path, corpora: Path, folder: Path, names: list[str]) -> None:
    table = [f"| | questions | {' | '.join(WAYS)} | refused | words | ms |", "|---" * 8 + "|"]
    every = list[tuple[str, LabelledQuestion, dict]]()
    for name in names or [*SETS, *WRITTEN]:
        questions = questions_of(name, data)
        index = index_of(name, data, corpora, folder)
        index.ask("What is loaded before the first question?")
        every += (told := measured(name, index, questions))
        table.append(row(name, told))
        print(table[-1], flush=True)
    print("\n" + "\n".join([*table, row("all", every)]))


if __name__ == "__main__":
    if len(sys.argv) < 4 or not all(Path(path).is_dir() for path in sys.argv[1:3]):
        sys.exit("Usage: python tests/benchmarks/facts.py DATA CORPORA INDEX_FOLDER [SET ...]")
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
