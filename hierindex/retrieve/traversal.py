"""From the roots down: only what lies under the best is looked at."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from llama_index.core.schema import NodeWithScore

from hierindex.retrieve.search import Search, cuts
from hierindex.store.failing import without_a_passing_chunk
from hierindex.store.snapshot import MOST_KEPT, Place


async def traversal(search: Search, n: int, *, beam: int, level: int) -> list[NodeWithScore]:
    """The best nodes of a level that a beam from the roots reaches.

    At each step the `beam` best of the nodes above the level are kept, and their children come
    next; what is not above the level any more has been reached. The way down is by meaning, by
    way of summaries with a chunk that passes the filters; the filters decide what is found at its
    end.

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
    A fetch by id for each level that is not in memory, and a search among what was reached.
    Sarthi et al., RAPTOR (ICLR 2024), section 3: tree traversal.
    """
    fruitless = await without_a_passing_chunk(search.snapshot, search.filters)
    coming, reached = await _roots(search, max(n, beam)), list[str]()
    for _ in range(await search.snapshot.highest_level() + 1):  # each step leads down a level
        places = await search.snapshot.places(coming)
        reached += [place.id for place in places if place.level <= level]
        above = [p for p in places if p.level > level and p.id not in fruitless]
        kept = _nearest(search.embedding, above, beam)
        coming = list(dict.fromkeys(child for place in kept for child in place.child_ids))
        if all(place.level == level + 1 for place in kept):
            reached += coming
            break
    return await search.best(n, cuts([level]), among=list(dict.fromkeys(reached)))


async def _roots(search: Search, most: int) -> list[str]:
    """Ids of the roots, of more than are kept in memory those most like the question."""
    roots = await search.snapshot.roots()
    if len(roots) <= MOST_KEPT:
        return roots
    with_a_chunk = replace(search.by_meaning(), partial_summaries=True)
    best = await with_a_chunk.best(most, cuts([await search.snapshot.highest_level()]))
    return [node.node.node_id for node in best]


def _nearest(question: Sequence[float], places: Sequence[Place], n: int) -> Sequence[Place]:
    """The places whose nodes are most like the question, at most n."""
    if len(places) <= n:
        return places
    X = np.stack([place.vector for place in places])  # (n_places, n_dims)
    cosine = X @ np.asarray(question) / np.linalg.norm(X, axis=1)
    return [places[i] for i in np.argsort(-cosine, kind="stable")[:n]]
