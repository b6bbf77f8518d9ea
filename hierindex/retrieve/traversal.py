"""Mode "traversal": a beam search from the roots down."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hierindex.core.ranking import cosines
from hierindex.node import Found
from hierindex.retrieve.question import Search, cuts
from hierindex.store.passing import without_a_passing_chunk
from hierindex.store.prefilter import Prefilter, by_ids
from hierindex.store.snapshot import Snapshot, once

MOST_KEPT = 10_000  # places in memory: 15 MB of vectors


class Place(NamedTuple):
    """The part of a node that a traversal reads."""

    id: str
    level: int
    child_ids: list[str]
    vector: "np.ndarray[Any, Any]"  # (n_dims,) float32, as stored


def traversal(search: Search, n: int, *, beam: int, level: int) -> list[Found]:
    """Return the best nodes of a level that a beam search from the roots reaches.

    At each step the `beam` best nodes above the level are replaced by their children. They are
    compared by cosine similarity. Only summaries with a chunk that passes the filters are
    followed, and results must pass the filters themselves.

    Parameters
    ----------
    search : Search
    n : int
        Maximum number of nodes.
    beam : int
        Number of nodes kept at each step.
    level : int
        The level of the results.

    Notes
    -----
    Costs one read by ids for each level that is not in memory, and one search. It finds less than
    a search of the level and takes longer: on two sets of 1,700 chunks, a beam of 10, 30 and 100
    reached 0.4 to 0.7, 0.75 to 0.9 and 0.95 to 0.99 of the ten most similar chunks. Scores
    smoothed along the path (LATTICE, arXiv 2510.13217) reach no more.
    Sarthi et al., RAPTOR (ICLR 2024), section 3: tree traversal.
    """
    fruitless = without_a_passing_chunk(search.snapshot, search.filters)
    coming, reached = _roots(search, max(n, beam)), list[str]()
    for _ in range(search.snapshot.highest_level() + 1):  # each step leads down a level
        places = places_of(coming, search.snapshot)
        reached += [place.id for place in places if place.level <= level]
        above = [p for p in places if p.level > level and p.id not in fruitless]
        kept = _nearest(search.embedding, above, beam)
        coming = list(dict.fromkeys(child for place in kept for child in place.child_ids))
        if all(place.level == level + 1 for place in kept):
            reached += coming
            break
    return search.best(n, cuts([level]), among=list(dict.fromkeys(reached)))


def _roots(search: Search, most: int) -> list[str]:
    """Return ids of the roots, or of the most similar ones if not all fit in memory."""
    roots = search.snapshot.roots()
    if len(roots) <= MOST_KEPT:
        return roots
    with_a_chunk = replace(search.by_meaning(), partial_summaries=True)
    best = with_a_chunk.best(most, cuts([search.snapshot.highest_level()]))
    return [each.node.id for each in best]


def places_of(node_ids: Collection[str], snapshot: Snapshot) -> list[Place]:
    """Return the places of nodes in any order; those of the upper levels are cached."""
    upper = upper_places(snapshot)
    below = [node_id for node_id in node_ids if node_id not in upper]
    cached = [upper[node_id] for node_id in node_ids if node_id in upper]
    return [*cached, *_places(snapshot, by_ids(below))] if below else cached


@once
def upper_places(snapshot: Snapshot) -> dict[str, Place]:
    """Return the places in the highest levels that have at most `MOST_KEPT` nodes together."""
    n_nodes, lowest = 0, 1 + snapshot.highest_level()
    for level, size in reversed(snapshot.level_sizes().items()):
        n_nodes += size
        lowest = level if n_nodes <= MOST_KEPT else lowest
    places = _places(snapshot, Prefilter(f"level >= {lowest:d}"))
    return {place.id: place for place in places}


def _places(snapshot: Snapshot, where: Prefilter) -> list[Place]:
    rows = snapshot.select("id", "level", "child_ids", "vector", where=where)
    X = np.stack(rows["vector"].to_numpy(zero_copy_only=False)) if len(rows) else ()
    columns = (rows[name].to_pylist() for name in ("id", "level", "child_ids"))
    return list(map(Place, *columns, X))


def _nearest(question: Sequence[float], places: Sequence[Place], n: int) -> Sequence[Place]:
    if len(places) <= n:
        return places
    X = np.stack([place.vector for place in places])  # (n_places, n_dims)
    best = np.argsort(-cosines(X, np.asarray(question)), kind="stable")[:n]
    return [places[i] for i in best]
