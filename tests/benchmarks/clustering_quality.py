"""How good groups and segments are, against what people marked in the texts.

Clusters: squad's paragraphs by article and chunks of books by book, shuffled, beside
LlamaIndex's RAPTOR pack and k-means with the right number. Segments: topics of qmsum's meetings
and sections of tech_books, beside equal and random cuts, and cuts wherever the label of k-means or
of the pack changes; Pk and WindowDiff by nltk, lower is better. All rules are given the same
average size, and what they cut is put within the caps of a tree, as the hierarchies do.

Usage: python tests/benchmarks/clustering_quality.py FOLDER   (of the evaluation data)
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from llama_index.core import Document
from nltk.metrics.segmentation import pk, windowdiff
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, v_measure_score

sys.path.insert(0, str(Path(__file__).parent))
from rows import AS_PUBLISHED, embedded, load_pack

from hierindex import Mixture, load_embed_model, sentence_splitter
from hierindex.core.bounds import UNBOUNDED, Caps, bounded
from hierindex.core.membership import (
    Membership,
    groups_of,
    one_hot,
    strongest_parent,
)
from hierindex.core.mixture import mixture
from hierindex.core.optimal import Optimal
from hierindex.core.rows import Rows
from hierindex.core.segments import TargetSize, segment

CAPS = Caps(max_tokens=3500, max_children=12)
N_BOOK_CHUNKS = 2_000
CHUNK_TOKENS = 128
ROWS = 6


def documents_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "documents.jsonl").open()]


def chunked(documents: list[dict]):
    """Chunks, and the number of each one's document."""
    splitter = sentence_splitter(load_embed_model(), CHUNK_TOKENS)
    chunks = splitter([Document(text=d["text"], id_=d["doc_id"]) for d in documents])
    number = {d["doc_id"]: i for i, d in enumerate(documents)}
    return chunks, np.array([number[chunk.ref_doc_id] for chunk in chunks])


def squad(folder: Path):
    articles = documents_of(folder / "squad")
    texts = [(p["text"], i) for i, a in enumerate(articles) for p in a["paragraphs"]]
    return embedded([text for text, _ in texts]), np.array([i for _, i in texts])


def books(folder: Path):
    chapters = documents_of(folder / "books")
    chunks, chapter = chunked(chapters)
    some = np.random.default_rng(0).permutation(len(chunks))[:N_BOOK_CHUNKS]
    names = sorted({c["book_id"] for c in chapters})
    book = np.array([names.index(c["book_id"]) for c in chapters])
    return embedded([chunks[i].text for i in some]), book[chapter[some]]


def clusters(name: str, X, truth) -> None:
    order = np.random.default_rng(1).permutation(len(X))
    X, truth = X[order], truth[order]
    n, k = len(X), len(np.unique(truth))
    methods: dict[str, Callable[[], np.ndarray]] = {
        "hierindex": lambda: ours(X, Mixture()),
        "hierindex, BIC twice": lambda: ours(X, AS_PUBLISHED),
        "RAPTOR pack": lambda: packed(X),
        f"k-means, k = {k}": lambda: KMeans(k, n_init=1, random_state=0).fit_predict(X),
    }
    print(f"\n{name}: {n:,} rows of {k}, shuffled")
    print(f"{'':<28}{'groups':>8}{'V':>7}{'ARI':>7}{'two runs agree, ARI':>21}")
    for method, labelled in methods.items():
        label = labelled()
        again = adjusted_rand_score(label, labelled())
        print(
            f"{method:<28}{len(np.unique(label)):>8}{v_measure_score(truth, label):>7.3f}"
            f"{adjusted_rand_score(truth, label):>7.3f}{again:>21.2f}",
            flush=True,
        )


def ours(X, model: Mixture):
    return strongest_parent(mixture(X, model=model))


def packed(X):
    found = load_pack().perform_clustering(X, dim=10, threshold=0.1)
    return np.array([int(labels[0]) for labels in found])


def borders(folder: Path, name: str) -> Iterator[tuple[np.ndarray, list[int]]]:
    """Rows of each document, and those that a topic or section begins with."""
    documents = documents_of(folder / name)
    chunks, number = chunked(documents)
    X = embedded([chunk.text for chunk in chunks])
    for i, document in enumerate(documents):
        rows = np.flatnonzero(number == i)
        start = np.array([chunks[row].start_char_idx for row in rows])
        nearest = {int(np.abs(start - place).argmin()) for place in marked(document)} - {0}
        if len(rows) >= 4 and nearest:
            yield X[rows], sorted(nearest)


def marked(document: dict) -> list[int]:
    if "sections" in document:
        return [section["start"] for section in document["sections"]]
    turns = document["turn_offsets"]
    spans = [span for topic in document["topics"] for span in topic["spans"]]
    return [turns[first][0] for first, _ in spans if first < len(turns)]


def segments(name: str, documents: list[tuple[np.ndarray, list[int]]]) -> None:
    rng = np.random.default_rng(0)
    rules = {
        f"Optimal(rows={ROWS})": Optimal(rows=ROWS),
        "TargetSize(6)": TargetSize(ROWS),
    }
    vectors = [X for X, _ in documents]
    zeros = [np.zeros(len(X), dtype=np.int64) for X in vectors]
    documents_as_rows = [Rows(X, 1 + z, z) for X, z in zip(vectors, zeros, strict=True)]
    cut = {  # a membership of each document's rows
        rule_name: [segment(rows, rule=rule, caps=CAPS) for rows in documents_as_rows]
        for rule_name, rule in rules.items()
    }
    cut["k-means, borders of labels"] = [
        runs(KMeans(fewest(X), n_init=1, random_state=0).fit_predict(X)) for X in vectors
    ]
    labels = packed(np.concatenate(vectors))
    ends = np.cumsum([len(X) for X in vectors])[:-1]
    cut["RAPTOR pack, the same"] = [runs(label) for label in np.split(labels, ends)]
    cut["equal cuts"] = [one_hot(np.arange(len(X)) * fewest(X) // len(X)) for X in vectors]
    cut["random cuts"] = [
        runs(np.isin(np.arange(len(X)), rng.choice(len(X), fewest(X), replace=False)).cumsum())
        for X in vectors
    ]
    size = np.mean([len(X) / (1 + len(truth)) for X, truth in documents])
    print(f"\n{name}: {len(documents)} documents, {size:.1f} chunks to a marked segment")
    print(f"{'':<28}{'Pk':>7}{'WindowDiff':>12}")
    for method, found in cut.items():
        errors = []
        for cut_here, (X, truth) in zip(found, documents, strict=True):
            document = np.zeros(len(X), dtype=np.int64)
            M = bounded(
                cut_here,
                X,
                np.ones(len(X), dtype=np.int64),
                Caps(UNBOUNDED.max_tokens, CAPS.max_children),
                document=document,
            )
            errors.append(
                disagreement(truth, [int(group[0]) for group in groups_of(M)][1:], len(X))
            )
        by_pk, by_window = np.mean(errors, axis=0)
        print(f"{method:<28}{by_pk:>7.3f}{by_window:>12.3f}", flush=True)


def runs(label) -> Membership:
    """Segments that end wherever the label changes."""
    return one_hot(np.cumsum(np.diff(label, prepend=label[0]) != 0))


def fewest(X) -> int:
    return -(-len(X) // ROWS)


def disagreement(truth: list[int], found: list[int], n: int) -> tuple[float, float]:
    """Pk and WindowDiff, over half a marked segment."""
    marks = [
        "".join("1" if row in starts else "0" for row in range(1, n)) for starts in (truth, found)
    ]
    half = min(max(2, round(n / (2 * (1 + len(truth))))), n - 1)
    return pk(*marks, half), windowdiff(*marks, half)


def main(folder: str) -> None:
    clusters("squad, paragraphs by article", *squad(Path(folder)))
    clusters("books, chunks by book", *books(Path(folder)))
    for name in ("qmsum", "tech_books"):
        segments(name, list(borders(Path(folder), name)))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/clustering_quality.py FOLDER")
    main(sys.argv[1])
