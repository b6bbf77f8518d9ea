"""The requests that the explorer answers: their parameters, and what they read."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import PurePath
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from hierindex.errors import InputError
from hierindex.index import HierarchicalIndex
from hierindex.node import TITLE, Quote, Span
from hierindex.retrieve.conditions import known_filters
from hierindex.retrieve.contents import entries, reading_order
from hierindex.retrieve.map import chunk_map
from hierindex.retrieve.sources import passages_at
from hierindex.serve.endpoint import Endpoint
from hierindex.settings import load_settings
from hierindex.store.prefilter import of_documents
from hierindex.store.rows import describe
from hierindex.store.search import matching
from hierindex.store.snapshot import Snapshot, once, overview
from hierindex.threads import is_given_up

BEGINNING = 300  # characters of a text
MAX_ENTRIES = 1000  # entries of a list
CANDIDATES = 4  # for each node of a search, to rank by their titles
SHORT = ("id", "title", "level")


@once
def of_index(snapshot: Snapshot) -> dict[str, Any]:
    """Return the description of an index, its name and the fan-out.

    Only the first 1,000 `roots` and `titles` are returned. Cached.
    """
    shown, order = overview(snapshot), reading_order(snapshot)
    children = order.icicle.n_children[order.icicle.n_children > 0]
    mean = round(float(children.mean()), 2) if len(children) else 0.0
    return {
        "name": PurePath(snapshot.uri).name,
        **shown,
        "roots": shown["roots"][:MAX_ENTRIES],
        "titles": shown["titles"][:MAX_ENTRIES],
        "fan_out": {"mean": mean, "max": int(children.max(initial=0))},
    }


def of_nodes(
    snapshot: Snapshot, of: str | None, start: int, around: str | None, n: int
) -> dict[str, Any]:
    """Return n children of a node, or roots, from number `start`, and the `total` of them.

    If the child `around` is given, `start` is that of the part of n that it is in.

    Raises
    ------
    InputError
        If `around` is no such child.
    """
    order = reading_order(snapshot)
    children = order.icicle.children(None if of is None else order.position(of))
    if around is not None:
        position = order.position(around)
        place = int(np.searchsorted(children, position))
        if position not in children[place : place + 1]:
            what = "a root" if of is None else f"a child of {of!r}"
            raise InputError(f"Node {around!r} is not {what}.")
        start = place - place % n
    shown = children[start : start + n].tolist()
    nodes = entries(snapshot, order, shown, BEGINNING)
    return {"of": of, "nodes": nodes, "start": start, "total": len(children)}


def of_node(snapshot: Snapshot, node_id: str) -> dict[str, Any]:
    """Return a node, the path to it, and on which passages its text stands.

    `chunks` is the number of those under it, `before` and `after` are the nearest nodes of its
    level. Only the first 1,000 `documents` and `children` are returned.
    """
    order = reading_order(snapshot)
    position = order.position(node_id)
    (node,) = snapshot.nodes([node_id])
    shown = describe(node)
    path, beside = order.icicle.path(position), order.icicle.neighbours(position)
    near = [*path, *(each for each in beside if each is not None)]
    by_position = dict(zip(near, entries(snapshot, order, near, BEGINNING), strict=True))
    before, after = (None if each is None else by_position[each] for each in beside)
    return {
        **shown,
        "documents": shown["documents"][:MAX_ENTRIES],
        "children": shown["children"][:MAX_ENTRIES],
        "chunks": int(order.icicle.x1[position] - order.icicle.x0[position]),
        "path": [{key: by_position[each][key] for key in SHORT} for each in path],
        "quotes": quotes_json(node.quotes),
        "before": before,
        "after": after,
    }


def of_source(snapshot: Snapshot, span: Span, context: int) -> dict[str, Any]:
    """Return a passage with the text around it, and the title of its document."""
    (passage,) = passages_at(snapshot, [span], context)
    titles = titles_of_documents(snapshot, [span.document])
    return {**passage.to_json(), "title": titles.get(span.document, "")}


def of_icicle(
    snapshot: Snapshot, of: str | None, start: float, end: float, n: int
) -> dict[str, Any]:
    """Return the n broadest cells over the text from `start` to `end`, and the `depth` of all.

    Places are shares of the chunks under the node `of`, or of all chunks, in reading order.
    """
    order = reading_order(snapshot)
    icicle = order.icicle
    first = None if of is None else order.position(of)
    x0, x1 = icicle.span(first)
    width = max(1, x1 - x0)
    cells = icicle.cells(first, x0 + start * width, x0 + end * width, n)
    ids, depth = order.ids_at(cells), icicle.depth[icicle.part(first)]
    top = 0 if first is None else int(icicle.depth[first])
    columns = snapshot.columns("id", "title", node_ids=ids)
    titles = dict(zip(columns["id"], columns["title"], strict=True))
    rows = zip(
        ids,
        icicle.level[cells].tolist(),
        (icicle.depth[cells] - top).tolist(),
        ((icicle.x0[cells] - x0) / width).round(9).tolist(),
        ((icicle.x1[cells] - x0) / width).round(9).tolist(),
        strict=True,
    )
    keys = ("id", "title", "level", "depth", "x0", "x1")
    return {
        "depth": int(depth.max(initial=top)) - top,
        "cells": [
            dict(zip(keys, (node_id, titles[node_id], *row), strict=True)) for node_id, *row in rows
        ],
    }


def of_search(snapshot: Snapshot, words: str, n: int) -> dict[str, Any]:
    """Return the n nodes that best match words: those with all in their title first, from the top.

    Each has the ids of the `path` to it, and `of`: the title or id of its document, None if it has
    several.
    """
    order = reading_order(snapshot)
    scope = snapshot.scope(columns=("id", "title", "level", "documents", "metadata"))
    rows = matching(scope, words, CANDIDATES * n).to_pylist()
    each = words.lower().split()

    def rank(row: dict[str, Any]) -> int:
        title = row["title"].lower()
        return -1 - row["level"] if all(word in title for word in each) else 0

    found = sorted(rows, key=rank)[:n]
    positions = [order.position(row["id"]) for row in found]
    nodes = entries(snapshot, order, positions, BEGINNING)
    for node, position, row in zip(nodes, positions, found, strict=True):
        node["path"] = order.ids_at(order.icicle.path(position))
        documents = row["documents"]
        node["of"] = _title_in(row) or documents[0] if len(documents) == 1 else None
    return {"nodes": nodes}


def quotes_json(quotes: Sequence[Quote]) -> list[dict[str, Any]]:
    """Return which characters of a text stand on which passages.

    An entry has `at`, `to`, `verbatim` and the keys of the best passage, none of a rewritten
    sentence that no source supports. Quotes of unknown places are left out.
    """
    return [
        {"at": quote.at, "to": quote.to, "verbatim": quote.verbatim, **best}
        for quote in quotes
        if (best := quote.source.to_json() if quote.source else {}) or not quote.verbatim
    ]


def titles_of_documents(snapshot: Snapshot, documents: list[str] | None = None) -> dict[str, str]:
    """Return the titles of documents, by default of all, that have one in their metadata."""
    where = snapshot.of_each_document
    if documents is not None:
        where &= of_documents(documents)
    rows = snapshot.select("documents", "metadata", where=where)
    titles = dict[str, str]()
    for row in rows.to_pylist():
        if title := _title_in(row):
            titles |= dict.fromkeys(row["documents"], title)
    return titles


def _title_in(row: dict[str, Any]) -> str | None:
    """Return the title of a row's document in its metadata."""
    title = json.loads(row["metadata"]).get(TITLE)
    return title if isinstance(title, str) else None


_ordering = Lock()


class View(Endpoint):
    """A request for what `hierindex.serve.explorer.endpoints` reads."""

    def answer_from(self, index: HierarchicalIndex) -> dict[str, Any]:
        """Return what is read from a snapshot of the index."""
        snapshot = index.table.snapshot()
        with _ordering:  # a page asks for several things at once
            reading_order(snapshot)
        return self.read(snapshot)

    @abstractmethod
    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the answer from a snapshot."""


class Index(View):
    """What the index is, and what it cost."""

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_index`."""
        return of_index(snapshot)


class Nodes(View):
    """Children of a node, or roots: those from a number on, or those around one."""

    of: str | None = None
    start: int = Field(default=0, ge=0)
    around: str | None = None
    n: int = Field(default=200, ge=1, le=1000)

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_nodes`."""
        return of_nodes(snapshot, self.of, self.start, self.around, self.n)


class Node(View):
    """A node."""

    id: str

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_node`."""
        return of_node(snapshot, self.id)


class Source(View):
    """A passage of a document, with up to `context` characters on both sides."""

    document: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    context: int = Field(default=2000, ge=0, le=100_000)

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_source`."""
        span = Span(self.document, self.start, self.end)
        return of_source(snapshot, span, self.context)


class Icicle(View):
    """Cells of the icicle."""

    of: str | None = None
    start: float = Field(default=0.0, alias="from", ge=0, le=1)
    end: float = Field(default=1.0, alias="to", ge=0, le=1)
    n: int = Field(default=2000, ge=1, le=10_000)

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_icicle`."""
        return of_icicle(snapshot, self.of, self.start, self.end, self.n)


class Search(View):
    """Nodes that match words."""

    q: str
    n: int = Field(default=50, ge=1, le=500)

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_search`."""
        return of_search(snapshot, self.q, self.n)


class Map(View):
    """Chunks on a plane."""

    alone: ClassVar[AbstractContextManager[Any]] = Lock()
    level: int = Field(default=1, ge=0)
    n: int = Field(default=2000, ge=1, le=2000)

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `chunk_map`."""
        return chunk_map(snapshot, self.level, self.n)


class Ask(Endpoint):
    """A question, with options of `hierindex query`; others are as that command has them."""

    alone: ClassVar[AbstractContextManager[Any]] = Lock()
    q: str
    mode: str | None = None
    level: list[str] = Field(default=[])
    by: str | None = None
    where: list[str] = Field(default=[])
    token_budget: str | None = None
    top_k: str | None = None

    def answer_from(self, index: HierarchicalIndex) -> dict[str, Any]:
        """Return what `hierindex query --json` prints, each path from the root down.

        Raises
        ------
        InputError
            If the client is gone; another question may have been answered first.
        """
        if is_given_up():
            raise InputError("The client has disconnected.")
        given = self.model_dump(exclude={"q", "where"})
        settings = load_settings(**given)
        answer = index.ask(
            self.q,
            filters=known_filters(self.where, index.table.snapshot()),
            synthesizer={"min_score": settings.min_score},
            **settings.chosen(" ".join(given)),
        ).to_json()
        for source in answer["sources"]:
            source["path"].reverse()
        return answer


KINDS: tuple[type[Endpoint], ...] = (Index, Nodes, Node, Source, Icicle, Search, Map, Ask)
ENDPOINTS = {kind.__name__.lower(): kind for kind in KINDS}
