"""Texts for a language model, with their positions in the tree."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from hierindex.core.membership import Ints1d
from hierindex.record import NodeRecord
from hierindex.respond.numbered import ancestors, as_found, beside
from hierindex.store.snapshot import Snapshot

BETWEEN = "\n\n"  # separator in a prompt, as in LlamaIndex


@dataclass(frozen=True)
class PlacedText:
    """A text with its position in the tree and in its document.

    `path` are the ids of its known ancestors from the root down; `place` is its document and
    its start there in characters.
    """

    text: str
    path: tuple[str, ...] = ()
    place: tuple[str, int] = ("", 0)

    @classmethod
    def of(cls, found: NodeWithScore) -> "PlacedText":
        """Convert a node, with the text that a language model is shown."""
        spans = NodeRecord.from_metadata(found.metadata).citations
        return cls(
            _shown(found.node),
            tuple(reversed(ancestors(found))),
            (spans[0].document, spans[0].start) if spans else ("", 0),
        )


def along_the_tree(texts: Sequence[PlacedText]) -> list[PlacedText]:
    """Sort texts depth first, so that texts under one parent are adjacent.

    Branches keep the order of their first text; under one parent, texts are in reading order.
    """
    first: dict[tuple[str, ...], int] = {}
    for rank, text in enumerate(texts):
        for depth in range(len(text.path)):
            first.setdefault(text.path[: depth + 1], rank)

    def turn(text: PlacedText) -> tuple[list[int], tuple[str, int]]:
        depths = range(len(text.path))
        return [first[text.path[: depth + 1]] for depth in depths], text.place

    return sorted(texts, key=turn)


def together(texts: Sequence[PlacedText]) -> Ints1d:
    """Count the common ancestors of each text and the next one, (n - 1,) int64."""
    return np.array([len(_shared(pair)) for pair in pairwise(texts)], dtype=np.int64)


def joined(texts: Sequence[PlacedText]) -> PlacedText:
    """Join texts into one, under their lowest common ancestor."""
    return PlacedText(BETWEEN.join(each.text for each in texts), _shared(texts), texts[0].place)


def _shared(texts: Sequence[PlacedText]) -> tuple[str, ...]:
    levels = zip(*(text.path for text in texts), strict=False)
    return tuple(ids[0] for ids in takewhile(lambda ids: len(set(ids)) == 1, levels))


async def condensed(
    found: Sequence[NodeWithScore],
    snapshot: Snapshot,
    n_tokens: Callable[[BaseNode], int],
    room: int,
) -> list[NodeWithScore]:
    """Replace some nodes by their summaries in the index, to save prompts.

    A summary replaces its children if all of them were found, unchanged, and if it is shorter.
    Children of the lowest scores are replaced first, and only as many as save a prompt of `room`
    tokens. Nodes keep their order, a summary in the place of its first child. `n_tokens` is called
    once for each node.
    """
    nodes = {node.node_id: node for node in found}
    costs = {node_id: n_tokens(node.node) for node_id, node in nodes.items()}
    total = sum(costs.values())
    best, fewest = list(found), -(-total // room)
    if fewest <= 1:
        return best
    place, score = dict[str, int](), dict[str, float]()
    for i, node in enumerate(found):
        for node_id in (node.node_id, *ancestors(node)[:1]):
            place.setdefault(node_id, i)
            score[node_id] = max(score.get(node_id, -math.inf), node.get_score())
    parents = await snapshot.nodes(sorted(place.keys() - nodes.keys()))
    stored = {node.node_id: _shown(node) for node in await snapshot.nodes(sorted(nodes))}
    as_stored = {i for i, node in nodes.items() if stored.get(i) == _shown(as_found(node).node)}
    for parent in sorted(parents, key=lambda node: (score[node.node_id], -place[node.node_id])):
        children = [child.node_id for child in parent.child_nodes or ()]
        if not children or not all(child in nodes and child in as_stored for child in children):
            continue
        best_score = max(nodes[child].get_score() for child in children)
        summary = beside(found, NodeWithScore(node=parent, score=best_score))
        cost, of_children = n_tokens(summary.node), sum(costs[child] for child in children)
        if cost >= of_children:
            continue
        for child in children:
            del nodes[child]
        nodes[parent.node_id] = summary
        costs[parent.node_id] = cost
        total += cost - of_children
        if -(-total // room) < fewest:
            best = sorted(nodes.values(), key=lambda node: place[node.node_id])
            fewest = -(-total // room)
        if fewest == 1:
            break
    return best


def _shown(node: BaseNode) -> str:
    return node.get_content(MetadataMode.LLM)
