"""How well questions find their passages: scores in context beside flat retrieval.

Ten ways to rank the same passages of 75 to 110 words (paragraphs in squad and hotpotqa100):
in random order, from the start of the document, by BM25, by cosine (flat dense), by reciprocal
rank fusion of both, by both normalised to [0, 1] and added, and the last averaged over fixed
neighbours, ±1 (0.5) and ±5 (0.8 to the power of the distance); then the best 50 by cosine and
the best 50 by BM25, by their `blended` scores and by `rank_in_context` on a built index. Where
the question names its document (qmsum, qasper, nq_long) only that is searched. Beside each way,
the mean difference between ours and it, and its 95% interval by bootstrap over documents.

Measures: share of the gold turns' words (qmsum) or of the evidence's 3-grams (qasper) among what
fits 500 or 2,000 tokens; whether the answer is there (nq_long); whether one of the first 1 or 5
passages is of the gold section, file, chapter (by more than 40 characters) or paragraph; whether
both gold paragraphs are among the first 5 (hotpotqa100).

Usage: python tests/benchmarks/retrieval.py FOLDER [INDEX_FOLDER [SET...]]
(FOLDER of the evaluation data; in INDEX_FOLDER indices are built, or found from the last run)
"""

import asyncio
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

sys.path.insert(0, str(Path(__file__).parent))
from passages import Passages, built, plain, read, trigrams

from hierindex import load_embed_model
from hierindex.core.ranking import blended
from hierindex.record import NodeRecord
from hierindex.retrieve.context import Candidate, rank_in_context

SETS = ("qmsum", "tech_books", "books", "squad", "hotpotqa100", "qasper", "nq_long")
WITHIN_DOCUMENT = ("qmsum", "qasper", "nq_long")
N_FOUND = 50  # by each search
WORDS_PER_TOKEN = 0.75
OVERLAP = 40  # characters
N_RESAMPLES = 2_000
Measure = Callable[[np.ndarray], dict[str, float]]


def gold(name: str, question: dict, document: dict, P: Passages) -> Measure | None:
    """Figures of an order of passages; None where the question has no gold."""
    if name == "qmsum":
        turns, inside = document["turn_offsets"], np.zeros(len(document["text"]), dtype=bool)
        for first, last in question["spans"]:
            inside[turns[first][0] : turns[min(last, len(turns) - 1)][1]] = True
        at = np.array([m.start() for m in re.finditer(r"\S+", document["text"])])
        at = at[inside[at]]
        n_gold = np.searchsorted(at, P.end) - np.searchsorted(at, P.start)
        n_most = {b: min(len(at), b * WORDS_PER_TOKEN) for b in (500, 2_000)}
        return len(at) and (
            lambda rows: {f"at {b:,}": n_gold[P.fill(rows, b)].sum() / n_most[b] for b in n_most}
        )
    if name == "qasper":
        sought = set().union(*map(trigrams, question["evidence"] or ()))
        return sought and (
            lambda rows: {
                "at 500": len(
                    sought & set().union(*(trigrams(P.text[r]) for r in P.fill(rows, 500)))
                )
                / len(sought)
            }
        )
    if name == "nq_long":
        answer = plain(question["answer"])
        return question["usable"] and (
            lambda rows: {
                "at 500": float(any(answer in plain(P.text[r]) for r in P.fill(rows, 500)))
            }
        )
    if name == "hotpotqa100":
        titles = {*question["gold_titles"]}
        return lambda rows: {"both of 5": float(titles <= {*P.document[rows[:5]]})}
    if name == "squad":
        text = next(
            p["text"].strip() for p in document["paragraphs"] if p["pid"] == question["pid"]
        )
        right = np.array([passage == text for passage in P.text])
    else:
        shared = np.minimum(P.end, question["end"]) - np.maximum(P.start, question["start"])
        right = shared > OVERLAP
    right &= P.document == question["doc_id"]
    return right.any() and (lambda rows: {f"hit@{k}": float(right[rows[:k]].any()) for k in (1, 5)})


def scaled(x: np.ndarray) -> np.ndarray:
    return (x - x.min()) / max(np.ptp(x), 1e-9)


def smoothed(x: np.ndarray, document: np.ndarray, width: int, decay: float) -> np.ndarray:
    total, weight = x.copy(), np.ones(len(x))
    for distance in range(1, min(width, len(x) - 1) + 1):
        w = decay**distance * (document[distance:] == document[:-distance])
        total[distance:] += w * x[:-distance]
        total[:-distance] += w * x[distance:]
        weight[distance:] += w
        weight[:-distance] += w
    return total / weight


def flat(name: str, dense: np.ndarray, lexical: np.ndarray, document: np.ndarray) -> dict:
    """Scores of the passages searched, by each way that needs no tree."""
    rank = [np.argsort(np.argsort(-x, kind="stable")) for x in (dense, lexical)]
    added = scaled(dense) + scaled(lexical)
    lead = {"lead": -np.arange(len(dense))} if name in WITHIN_DOCUMENT else {}
    return {
        "random": np.random.default_rng(len(dense)).random(len(dense)),
        **lead,
        "BM25": lexical,
        "dense": dense,
        "RRF": sum(1 / (61 + r) for r in rank),
        "added": added,
        "added ±1": smoothed(added, document, 1, 0.5),
        "added ±5": smoothed(added, document, 5, 0.8),
    }


def _candidate(node, dense: float, lexical: float) -> Candidate:
    spans = NodeRecord.from_metadata(node.metadata).citations
    span = spans[0]._replace(end=spans[-1].end)
    parent = node.parent_node.node_id if node.parent_node else ""
    return Candidate(node.node_id, parent, span, dense, lexical)


def ours(P: Passages, rows: np.ndarray, dense: np.ndarray, lexical: np.ndarray, vector, where):
    """Rows by `rank_in_context`, from what the two searches would find; and by their own scores."""
    by_words = np.argsort(-lexical, kind="stable")[:N_FOUND]
    by_words = {*by_words[lexical[by_words] > 0].tolist()}
    by_vectors = {*np.argsort(-dense, kind="stable")[:N_FOUND].tolist()}
    at = np.array(sorted(by_vectors | by_words))
    words_of = np.array([lexical[i] if i in by_words else 0.0 for i in at])
    candidates = [
        _candidate(P.nodes[rows[i]], float(dense[i]), float(words))
        for i, words in zip(at, words_of, strict=True)
    ]
    snapshot = P.index.store.snapshot()
    found = asyncio.run(rank_in_context(snapshot, candidates, vector, filters=where))
    own = at[np.argsort(-blended(dense[at], words_of), kind="stable")]
    return np.array([P.row[node_id] for node_id, _ in found]), rows[own]


def measured(name: str, folder: Path, P: Passages) -> dict:
    """Figures by kind of question and measure: one for each question, by each way to rank."""
    document_of = {d["doc_id"]: d for d in read(folder / "documents.jsonl")}
    figures: dict = defaultdict(lambda: defaultdict(list))
    level, model, seconds = MetadataFilter(key="level", value=0), load_embed_model(), []
    for question in read(folder / "questions.jsonl"):
        document = question["doc_id"]
        if not (measure := gold(name, question, document_of.get(document, {}), P)):
            continue
        filters, rows = [level], np.arange(len(P.nodes))
        if name in WITHIN_DOCUMENT:
            rows = np.flatnonzero(P.document == document)
            is_in = FilterOperator.CONTAINS
            filters.append(MetadataFilter(key="documents", value=document, operator=is_in))
        vector = np.array(model.get_query_embedding(question["question"]))
        dense, lexical = P.X[rows] @ vector, P.bm25(question["question"])[rows]
        orders = {
            way: rows[np.argsort(-scores, kind="stable")]
            for way, scores in flat(name, dense, lexical, P.document[rows]).items()
        }
        start, where = time.perf_counter(), MetadataFilters(filters=filters)
        in_context, orders["no context"] = ours(P, rows, dense, lexical, vector, where)
        orders["ours"] = in_context
        seconds.append(time.perf_counter() - start)
        kind = question.get("kind", "")
        for way, order in orders.items():
            for label, value in measure(order).items():
                figures[f"{name} {kind} {label}"][way].append(value)
        for label in measure(orders["ours"]):
            figures[f"{name} {kind} {label}"]["documents"].append(document)
    print(
        f"{name}: {len(P.nodes):,} passages, {statistics.median(seconds) * 1e3:.0f} ms a question"
    )
    return figures


def interval(difference: np.ndarray, document: np.ndarray) -> str:
    """95% of the mean's resamples over documents."""
    _, number = np.unique(document, return_inverse=True)
    total, n = np.bincount(number, difference), np.bincount(number)
    drawn = np.random.default_rng(0).integers(len(n), size=(N_RESAMPLES, len(n)))
    low, high = np.quantile(total[drawn].sum(axis=1) / n[drawn].sum(axis=1), (0.025, 0.975))
    return f"{difference.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def main(folder: Path, indices: Path, names: tuple[str, ...]) -> None:
    for name in names:
        figures = measured(name, folder / name, built(folder / name, name, indices))
        for label, values in figures.items():
            document = np.array(values.pop("documents"))
            print(f"\n{label}, {len(document)} questions of {len(set(document))} documents")
            mine = np.array(values["ours"])
            for way, theirs in values.items():
                apart = "" if way == "ours" else interval(mine - np.array(theirs), document)
                print(f"  {way:<12}{np.mean(theirs):>8.3f}   {apart}", flush=True)
        print()


if __name__ == "__main__":
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/retrieval.py FOLDER [INDEX_FOLDER [SET...]]")
    with tempfile.TemporaryDirectory() as temporary:
        indices = Path(sys.argv[2] if len(sys.argv) > 2 else temporary)
        main(Path(sys.argv[1]), indices, tuple(sys.argv[3:]) or SETS)
