"""How much of each index an outline of it stands for: share of the text, and documents.

Usage: python tests/benchmarks/outlines.py INDEX...
"""

import sys

from hierindex import HierarchicalIndex
from hierindex.node import Node

BUDGETS = (250, 500, 1000, 2000)


def main(folders: list[str]) -> None:
    print(f"{'index':<40}{'budget':>8}{'nodes':>8}{'share':>8}{'documents':>12}")
    for folder in folders:
        index = HierarchicalIndex.open(folder)
        n_documents = index.info()["documents"]
        for budget in BUDGETS:
            found = index.outline(budget)
            of = {d for each in found for d in Node.of(each).documents}
            share = sum(each.score for each in found)
            documents = f"{len(of)} of {n_documents}"
            print(f"{folder[-39:]:<40}{budget:8}{len(found):8}{share:8.2f}{documents:>12}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("Usage: python tests/benchmarks/outlines.py INDEX...")
    main(sys.argv[1:])
