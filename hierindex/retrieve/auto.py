"""Which levels a question is for."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from llama_index.core.base.base_selector import BaseSelector
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools.types import ToolMetadata

from hierindex.errors import ModelError
from hierindex.record import NodeRecord
from hierindex.retrieve.search import Search
from hierindex.store.lance import HierarchyStore

ASKED = 30  # nodes whose levels are looked at
ENOUGH = 1 / 3  # of the votes of the level that has most
LEAST = 1e-9  # of a vote: one alone, or all alike, vote as well


class Choice(NamedTuple):
    """Levels to ask, ascending, and why."""

    levels: tuple[int, ...]
    why: str


async def choose_levels(search: Search) -> Choice:
    """The levels at which a question is met best, by the scores alone.

    The nodes of all levels that are most like the question vote. Along each way to the root only
    the nearest counts: a chunk whose summary is nearer votes for the summary's level, so that a
    broad question, which many chunks touch and one summary meets, rises, and a narrow one
    stays below. A vote weighs what its score has over the last node's.
    """
    found = await search.unfiltered().best(ASKED)
    votes = _votes(found)
    if not votes:
        return Choice((0,), "nothing was found on any level")
    most = max(votes.values())
    levels = tuple(sorted(level for level, n in votes.items() if n >= ENOUGH * most))
    total = sum(votes.values())
    shares = ", ".join(f"level {level} {n / total:.0%}" for level, n in sorted(votes.items()))
    return Choice(levels, f"of what is most like the question, by weight: {shares}")


def _votes(found: Sequence[NodeWithScore]) -> dict[int, float]:
    """The weight of each level."""
    nodes = {node.node.node_id: node for node in found}
    last = min((node.get_score() for node in found), default=0.0)
    votes = defaultdict[int, float](float)
    for node in found:
        nearest = max(_way_up(node, nodes), key=NodeWithScore.get_score)
        level = NodeRecord.from_metadata(nearest.node.metadata).level
        votes[level] += node.get_score() - last + LEAST
    return dict(votes)


def _way_up(node: NodeWithScore, nodes: dict[str, NodeWithScore]) -> list[NodeWithScore]:
    """A node and those of its ancestors that were found with all between."""
    way, parents = [node], NodeRecord.from_metadata(node.node.metadata).parents
    for parent, _ in parents:
        if parent in nodes:
            way += _way_up(nodes[parent], nodes)
    return way


async def select_levels(store: HierarchyStore, question: str, selector: BaseSelector) -> Choice:
    """The levels that a LlamaIndex selector chooses, as `LLMMultiSelector` does.

    It is told of each level how many nodes it has, and of how many tokens.
    """
    columns = await store.acolumns("level", "level_max", "n_tokens")
    n_nodes, n_tokens = defaultdict[int, int](int), defaultdict[int, int](int)
    spans = zip(columns["level"], columns["level_max"], columns["n_tokens"], strict=True)
    for lowest, highest, tokens in spans:
        for level in range(lowest, highest + 1):
            n_nodes[level] += 1
            n_tokens[level] += tokens
    levels = sorted(n_nodes)
    choices = [
        ToolMetadata(
            name=f"level {level}", description=_described(level, n_nodes[level], n_tokens[level])
        )
        for level in levels
    ]
    result = await selector.aselect(choices, question)
    chosen = {levels[s.index]: s.reason for s in result.selections if s.index in range(len(levels))}
    if not chosen:
        raise ModelError(f"The selector chose none of the levels {levels[0]} to {levels[-1]}.")
    why = "; ".join(f"level {level}: {reason}" for level, reason in chosen.items())
    return Choice(tuple(sorted(chosen)), why)


def _described(level: int, n_nodes: int, n_tokens: int) -> str:
    what = "parts of the documents as they stand" if level == 0 else "summaries"
    return (
        f"{n_nodes} {what}, of {n_tokens // n_nodes} tokens each; the higher a level, the more of "
        "the documents each of its summaries stands for"
    )
