"""Tables of contents: the titles of a tree's upper nodes, nested."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.core.membership import Ints1d
from hierindex.retrieve.outline import Tree, whole_tree
from hierindex.store.rows import quotes_in
from hierindex.store.snapshot import Snapshot

FIRST_LOOK = 40  # most nodes if no depth is given
MANY = 1000  # nodes; for more, the columns of all are read
COLUMNS = ("id", "title", "level", "whole_document", "documents", "child_ids", "record")


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
    counted once. Of the nodes that are left out, only ids, levels and parents are read.
    """
    require(depth is None or is_whole(depth, 0), "depth", "an integer of at least 0", depth)
    snapshot.require()
    first = None if node is None else await snapshot.id_beginning(node)
    part = await asyncio.to_thread(_part, await whole_tree(snapshot), first, depth)
    few = [*part.chunks] if len(part.chunks) <= MANY else None
    columns = await snapshot.columns(*COLUMNS, node_ids=few)
    rows = {
        row[0]: dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    }
    tops = sorted(part.children[None], key=lambda node_id: _place(rows[node_id]))
    return {
        "nodes": [_node(node_id, part, rows) for node_id in tops],
        "hidden": part.hidden,
        "id_length": part.id_length,
    }


class _Part(NamedTuple):
    """The nodes to list."""

    children: dict[str | None, list[str]]  # ids by their parent's; None for the first nodes
    chunks: dict[str, int]  # numbers by id, of each node to list
    hidden: int
    id_length: int


def _part(tree: Tree, first: str | None, depth: int | None) -> _Part:
    ids, forest = tree.ids.to_pylist(), tree.forest  # in the order of the ids
    tops = forest.parent == -1 if first is None else np.array([i == first for i in ids], np.bool_)
    layers = _generations(forest.parent, np.flatnonzero(tops))
    total = np.cumsum([*map(len, layers)])
    if depth is None:
        depth = max(1, int((total <= FIRST_LOOK).sum()) - 1)
    rows = np.concatenate(layers[: depth + 1]).tolist()
    chunks, children = forest.summed(forest.is_text), defaultdict[str | None, list[str]](list)
    for row in rows:
        children[None if tops[row] else ids[forest.parent[row]]].append(ids[row])
    return _Part(
        children,
        {ids[row]: int(chunks[row]) for row in rows},
        int(total[-1]) - len(rows),
        max((_unique_length(ids, row) for row in rows), default=0),
    )


def _generations(parent: Ints1d, first: Ints1d) -> list[Ints1d]:
    """Return the rows of each generation from the first ones down."""
    layers = [first]
    while len(below := np.flatnonzero(np.isin(parent, layers[-1]))):
        layers.append(below)
    return layers


def _unique_length(ids: list[str], row: int) -> int:
    """Return how many characters of an id tell it from all others of a sorted list."""
    beside = ids[max(0, row - 1) : row] + ids[row + 1 : row + 2]
    pairs = (zip(ids[row], other, strict=False) for other in beside)
    return 1 + max((len([*takewhile(lambda two: two[0] == two[1], p)]) for p in pairs), default=0)


def _node(node_id: str, part: _Part, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    row = rows[node_id]
    order = {child: i for i, child in enumerate(row["child_ids"])}
    children = sorted(
        part.children.get(node_id, ()), key=lambda child: order.get(child, len(order))
    )
    return {
        "id": node_id,
        "title": row["title"],
        "level": row["level"],
        "document": row["whole_document"] or None,
        "documents": len(row["documents"]),
        "chunks": part.chunks[node_id],
        "nodes": [_node(child, part, rows) for child in children],
    }


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    spans = (span for quote in quotes_in(row["record"]) for span in quote.sources)
    return row["documents"][0], min((span.start for span in spans), default=0)
