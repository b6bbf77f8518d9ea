"""From the roots down: only what lies under the best is looked at."""

from dataclasses import replace

from llama_index.core.schema import NodeWithScore

from hierindex.record import NodeRecord
from hierindex.retrieve.search import Search, cuts


async def traversal(search: Search, n: int, *, beam: int, level: int) -> list[NodeWithScore]:
    """The best nodes of a level that a beam from the roots reaches.

    At each step the nodes above the level are replaced by their children, and the `beam` best
    of all are kept. The way down is by meaning and ignores filters, which a summary of many
    documents would seldom pass; they decide what is found at its end.

    Parameters
    ----------
    search : Search
    n : int
        Nodes at most.
    beam : int
        Nodes kept at each step; as many searches as levels, each among the children of those.
    level : int
        Where it ends.

    Notes
    -----
    Sarthi et al., RAPTOR (ICLR 2024), section 3: tree traversal.
    """
    highest = await search.store.ahighest_level()
    walk = replace(search.by_meaning(), filters=None)
    kept = await walk.best(beam, cuts([highest]))
    reached = [node.node.node_id for node in kept]
    for _ in range(highest):  # each step leads down a level at least
        records = [NodeRecord.from_metadata(found.node.metadata) for found in kept]
        if all(record.level <= level for record in records):
            break
        there = [
            [found.node.node_id]
            if record.level <= level
            else [child.node_id for child in found.node.child_nodes or ()]
            for found, record in zip(kept, records, strict=True)
        ]
        reached = list(dict.fromkeys(node_id for ids in there for node_id in ids))
        kept = await walk.best(beam, among=reached)
    return await search.best(n, cuts([level]), among=reached)
