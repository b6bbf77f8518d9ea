"""How good groups are: squad's paragraphs by article, shuffled.

Beside LlamaIndex's RAPTOR pack.

Usage: python tests/benchmarks/clustering_quality.py FOLDER   (of the evaluation data)
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, v_measure_score

sys.path.insert(0, str(Path(__file__).parent))
from measures import rows_of
from rows import AS_PUBLISHED, embedded, load_pack

from hierindex import Mixture
from hierindex.core.membership import strongest_parent
from hierindex.core.mixture import mixture


def squad(folder: Path):
    articles = rows_of(folder / "squad/documents.jsonl")
    texts = [(p["text"], i) for i, a in enumerate(articles) for p in a["paragraphs"]]
    return embedded([text for text, _ in texts]), np.array([i for _, i in texts])


def clusters(name: str, X, truth) -> None:
    order = np.random.default_rng(1).permutation(len(X))
    X, truth = X[order], truth[order]
    n, k = len(X), len(np.unique(truth))
    methods: dict[str, Callable[[], np.ndarray]] = {
        "hierindex": lambda: ours(X, Mixture()),
        "hierindex, BIC twice": lambda: ours(X, AS_PUBLISHED),
        "RAPTOR pack": lambda: packed(X),
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


def main(folder: str) -> None:
    clusters("squad, paragraphs by article", *squad(Path(folder)))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/clustering_quality.py FOLDER")
    main(sys.argv[1])
