"""What the overlap of clusters is worth in `raptor` trees, by `min_weight`.

All documents of the data sets are one collection, of which a tree is built for each weight and
seed. Each tree is asked in three ways. Prints the nodes of each level, and then for each way the
tables of `hierindex evaluate`, with paired differences to the first tree.

Usage: python tests/benchmarks/overlap.py INDEX_FOLDER DATA...   (trees are kept in INDEX_FOLDER)
"""

import sys
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from hierindex import Mixture, RaptorHierarchy, load_embed_model
from hierindex.evaluate.datasets import Dataset
from hierindex.evaluate.formats import read_dataset
from hierindex.evaluate.runner import evaluate, spread
from hierindex.evaluate.trees import HIERARCHIES, Trees
from hierindex.evaluate.ways import ours
from hierindex.progress import silent

WEIGHTS, SEEDS = (0.1, 0.25), (0, 1, 2)
WAYS = {"default": {"mode": "auto"}, "collapsed": {"mode": "collapsed"}, "level 1": {"level": 1}}
MOST_QUESTIONS = 80  # of a data set


def joined(datasets: list[Dataset]) -> Dataset:
    """All documents, and some questions of each data set."""
    documents = [document for each in datasets for document in each.documents]
    questions = [
        replace(some, id=f"{each.name} {some.id}", kind=f"{each.name} {some.kind}".strip())
        for each in datasets
        for some in spread(each.questions, MOST_QUESTIONS)
    ]
    return Dataset("all", documents, questions)


def main(folder: Path, data: list[str]) -> None:
    together = joined([read_dataset(each) for each in data])
    model = load_embed_model()
    found = Trees(together, folder, model, None, silent)
    trees = {f"{weight}, seed {seed}": (weight, seed) for weight, seed in product(WEIGHTS, SEEDS)}
    for tree, (weight, seed) in trees.items():
        mixture = Mixture(min_weight=weight)
        HIERARCHIES[tree] = partial(RaptorHierarchy, mixture=mixture, seed=seed)
        levels = found.index(tree).info()["levels"]
        print(tree, *(f"{level['nodes']:,}" for level in levels), sep="\t", flush=True)
    for way, options in WAYS.items():
        ways = {tree: ours(tree, **options) for tree in trees}
        against = next(iter(trees))
        report = evaluate(together, ways=ways, against=against, index=folder, embed_model=model)
        print(f"\n{way}\n\n{report}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3 or not all(Path(each).is_dir() for each in sys.argv[2:]):
        sys.exit("Usage: python tests/benchmarks/overlap.py INDEX_FOLDER DATA...")
    main(Path(sys.argv[1]), sys.argv[2:])
