"""What the explorer shows of a snapshot, as JSON values."""

import json
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

import numpy as np
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from hierindex.record import TITLE, NodeRecord, Quote, Span
from hierindex.retrieve.reading_order import ReadingOrder, reading_order
from hierindex.retrieve.sources import passage_at
from hierindex.store.description import describe, overview
from hierindex.store.prefilter import by_ids
from hierindex.store.snapshot import Snapshot
from hierindex.store.table_snapshot import TableSnapshot, once

SHOWN = 300  # characters of a text
MOST = 1000  # entries of a list
COLUMNS = ("id", "title", "level", "whole_document", "documents", "text")


async def of_index(snapshot: Snapshot) -> dict[str, Any]:
    """Return the description of an index, its name, the length of ids and the fan-out."""
    return {"name": PurePath(snapshot.uri).name, **await described(snapshot)}


@once
async def described(snapshot: TableSnapshot) -> dict[str, Any]:
    """Return what `of_index` returns, without the name."""
    assert isinstance(snapshot, Snapshot)
    shown, order = await overview(snapshot), await reading_order(snapshot)
    parent = order.icicle.parent
    children = np.bincount(parent[parent >= 0])
    children = children[children > 0]
    return {
        **shown,
        "roots": shown["roots"][:MOST],
        "titles": shown["titles"][:MOST],
        "id_length": _id_length(order),
        "fan_out": {
            "mean": round(float(children.mean()), 2) if len(children) else 0,
            "max": int(children.max(initial=0)),
        },
    }


async def of_nodes(snapshot: Snapshot, of: str | None, start: int, n: int) -> dict[str, Any]:
    """Return the children of a node, or the roots, in reading order."""
    order = await reading_order(snapshot)
    children = order.icicle.children(None if of is None else order.position(of))
    nodes = await briefs(snapshot, order, children[start : start + n].tolist())
    return {"of": of, "nodes": nodes, "total": len(children)}


async def of_node(snapshot: Snapshot, node_id: str) -> dict[str, Any]:
    """Return a node, the path to it, its neighbours, and on which passages its text stands."""
    order = await reading_order(snapshot)
    icicle, position = order.icicle, order.position(node_id)
    (node,) = await snapshot.nodes([node_id])
    shown, record = describe(node), NodeRecord.from_metadata(node.metadata)
    path = await briefs(snapshot, order, icicle.path(position))
    before, after = icicle.neighbours(position)
    beside = await briefs(snapshot, order, [each for each in (before, after) if each is not None])
    return {
        **shown,
        "documents": shown["documents"][:MOST],
        "n_documents": len(shown["documents"]),
        "children": shown["children"][:MOST],
        "n_children": len(shown["children"]),
        "path": [{key: each[key] for key in ("id", "title", "level")} for each in path],
        "quotes": [_quote(quote) for quote in record.quotes if quote.source],
        "before": None if before is None else beside[0],
        "after": None if after is None else beside[-1],
    }


async def of_source(snapshot: Snapshot, span: Span, context: int) -> dict[str, Any]:
    """Return a passage with the text around it, and the title of its document."""
    passage = await passage_at(snapshot, span, context)
    return {**passage.to_json(), "title": await _title(snapshot, span.document)}


async def of_icicle(
    snapshot: Snapshot, of: str | None, start: float, end: float, n: int
) -> dict[str, Any]:
    """Return the cells between two places in reading order, the broadest first."""
    order = await reading_order(snapshot)
    icicle = order.icicle
    first = None if of is None else order.position(of)
    x0, x1 = icicle.span(first)
    width = max(1, x1 - x0)
    cells = icicle.cells(first, x0 + start * width, x0 + end * width, n)
    top = 0 if first is None else int(icicle.depth[first])
    nodes = {node["id"]: node for node in await titles(snapshot, order.ids_at(cells))}
    return {
        "depth": icicle.generations(first),
        "cells": [
            {
                **nodes[node_id],
                "depth": int(icicle.depth[cell]) - top,
                "x0": (int(icicle.x0[cell]) - x0) / width,
                "x1": (int(icicle.x1[cell]) - x0) / width,
            }
            for node_id, cell in zip(order.ids_at(cells), cells.tolist(), strict=True)
        ],
    }


async def of_search(snapshot: Snapshot, words: str, n: int) -> dict[str, Any]:
    """Return the nodes whose title or text best match words, with their paths."""
    if not words.strip() or not snapshot.exists:
        return {"nodes": []}
    order = await reading_order(snapshot)
    query = VectorStoreQuery(
        query_str=words, mode=VectorStoreQueryMode.TEXT_SEARCH, similarity_top_k=n
    )
    found = await snapshot.found(query, "id")
    positions = [order.position(node_id) for node_id in found["id"].to_pylist()]
    nodes = await briefs(snapshot, order, positions)
    for node, position in zip(nodes, positions, strict=True):
        node["path"] = order.ids_at(order.icicle.path(position))
    return {"nodes": nodes}


async def of_map(snapshot: Snapshot, level: int, n: int) -> dict[str, Any]:
    """Return the places of chunks in two dimensions, and their parents at a level."""
    order = await reading_order(snapshot)
    icicle = order.icicle
    chunks = np.flatnonzero(icicle.level == 0)
    chosen = chunks[np.unique(np.linspace(0, len(chunks) - 1, min(n, len(chunks))).astype(int))]
    ids = order.ids_at(chosen)
    rows = await snapshot.columns("id", "vector", node_ids=ids)
    by_id = dict(zip(rows["id"], rows["vector"], strict=True))
    X = np.array([by_id[i] for i in ids])
    X -= X.mean(axis=0)
    P = X @ np.linalg.eigh(X.T @ X)[1][:, -2:]
    P -= P.min(axis=0)
    P /= np.maximum(P.max(axis=0), 1e-9)
    above = {}
    points = []
    for i, chunk, (x, y) in zip(ids, chosen.tolist(), P.tolist(), strict=True):
        path = [each for each in icicle.path(chunk) if icicle.level[each] <= level]
        parent = above.setdefault(path[0], len(above)) if path else None
        points.append({"id": i, "x": round(x, 4), "y": round(y, 4), "parent": parent})
    named = {n["id"]: n for n in await titles(snapshot, order.ids_at(above))}
    parents = [{"id": i, "title": named[i]["title"]} for i in order.ids_at(above)]
    return {"points": points, "parents": parents, "chunks": len(chunks)}


async def titles(snapshot: Snapshot, node_ids: list[str]) -> list[dict[str, Any]]:
    """Return the id, title and level of nodes, in any order."""
    columns = await snapshot.columns("id", "title", "level", node_ids=node_ids)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


async def briefs(
    snapshot: Snapshot, order: ReadingOrder, positions: Iterable[int]
) -> list[dict[str, Any]]:
    """Return the first characters of nodes and the numbers of what is under them, in order."""
    import pyarrow.compute as pc

    positions = [*positions]
    ids = order.ids_at(positions)
    rows = await snapshot.select(*COLUMNS, where=by_ids(ids))
    rows = rows.set_column(
        rows.column_names.index("documents"), "documents", pc.list_value_length(rows["documents"])
    ).set_column(
        rows.column_names.index("text"), "text", pc.utf8_slice_codeunits(rows["text"], 0, SHOWN)
    )
    by_id = {row["id"]: row for row in rows.to_pylist()}
    return [
        {
            "id": node_id,
            "title": by_id[node_id]["title"],
            "level": by_id[node_id]["level"],
            "document": by_id[node_id]["whole_document"] or None,
            "documents": by_id[node_id]["documents"],
            "chunks": int(order.icicle.x1[position] - order.icicle.x0[position]),
            "children": len(order.icicle.children(position)),
            "text": by_id[node_id]["text"],
        }
        for node_id, position in zip(ids, positions, strict=True)
    ]


def _quote(quote: Quote) -> dict[str, Any]:
    best, *others = (span.to_json() for span in quote.sources)
    shown = {"at": quote.at, "to": quote.to, "verbatim": quote.verbatim, **best}
    return shown | ({"beside": others} if others else {})


async def _title(snapshot: Snapshot, document: str) -> str:
    from llama_index.core.vector_stores.types import MetadataFilters

    from hierindex.retrieve.question import cuts, of_documents

    within = MetadataFilters(filters=[cuts([0]), of_documents([document])])
    rows = await snapshot.rows(filters=within, columns=("id", "metadata"))
    return next((json.loads(row["metadata"]).get(TITLE, "") for row in rows), "")


def _id_length(order: ReadingOrder) -> int:
    """Return how many characters tell each id from all others."""
    import pyarrow.compute as pc

    n = len(order.ids)
    longest = pc.max(pc.utf8_length(order.ids)).as_py() or 0
    tells = lambda k: pc.count_distinct(pc.utf8_slice_codeunits(order.ids, 0, k)).as_py() == n  # noqa: E731
    return bisect_left(range(longest), True, key=tells)
