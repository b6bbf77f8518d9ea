"""Merging of retrieved nodes into all chunks of their common parent."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from llama_index.core.schema import BaseNode, NodeWithScore

from hierindex.record import NodeRecord
from hierindex.retrieve.question import Search

MOST = 0.5  # share of a parent's children, as in LlamaIndex's AutoMergingRetriever


async def merged(found: Sequence[NodeWithScore], search: Search) -> list[NodeWithScore]:
    """Replace children by all chunks of their parent if more than half of them were found.

    This repeats up to the root. Chunks that were found keep their scores, and the others score
    the mean of the children, so that they follow the best and precede what is less similar.

    Parameters
    ----------
    found : Sequence[NodeWithScore]
        Best first.
    search : Search
        The parent and the chunks must pass its filters, too.

    Returns
    -------
    list[NodeWithScore]
        Best first; chunks of equal score are in reading order.
    """
    kept = {node.node_id: node for node in found}
    replaced = dict[str, NodeWithScore]()  # parents, instead of their children
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
            break
        lowest = min(map(_level, parents))  # first, as this may complete parents above
        for parent in (parent for parent in parents if _level(parent) == lowest):
            children = below[parent.node_id]
            for child in children:
                kept.pop(child.node_id, None)
                replaced.pop(child.node_id, None)
            score = fmean(child.get_score() for child in children)
            kept[parent.node_id] = NodeWithScore(node=parent, score=score)
            replaced[parent.node_id] = kept[parent.node_id]
    chunks = await _chunks_under(replaced.values(), search)
    elsewhere = replaced.keys() | chunks.keys()
    apart = [node for node_id, node in kept.items() if node_id not in elsewhere]
    known = {node.node_id: node.get_score() for node in found}
    together = [
        NodeWithScore(node=node, score=known.get(node.node_id, chunks[node.node_id]))
        for node in await search.snapshot.nodes(
            chunks, search.filters, partial_summaries=search.partial_summaries
        )
    ]
    return sorted([*apart, *together], key=NodeWithScore.get_score, reverse=True)


async def _chunks_under(parents: Iterable[NodeWithScore], search: Search) -> dict[str, float]:
    """Return the ids of the chunks under parents, in reading order, with their parents' scores."""
    chunks = dict[str, float]()
    coming = {
        child.node_id: each.get_score() for each in parents for child in each.node.child_nodes or ()
    }
    while coming:
        columns = await search.snapshot.columns("id", "level", "child_ids", node_ids=coming)
        places = zip(columns["level"], columns["child_ids"], strict=True)
        place_of = dict(zip(columns["id"], places, strict=True))
        below = dict[str, float]()
        for node_id, score in coming.items():
            level, children = place_of.get(node_id, (0, ()))
            if level:
                below |= dict.fromkeys(children, score)
            else:
                chunks[node_id] = score
        coming = below
    return chunks


def _level(node: BaseNode) -> int:
    return NodeRecord.from_metadata(node.metadata).level
