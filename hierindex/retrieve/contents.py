"""Overviews of an index: its table of contents, and its outline."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.models.model import EmbedModel
from hierindex.retrieve.outline import outline
from hierindex.retrieve.question import Search
from hierindex.retrieve.reading_order import entries, reading_order
from hierindex.retrieve.retrieval import Question, Retrieval, Retrieved
from hierindex.store.filters import Filters
from hierindex.store.generations import on_newest
from hierindex.store.passing import with_known_keys
from hierindex.store.table import Table

if TYPE_CHECKING:
    from llama_index.core.vector_stores.types import MetadataFilters

FIRST_LOOK = 40  # most nodes if no depth is given


@on_newest
def contents(table: Table, node_id: str | None, depth: int | None) -> dict[str, Any]:
    """Return the titles of a tree, or of the nodes under one; see `HierarchicalIndex.tree`."""
    require(depth is None or is_whole(depth, 0), "depth", "an integer of at least 0", depth)
    snapshot = table.snapshot()
    snapshot.require()
    order = reading_order(snapshot)
    icicle = order.icicle
    first = None if node_id is None else order.position(snapshot.id_beginning(node_id))
    part = icicle.part(first)
    below = icicle.depth[part] - icicle.depth[part][:1]
    if depth is None:
        depth = max(1, int((np.cumsum(np.bincount(below)) <= FIRST_LOOK).sum()) - 1)
    positions = (part.start + np.flatnonzero(below <= depth)).tolist()
    tops, nodes = list[dict[str, Any]](), dict[int, dict[str, Any]]()
    for position, entry in zip(positions, entries(snapshot, order, positions), strict=True):
        del entry["children"]
        nodes[position] = {**entry, "nodes": []}
        parent = nodes.get(int(icicle.parent[position]))
        (tops if parent is None else parent["nodes"]).append(nodes[position])
    return {"nodes": tops, "hidden": len(below) - len(positions)}


@on_newest
def outlined(
    table: Table,
    load: Callable[[], EmbedModel],
    budget: int,
    question: str | None = None,
    of: str | Iterable[str] | None = None,
    filters: "MetadataFilters | Filters | None" = None,
) -> Retrieved:
    """Return the nodes of an outline; see `HierarchicalIndex.outline`.

    `load` returns the embedding model, which only a question needs.
    """
    require(is_whole(budget, 1), "budget", "an integer of at least 1", budget)
    is_text = question is None or isinstance(question, str)
    require(is_text, "question", "a string", question)
    ids: list[Any] = [*of] if isinstance(of, Iterable) and not isinstance(of, str) else [of]
    are_ids = of is None or all(isinstance(each, str) for each in ids)
    require(are_ids, "of", "an id or several ids", ids)
    known = Filters.of(filters)
    if question is not None:
        retrieval = Retrieval(table, load(), filters=known)
        search = retrieval.search(retrieval.embedded(question))
    else:
        snapshot = table.snapshot()
        known = known and with_known_keys(snapshot, known, strict=True)
        search = Search(snapshot, "", [], filters=known)
    named = None if of is None else ids
    found = outline(search, budget, of=named, question=question is not None)
    return Retrieved(Question(question or "", search.embedding), search.snapshot, found)
