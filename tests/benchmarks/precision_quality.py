"""What bfloat16 changes in quality: what is found on sets of questions, and how rows cluster.

Found: for each set and way, the means of all measures of `ways.py` in each precision, in points
(hundredths of a measure's range), their difference, the largest difference of one measure, and the
points that one question counts for. Chunks are the same, trees may differ. Clusters: squad's
paragraphs by article and chunks of books by book, shuffled. A mixture depends on every bit of its
rows, so its V-measure is the mean of `SEEDS` seeds, with half of a 95% interval, and is also given
for float32 with noise of one part in ten million. The silhouettes of the true labels change
smoothly with the vectors.

Usage: python tests/benchmarks/precision_quality.py DATA [FOLDER]   (evaluation data, and a folder
where indices are kept)
"""

import sys
import tempfile
from pathlib import Path
from statistics import fmean

import numpy as np
from clustering_quality import CHUNK_TOKENS, N_BOOK_CHUNKS, documents_of
from llama_index.core import Document
from measures import further, read_labelled
from sklearn.metrics import silhouette_score, v_measure_score
from ways import outlined

from hierindex import load_embed_model, sentence_splitter
from hierindex.core.membership import strongest_parent
from hierindex.core.mixture import mixture
from hierindex.evaluate import evaluate
from hierindex.evaluate.runner import WAYS as NAMED

PRECISIONS = "float32", "bfloat16"
WAYS = {
    "dense": NAMED["dense"],
    "collapsed": NAMED["collapsed"],
    "outline": outlined,
    "auto": NAMED["auto"],
}
SEEDS = 20
NOISE = 1e-7


def found(data: Path, folder: Path) -> None:
    heads = "measures", "float32", "bfloat16", "apart", "largest", "a question"
    print(f"\n{'points, means over measures':<28}" + "".join(f"{head:>12}" for head in heads))
    for each in sorted(path.parent for path in data.glob("*/questions.jsonl")):
        float32, bfloat16 = (
            evaluate(
                read_labelled(each),
                ways=WAYS,
                measures=further,
                index=folder / precision,
                embed_model=load_embed_model(precision=precision),
            ).rows
            for precision in PRECISIONS
        )
        for way in WAYS:
            rows = [pair for pair in zip(float32, bfloat16, strict=True) if pair[0].way == way]
            assert all(one[:6] == other[:6] for one, other in rows)
            apart = [100 * (other.mean - one.mean) for one, other in rows]
            means = [100 * fmean(row.mean for row in column) for column in zip(*rows, strict=True)]
            least = 100 / max(one.questions for one, _ in rows)
            values = *means, fmean(apart), max(apart, key=abs), least
            cells = "".join(f"{value:>12.2f}" for value in values)
            print(f"{f'{each.name}, {way}':<28}{len(rows):>12}{cells}", flush=True)


def clusters(data: Path) -> None:
    articles = documents_of(data / "squad")
    texts = [(p["text"], i) for i, a in enumerate(articles) for p in a["paragraphs"]]
    paragraphs = [text for text, _ in texts], np.array([i for _, i in texts])
    for name, (texts_of, truth) in {"squad": paragraphs, "books": _of_books(data)}.items():
        order = np.random.default_rng(1).permutation(len(truth))
        rows = {precision: _embedded(texts_of, precision)[order] for precision in PRECISIONS}
        rng = np.random.default_rng(2)
        noisy = rows["float32"] + NOISE * rng.standard_normal(rows["float32"].shape)
        rows["float32 and noise"] = _unit(noisy.astype(np.float32))
        print(f"\n{name}, points{'V':>12}{'+-':>8}{'silhouette':>14}")
        for kind, X in rows.items():
            labels = [strongest_parent(mixture(X, seed=seed)) for seed in range(SEEDS)]
            V = 100 * np.array([v_measure_score(truth[order], label) for label in labels])
            half = 1.96 * V.std(ddof=1) / np.sqrt(len(V))
            shape = 100 * silhouette_score(X, truth[order], metric="cosine")
            print(f"{kind:<20}{V.mean():>8.2f}{half:>8.2f}{shape:>14.3f}", flush=True)


def _of_books(data: Path) -> tuple[list[str], np.ndarray]:
    chapters = documents_of(data / "books")
    splitter = sentence_splitter(load_embed_model(), CHUNK_TOKENS)
    chunks = splitter([Document(text=c["text"], id_=c["doc_id"]) for c in chapters])
    book_of = {c["doc_id"]: c["book_id"] for c in chapters}
    some = np.random.default_rng(0).permutation(len(chunks))[:N_BOOK_CHUNKS]
    books = [book_of[chunks[i].ref_doc_id] for i in some]
    return [chunks[i].text for i in some], np.unique(books, return_inverse=True)[1]


def _embedded(texts: list[str], precision: str) -> np.ndarray:
    model = load_embed_model(precision=precision)
    return _unit(np.array(model.get_text_embedding_batch(texts), np.float32))


def _unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/precision_quality.py DATA [FOLDER]")
    with tempfile.TemporaryDirectory() as made:
        clusters(Path(sys.argv[1]))
        found(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else made))
