"""Refusals without a language model: what the score of an answer tells apart, and what is refused.

Pairs: a question of SQuAD, HotpotQA or QMSum whose gold the five best passages of its index hold,
and the same with another number, with another name of as many words (of a question about another
document), with a negation, or as it is but put to another index. A number or name that is put in
stands in none of the five best passages of the changed question. Printed are the area under the
ROC curve of the score, the question against its change, with its 95% interval by bootstrap over
pairs, and the share of either that is refused by default.

Never to be refused: words, names, titles and file names that an index holds, asked as they are,
and overviews, of a collection, its highest level, a document and five documents.

Usage: python tests/benchmarks/refusals.py DATA CORPORA INDEX_FOLDER [PAIRS_OF_A_KIND [HELD]]
(folders as of facts.py; by default 100 pairs of a kind, and at most 600 that the indices hold)
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, product, zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
from facts import index_of, of_documents, says, short, within
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.types import MetadataFilters
from measures import LabelledQuestion as Question
from measures import read_labelled, rows_of
from sklearn.metrics import roc_auc_score

from hierindex import HierarchicalIndex, Node
from hierindex.evaluate.measures import Passage

SETS = ("squad", "hotpotqa100", "qmsum")
ELSEWHERE = {"squad": "tech-books", "hotpotqa100": "warren-report", "qmsum": "tech-books"}
HOLDING = ("warren-report", "tech-books", "squad")
N_PAIRS, N_HELD, N_OVERVIEWS, N_RESAMPLES = 100, 600, 100, 1_000
LAST_YEAR = 2025
N_TRIES = 5  # of numbers or names until none of the passages has it
NUMBER = re.compile(r"(?<![\w./-])\d{2,4}(?![\w/-]|[.,]\d)")  # no part of a date or a name
NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
AUXILIARY = re.compile(
    r"\b(is|was|were|are|did|does|do|can|could|will|would|has|have|had)\b", re.IGNORECASE
)
WORD = re.compile(r"\b[a-z]{5,}\b")
OVERVIEWS = (
    "What is this about?",
    "What topics do these documents cover?",
    "What are the main conclusions?",
    "What are the main topics?",
    "Give me an overview.",
    "Summarize everything.",
    "What's in here?",
    "Which subjects come up?",
    "Can you give me the short version?",
    "What should I know about this?",
    "What are the most important points?",
    "What did they find out?",
    "What kind of text is this?",
    "tl;dr",
    "overview",
    "What do the authors want to say?",
    "Tell me what I can learn from this.",
    "List the main themes.",
)


class Pair(NamedTuple):
    """A question that an index answers, and its change, put to an index."""

    index: str
    question: Question
    changed: str
    put_to: str


Change = Callable[[Question, np.random.Generator], Iterator[tuple[str, str]]]
"""Ways to change a question, each with what was put in."""


class Indices:
    """The indices by name, opened once, and what they answer."""

    def __init__(self, data: Path, corpora: Path, folder: Path) -> None:
        self._paths, self._open = (data, corpora, folder), dict[str, HierarchicalIndex]()
        self._told = dict[tuple, tuple[float, bool]]()

    def __getitem__(self, name: str) -> HierarchicalIndex:
        if name not in self._open:
            self._open[name] = index_of(name, *self._paths)
        return self._open[name]

    def score(self, name: str, text: str, of: Question | None = None) -> tuple[float, bool]:
        """The score of an answer and whether it is refused; `of` says where to search."""
        key = name, text, of and of.within
        if key not in self._told:
            answer = self[name].ask(text, **(within(of) if of else {}))
            self._told[key] = float(answer.score or 0), answer.refused
        return self._told[key]

    def passages(self, name: str, text: str, of: Question) -> list[Passage]:
        """The five best passages."""
        retriever = self[name].as_retriever(level=0, by="hybrid", top_k=5, **within(of))
        return [Passage.of(found.node) for found in retriever.retrieve(text)]


def gold_of(name: str, data: Path) -> list[Question]:
    """Questions with short gold strings, or about a part of a meeting, in random order."""
    gold = {row["qid"]: row for row in rows_of(data / name / "questions.jsonl")}
    kept = []
    for q in read_labelled(data / name).questions:
        answers = short(gold[q.id].get("answers") or [gold[q.id]["answer"]])
        if q.kind == "specific" or (answers and not q.kind):
            kept.append(replace(q, answers=answers))
    return [kept[i] for i in np.random.default_rng(0).permutation(len(kept))]


def held(question: Question, found: list[Passage]) -> bool:
    """Whether passages hold a part of the gold."""
    if question.answers:
        return says("\n".join(passage.text for passage in found), question.answers)
    return any(
        one.document == other.document and one.start < other.end and other.start < one.end
        for one, other in product(question.spans, chain(*(passage.spans for passage in found)))
    )


def another_number(question: Question, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Another number of as many digits; of a year, one 3 to 60 years earlier or later."""
    old = NUMBER.search(question.text)
    while old:
        value, n = int(old[0]), len(old[0])
        new = int(rng.integers(10 ** (n - 1), 10**n))
        if n == 4 and value < LAST_YEAR:
            off = int(rng.integers(3, 60))
            new = value - off if value + off > LAST_YEAR or rng.random() < 0.5 else value + off
        if new != value:
            yield f"{question.text[: old.start()]}{new}{question.text[old.end() :]}", str(new)


def another_name(names: dict[str, str]) -> Change:
    """Return the change to another name of as many words; `names` maps names to documents."""

    def change(question: Question, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
        if not (old := NAME.search(question.text)):
            return
        others = [
            name
            for name, group in sorted(names.items())
            if len(name.split()) == len(old[0].split()) and group != question.group
        ]
        for new in rng.permutation(others):
            yield f"{question.text[: old.start()]}{new}{question.text[old.end() :]}", str(new)

    return change


def negated(question: Question, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """The question with "not" after its first auxiliary."""
    changed = AUXILIARY.sub(r"\1 not", question.text, count=1)
    if changed != question.text and " not " not in question.text:
        yield changed, ""


def changed_pairs(
    change: Change, pools: dict[str, list[Question]], indices: Indices, most: int
) -> list[Pair]:
    """Pairs of the sets in turn, until there are enough or no more."""
    pairs, rng = list[Pair](), np.random.default_rng(1)
    in_turn = zip_longest(*([(name, q) for q in pools[name]] for name in pools))
    for name, question in filter(None, chain.from_iterable(in_turn)):
        if len(pairs) == most:
            break
        for _, (text, new) in zip(range(N_TRIES), change(question, rng), strict=False):
            found = indices.passages(name, text, question)
            if new and any(says(passage.text, (new,)) for passage in found):
                continue
            if held(question, indices.passages(name, question.text, question)):
                pairs.append(Pair(name, question, text, name))
            break
    return pairs


def area(own: np.ndarray, other: np.ndarray) -> str:
    """The area under the ROC curve, and its interval by bootstrap over pairs."""
    truth, rng = np.repeat([1, 0], len(own)), np.random.default_rng(0)
    drawn = rng.integers(len(own), size=(N_RESAMPLES, len(own)))
    areas = [roc_auc_score(truth, np.concatenate([own[rows], other[rows]])) for rows in drawn]
    low, high = np.quantile(areas, (0.025, 0.975))
    whole = roc_auc_score(truth, np.concatenate([own, other]))
    return f"{whole:.3f} [{low:.2f}, {high:.2f}]"


def apart(data: Path, indices: Indices, most: int) -> None:
    """Print how well the score tells questions from their changes."""
    pools = {name: gold_of(name, data) for name in SETS}
    names = {
        name: q.group for pool in pools.values() for q in pool for name in NAME.findall(q.text)
    }
    by_kind = {
        "number": changed_pairs(another_number, pools, indices, most),
        "name": changed_pairs(another_name(names), pools, indices, most),
        "negation": changed_pairs(negated, pools, indices, most),
    }
    asked = {pair.question.id: pair for pairs in by_kind.values() for pair in pairs}
    by_kind["foreign"] = [
        pair._replace(changed=pair.question.text, put_to=ELSEWHERE[pair.index])
        for pair in list(asked.values())[: 2 * most]
    ]
    print("| | pairs | area | refused, as it is | changed |\n|---|---|---|---|---|")
    for kind, pairs in by_kind.items():
        own = [indices.score(pair.index, pair.question.text, pair.question) for pair in pairs]
        other = [
            indices.score(pair.put_to, pair.changed, pair.question if kind != "foreign" else None)
            for pair in pairs
        ]
        (scores, refused), (scores_2, refused_2) = np.transpose(own), np.transpose(other)
        shares = f"{refused.mean():.1%} | {refused_2.mean():.1%}"
        print(f"| {kind} | {len(pairs)} | {area(scores, scores_2)} | {shares} |", flush=True)


def held_by(index: HierarchicalIndex, most: int) -> dict[str, list[str]]:
    """Words, names, titles and file names that an index holds, as many of each."""
    nodes = index.store.get_nodes(filters=MetadataFilters.from_dict({"hierindex_level": 0}))
    text = "\n".join(node.get_content(MetadataMode.NONE) for node in nodes)
    spans = [span for node in nodes for span in Passage.of(node).spans]
    every = {
        "words": WORD.findall(text),
        "names": NAME.findall(text),
        "titles": [Node.of(node).title for node in nodes],
        "documents": [span.document for span in spans],
    }
    rng = np.random.default_rng(0)
    return {
        kind: [str(one) for one in rng.permutation(sorted(set(found) - {""}))[: most // len(every)]]
        for kind, found in every.items()
    }


def never(indices: Indices, most: int) -> None:
    """Print what is refused of what an index holds."""
    print("\n| | asked | refused | for example |\n|---|---|---|---|")
    for name in HOLDING:
        for kind, texts in held_by(indices[name], most // len(HOLDING)).items():
            refused = [text for text in texts if indices.score(name, text)[1]]
            row = f"{len(texts)} | {len(refused)} | {'; '.join(refused[:5])}"
            print(f"| {kind} of {name} | {row} |", flush=True)


def overviews(indices: Indices) -> None:
    """Print which overviews are refused."""
    for name in HOLDING[:2]:
        documents = sorted(held_by(indices[name], 400)["documents"])[::5]
        top = {"level": len(indices[name].info()["levels"]) - 1}
        some = of_documents(documents[:1]), of_documents(documents[1:6])
        scopes = [{}, top, *({"filters": each} for each in some)]
        every = list(product(OVERVIEWS, scopes))
        drawn = np.random.default_rng(0).permutation(len(every))[: N_OVERVIEWS // 2]
        asked = [every[i] for i in drawn]
        refused = [q for q, scope in asked if indices[name].ask(q, **scope).refused]
        row = f"{len(asked)} | {len(refused)} | {'; '.join(refused[:5])}"
        print(f"| overviews of {name} | {row} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4 or not all(Path(path).is_dir() for path in sys.argv[1:3]):
        sys.exit(
            "Usage: python tests/benchmarks/refusals.py DATA CORPORA INDEX_FOLDER "
            "[PAIRS_OF_A_KIND [HELD]]"
        )
    DATA, CORPORA, FOLDER = map(Path, sys.argv[1:4])
    N = [*map(int, sys.argv[4:]), *(N_PAIRS, N_HELD)[len(sys.argv) - 4 :]]
    INDICES = Indices(DATA, CORPORA, FOLDER)
    apart(DATA, INDICES, N[0])
    never(INDICES, N[1])
    overviews(INDICES)
