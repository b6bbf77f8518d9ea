"""What the overlap of groups is worth: what is found in `raptor` trees by their `min_weight`.

The documents of all data sets are in one index, which is built for each weight and seed, and is
asked in three ways. Prints the nodes of each level, and then for each way the tables of
`hierindex evaluate`, with paired differences to the first tree.

Usage: python tests/benchmarks/overlap.py INDICES DATA...   (INDICES is a folder to keep them in)
"""

import sys
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from hierindex import Mixture, RaptorHierarchy, load_embed_model
from hierindex.evaluate.datasets import Dataset
from hierindex.evaluate.formats import read_dataset
from hierindex.evaluate.runner import evaluate
from hierindex.evaluate.trees import HIERARCHIES, Trees
from hierindex.evaluate.ways import ours
from hierindex.progress import silent

WEIGHTS, SEEDS = (0.1, 0.25), (0, 1, 2)
WAYS = {"default": {"mode": "auto"}, "collapsed": {"mode": "collapsed"}, "level 1": {"level": 1}}
BUDGETS = 500, 2_000  # tokens
MOST_QUESTIONS = 80  # of a data set


def joined(datasets: list[Dataset]) -> Dataset:
    """All documents, and some questions of each data set."""
    documents = [document for each in datasets for document in each.documents]
    questions = []
    for each in datasets:
        n = min(MOST_QUESTIONS, len(each.questions))
        for some in (each.questions[i * len(each.questions) // n] for i in range(n)):
            kind = f"{each.name} {some.kind}".strip()
            questions.append(replace(some, id=f"{each.name} {some.id}", kind=kind))
    return Dataset("all", documents, questions)


def main(folder: Path, data: list[str]) -> None:
    together, model, trees = joined([read_dataset(each) for each in data]), load_embed_model(), []
    for weight, seed in product(WEIGHTS, SEEDS):
        mixture = Mixture(min_weight=weight)
        trees.append(f"{weight}, seed {seed}")
        HIERARCHIES[trees[-1]] = partial(RaptorHierarchy, mixture=mixture, seed=seed)
    for tree in trees:
        levels = Trees(together, folder, model, None, silent).index(tree).info()["levels"]
        print(tree, *(f"{level['nodes']:,}" for level in levels), sep="\t", flush=True)
    for way, options in WAYS.items():
        ways = {tree: ours(tree, **options) for tree in trees}
        found = evaluate(
            together,
            ways=ways,
            budgets=BUDGETS,
            against=trees[0],
            index=folder,
            embed_model=model,
        )
        print(f"\n{way}\n\n{found}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("Usage: python tests/benchmarks/overlap.py INDICES DATA...")
    main(Path(sys.argv[1]), sys.argv[2:])
