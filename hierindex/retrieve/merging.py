"""Merging of retrieved nodes into their common parent."""

from collections import defaultdict
from collections.abc import Sequence

from llama_index.core.schema import BaseNode, NodeWithScore

from hierindex.record import NodeRecord
from hierindex.retrieve.question import Search

MOST = 0.5  # share of a parent's children, as in LlamaIndex's AutoMergingRetriever


async def merged(found: Sequence[NodeWithScore], search: Search) -> list[NodeWithScore]:
    """Replace children by their parent if more than half of them were found.

    This repeats up to the root. A parent gets the best score of its children and its own.

    Parameters
    ----------
    found : Sequence[NodeWithScore]
        Best first.
    search : Search
        A parent must pass its filters, too.

    Returns
    -------
    list[NodeWithScore]
        Best first.
    """
    kept = {node.node_id: node for node in found}
    while True:
        below = defaultdict[str, list[NodeWithScore]](list)
        for child in kept.values():
            for parent_id, _ in NodeRecord.from_metadata(child.metadata).parents[:1]:
                below[parent_id].append(child)
        several = [parent_id for parent_id, children in below.items() if len(children) > 1]
        parents = [
            parent
            for parent in await search.snapshot.nodes(
                several, search.filters, partial_summaries=search.partial_summaries
            )
            if len(below[parent.node_id]) > MOST * len(parent.child_nodes or ())
        ]
        if not parents:
            return sorted(kept.values(), key=NodeWithScore.get_score, reverse=True)
        lowest = min(map(_level, parents))  # first, as this may complete parents above
        for parent in (parent for parent in parents if _level(parent) == lowest):
            children = below[parent.node_id]
            for child in children:
                kept.pop(child.node_id, None)
            itself = [kept[parent.node_id]] if parent.node_id in kept else []
            best = max(each.get_score() for each in [*children, *itself])
            kept[parent.node_id] = NodeWithScore(node=parent, score=best)


def _level(node: BaseNode) -> int:
    return NodeRecord.from_metadata(node.metadata).level
