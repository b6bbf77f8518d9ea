"""From the roots down: only what lies under the best is looked at."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from llama_index.core.schema import NodeWithScore

from hierindex.retrieve.search import Search, cuts

MANY = 1_000  # nodes that are searched, not fetched with their vectors


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
        Nodes kept at each step.
    level : int
        Where it ends.

    Notes
    -----
    A fetch by id for each level, and a search among what was reached. Sarthi et al., RAPTOR
    (ICLR 2024), section 3: tree traversal.
    """
    reached = await search.store.aroots()
    for _ in range(await search.store.ahighest_level()):  # each step leads down a level at least
        below = await _below(search, reached, beam, level)
        if below == reached:
            break
        reached = below
    return await search.best(n, cuts([level]), among=reached)


async def _below(search: Search, node_ids: Sequence[str], beam: int, level: int) -> list[str]:
    """Of the best of these nodes, the children of those above the level, and the others."""
    if len(node_ids) > MANY:
        walk = replace(search.by_meaning(), filters=None)
        node_ids = [node.node.node_id for node in await walk.best(beam, among=node_ids)]
    rows = await search.store.acolumns("id", "level", "child_ids", "vector", node_ids=node_ids)
    if max(rows["level"], default=0) <= level:
        return list(node_ids)
    X, question = np.array(rows["vector"]), np.array(search.embedding)  # (n_nodes, n_dims)
    cosine = X @ question / np.linalg.norm(X, axis=1)
    best = sorted(np.argsort(-cosine, kind="stable")[:beam].tolist())
    there = [[rows["id"][i]] if rows["level"][i] <= level else rows["child_ids"][i] for i in best]
    return list(dict.fromkeys(node_id for ids in there for node_id in ids))
