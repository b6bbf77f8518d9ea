"""From the roots down: only what lies under the best is looked at."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from llama_index.core.schema import NodeWithScore

from hierindex.retrieve.search import Search, cuts

Rows = dict[str, list[Any]]

MANY = 1_000  # nodes that are searched, not fetched with their vectors


async def traversal(search: Search, n: int, *, beam: int, level: int) -> list[NodeWithScore]:
    """The best nodes of a level that a beam from the roots reaches.

    At each step the `beam` best of the nodes above the level are kept, and their children come
    next; what is not above the level any more has been reached. The way down is by meaning and
    ignores filters, which a summary of many documents would seldom pass; they decide what is
    found at its end.

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
    A fetch by id for each level above, and a search among what was reached. Sarthi et al., RAPTOR
    (ICLR 2024), section 3: tree traversal.
    """
    coming, reached = await search.store.aroots(), list[str]()
    for _ in range(await search.store.ahighest_level() + 1):  # each step leads down a level
        vector = ["vector"] if len(coming) <= MANY else []
        rows = await search.store.acolumns("id", "level", "child_ids", *vector, node_ids=coming)
        reached += [i for i, own in zip(rows["id"], rows["level"], strict=True) if own <= level]
        above = [at for at, own in enumerate(rows["level"]) if own > level]
        kept = await _nearest(search, rows, above, beam)
        coming = list(dict.fromkeys(child for at in kept for child in rows["child_ids"][at]))
        if all(rows["level"][at] == level + 1 for at in kept):
            reached += coming
            break
    return await search.best(n, cuts([level]), among=list(dict.fromkeys(reached)))


async def _nearest(search: Search, rows: Rows, above: Sequence[int], n: int) -> Sequence[int]:
    """Which of these rows are most like the question, at most n."""
    if len(above) <= n:
        return above
    if "vector" not in rows:
        walk = replace(search.by_meaning(), filters=None)
        best = await walk.best(n, among=[rows["id"][at] for at in above])
        return [rows["id"].index(node.node.node_id) for node in best]
    X = np.array([rows["vector"][at] for at in above])  # (n_above, n_dims)
    cosine = X @ np.array(search.embedding) / np.linalg.norm(X, axis=1)
    return [above[i] for i in np.argsort(-cosine, kind="stable")[:n]]
