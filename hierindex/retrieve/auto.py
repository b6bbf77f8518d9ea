"""Which levels a question is for."""

from collections.abc import Mapping, Sequence
from math import log
from statistics import fmean
from typing import NamedTuple

from llama_index.core.base.base_selector import BaseSelector
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools.types import ToolMetadata

from hierindex.errors import ModelError
from hierindex.record import NodeRecord
from hierindex.retrieve.search import Search

ASKED = 30  # nodes whose levels are looked at
NEARLY = 0.5  # a level that stands out by so much less is asked as well


class Choice(NamedTuple):
    """Levels to ask, ascending, and why."""

    levels: tuple[int, ...]
    why: str


async def choose_levels(search: Search) -> Choice:
    """The levels whose best node stands out most among the nodes nearest to the question.

    Of the scores s of those nodes, all levels together, the excess over the last of them falls
    off by its mean, b. A level with the share p of all nodes, whose best scores s, stands out by

        (s - s_last) / b + log(1 / p) / 2

    as the fewer nodes a level has, the less likely one of them is so near by chance; by half of
    what chance alone would give, for summaries are like many questions. The level that stands out
    most is taken, and those within `NEARLY` of it.

    Notes
    -----
    In a trial of the formula on scores of QMSum's questions, each put to its meeting's part of a
    tree of six levels: of 35 about a whole meeting 32 are asked at level 3 or above and 9 at level
    0 or 1; of 35 about a part of one, 17 and 26.
    """
    found = await search.by_meaning().best(ASKED)
    n_nodes = await search.snapshot.level_sizes()
    out = _stands_out(found, n_nodes)
    if not out:
        return Choice((0,), "nothing was found on any level")
    most = max(out.values())
    levels = tuple(sorted(level for level, by in out.items() if by >= most - NEARLY))
    told = ", ".join(f"level {level} by {by:.1f}" for level, by in sorted(out.items()))
    return Choice(levels, f"{_named(levels)}, as what is nearest stands out at {told}")


def _named(levels: Sequence[int]) -> str:
    return f"level{'s' if len(levels) > 1 else ''} {' and '.join(map(str, levels))}"


def _stands_out(found: Sequence[NodeWithScore], n_nodes: Mapping[int, int]) -> dict[int, float]:
    """By how much the best of each level does."""
    best: dict[int, float] = {}
    for node in found:  # best first
        best.setdefault(NodeRecord.from_metadata(node.metadata).level, node.get_score())
    scores, total = [node.get_score() for node in found], sum(n_nodes.values())
    falls = fmean(scores) - scores[-1] if scores else 0.0
    return {
        level: (score - scores[-1]) / (falls or 1.0) + log(total / n_nodes[level]) / 2
        for level, score in best.items()
    }


async def select_levels(search: Search, selector: BaseSelector) -> Choice:
    """The levels that a LlamaIndex selector chooses, as `LLMMultiSelector` does.

    It is told of each level how many nodes it has.
    """
    n_nodes = await search.snapshot.level_sizes()
    levels = sorted(n_nodes)
    choices = [
        ToolMetadata(name=f"level {level}", description=_described(level, n_nodes[level]))
        for level in levels
    ]
    result = await selector.aselect(choices, search.question)
    chosen = {levels[s.index]: s.reason for s in result.selections if s.index in range(len(levels))}
    if not chosen:
        raise ModelError(f"The selector chose none of the levels {levels[0]} to {levels[-1]}.")
    why = "; ".join(f"level {level}: {reason}" for level, reason in chosen.items())
    return Choice(tuple(sorted(chosen)), why)


def _described(level: int, n_nodes: int) -> str:
    what = "parts of the documents as they stand" if level == 0 else "summaries"
    return f"{n_nodes} {what}; the higher the level, the more each of its nodes stands for"
