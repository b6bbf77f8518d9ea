"""Tables of contents: the titles of a tree's upper nodes, nested."""

from typing import Any

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.retrieve.reading_order import entries, reading_order
from hierindex.store.snapshot import Snapshot

FIRST_LOOK = 40  # most nodes if no depth is given


async def contents(
    snapshot: Snapshot, node: str | None = None, depth: int | None = None
) -> dict[str, Any]:
    """Return the titles of a tree, or of the nodes under one, as nested dicts.

    Parameters
    ----------
    snapshot : Snapshot
    node : str, optional
        Id or unique id prefix of the node to begin with; by default all roots.
    depth : int, optional
        Number of generations below the first nodes; by default as many as give at most
        `FIRST_LOOK` nodes together, but at least one.

    Returns
    -------
    dict
        `nodes`; `hidden`, the number of nodes below them that are left out; and `id_length`, how
        many characters of an id tell it from all others. A node is a dict of `id`, `title`,
        `level`, `document` (the one that it is the whole of, or None), the numbers of `documents`
        and `chunks` under it, and `nodes`, its children in reading order.

    Raises
    ------
    InputError
        If `depth` is negative, or no node or more than one node matches.

    Notes
    -----
    A node with several parents is listed under its strongest parent only, so that each chunk is
    counted once. Of the nodes that are left out, only ids, levels and links are read.
    """
    require(depth is None or is_whole(depth, 0), "depth", "an integer of at least 0", depth)
    snapshot.require()
    order = await reading_order(snapshot)
    icicle = order.icicle
    first = None if node is None else order.position(await snapshot.id_beginning(node))
    part = icicle.part(first)
    below = icicle.depth[part] - icicle.depth[part][:1]
    if depth is None:
        depth = max(1, int((np.cumsum(np.bincount(below)) <= FIRST_LOOK).sum()) - 1)
    positions = (part.start + np.flatnonzero(below <= depth)).tolist()
    tops, nodes = list[dict[str, Any]](), dict[int, dict[str, Any]]()
    for position, entry in zip(positions, await entries(snapshot, order, positions), strict=True):
        del entry["children"]
        nodes[position] = {**entry, "nodes": []}
        parent = nodes.get(int(icicle.parent[position]))
        (tops if parent is None else parent["nodes"]).append(nodes[position])
    return {
        "nodes": tops,
        "hidden": len(below) - len(positions),
        "id_length": order.id_length(positions),
    }
