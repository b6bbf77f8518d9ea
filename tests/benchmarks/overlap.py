"""What the overlap of clusters is worth in `raptor` trees, by `min_weight`.

All documents of the data sets are one collection, of which a tree is built for each weight and
seed. Each tree is asked in three ways. Prints for each way the tables of `ways.py`, with
paired differences to the first tree, and then the nodes of each level.

Usage: python tests/benchmarks/overlap.py INDEX_FOLDER DATA...   (trees are kept in INDEX_FOLDER)
"""

import sys
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from measures import further, read_labelled, spread
from ways import Trees

from hierindex import Mixture, RaptorHierarchy, load_embed_model
from hierindex.evaluate import Dataset, evaluate

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
    together = joined([read_labelled(each) for each in data])
    hierarchies = {
        f"{weight}, seed {seed}": partial(
            RaptorHierarchy, mixture=Mixture(min_weight=weight), seed=seed
        )
        for weight, seed in product(WEIGHTS, SEEDS)
    }
    trees, model = Trees(together, hierarchies), load_embed_model()
    for way, options in WAYS.items():
        ways = {tree: trees.way(tree, **options) for tree in hierarchies}
        report = evaluate(together, ways=ways, index=folder, embed_model=model, measures=further)
        print(f"\n{way}\n\n{report}")
    for tree, index in trees.opened.items():
        levels = index.info()["levels"]
        print(tree, *(f"{level['nodes']:,}" for level in levels), sep="\t")


if __name__ == "__main__":
    if len(sys.argv) < 3 or not all(Path(each).is_dir() for each in sys.argv[2:]):
        sys.exit("Usage: python tests/benchmarks/overlap.py INDEX_FOLDER DATA...")
    main(Path(sys.argv[1]), sys.argv[2:])
