"""Mode "auto": choosing the levels to search from the scores of a question."""

from collections.abc import Mapping, Sequence
from math import log
from statistics import fmean
from typing import NamedTuple

from llama_index.core.schema import NodeWithScore

from hierindex.record import NodeRecord
from hierindex.retrieve.question import Search

N_NEAREST = 30  # nodes that the choice is based on
MARGIN = 0.5  # levels this close to the best level are searched as well


class Choice(NamedTuple):
    """The levels to search, ascending, and the reason."""

    levels: tuple[int, ...]
    why: str


async def choose_levels(search: Search) -> Choice:
    """Choose the levels whose best node stands out most among the nodes nearest to the question.

    The nearest nodes of all levels together are taken; s_last is the lowest of their scores, and
    b the mean of their excess over it. A level that holds the share p of all nodes and whose best
    node scores s stands out by

        (s - s_last) / b + log(1 / p) / 2

    The second term corrects for small levels, which are less likely to have a near node by
    chance. It is halved because summaries are similar to many questions. The level that stands
    out most is chosen, with every level within `MARGIN` of it.
    """
    found = await search.by_meaning().best(N_NEAREST)
    n_nodes = await search.snapshot.level_sizes()
    excess = _excess(found, n_nodes)
    if not excess:
        return Choice((0,), "no node was found at any level")
    most = max(excess.values())
    levels = tuple(sorted(level for level, by in excess.items() if by >= most - MARGIN))
    shown = ", ".join(f"level {level} by {by:.1f}" for level, by in sorted(excess.items()))
    return Choice(levels, f"{_named(levels)}, whose best node stands out most: {shown}")


def _named(levels: Sequence[int]) -> str:
    return f"level{'s' if len(levels) > 1 else ''} {' and '.join(map(str, levels))}"


def _excess(found: Sequence[NodeWithScore], n_nodes: Mapping[int, int]) -> dict[int, float]:
    """Return how far the best node of each level stands out."""
    best: dict[int, float] = {}
    for node in found:  # best first
        best.setdefault(NodeRecord.from_metadata(node.metadata).level, node.get_score())
    scores, total = [node.get_score() for node in found], sum(n_nodes.values())
    mean = fmean(scores) - scores[-1] if scores else 0.0
    return {
        level: (score - scores[-1]) / (mean or 1.0) + log(total / n_nodes[level]) / 2
        for level, score in best.items()
    }
