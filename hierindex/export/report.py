"""Export of a tree as one HTML file that can be explored in a browser offline."""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError
from hierindex.export.files import NO_NODES, new
from hierindex.export.paper import paper
from hierindex.index import HierarchicalIndex
from hierindex.node import Quote
from hierindex.retrieve.contents import MANY, ReadingOrder, entries, reading_order
from hierindex.retrieve.overview import of_overview, titles_of_documents
from hierindex.serve.explorer.endpoints import of_index, quotes_json
from hierindex.serve.explorer.inline import inlined, json_in_html
from hierindex.settings import REPORT_MB
from hierindex.store.generations import on_newest
from hierindex.store.rows import quotes_in
from hierindex.store.snapshot import Snapshot
from hierindex.text.markup import marks_of

MAX_BYTES = round(REPORT_MB * 1e6)
LEAST = 120  # bytes of a node's title and numbers
BATCH = 500  # rows in memory
COLUMNS = ("id", "kind", "text", "record")


@dataclass(frozen=True)
class Report:
    """Result of an export: the numbers of nodes and bytes, and a sentence on omitted parts."""

    nodes: int
    bytes: int
    left_out: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)


def to_html(
    index: HierarchicalIndex,
    path: str | Path,
    of: str | None = None,
    *,
    ask: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
) -> Report:
    """Write the tree as one HTML file, to read, print, and explore offline.

    It begins with a description of the index, answers and an outline, with their sources.

    Parameters
    ----------
    index : HierarchicalIndex
    path : str or Path
        File to create.
    of : str, optional
        Id or unique id prefix of a node: write only its subtree. By default the whole tree.
    ask : sequence of str
        Questions to answer in the report; not with `of`.
    max_bytes : int
        Maximum size of the file, 5,000,000 by default. If it would be larger, texts are left out,
        first those of chunks that no summary quotes, then those of other chunks, then those of
        higher levels. If the titles alone are too large, the lowest levels are left out.

    Returns
    -------
    Report
        Numbers of nodes and bytes, and a sentence on omitted parts.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, it is empty, no node matches, the highest level does not fit, the file
        exists or cannot be written, or `ask` and `of` are both given.
    """
    require(is_whole(max_bytes, 1), "max_bytes", "an integer of at least 1", max_bytes)
    if of is not None and ask:
        raise InputError("Questions are answered from the whole index; leave out the subtree.")
    with new(path) as partial:
        text, n_nodes, left_out = _report(index, of, ask, max_bytes)
        data = text.encode()
        partial.write_bytes(data)
    return Report(n_nodes, len(data), left_out)


@on_newest
def _report(
    index: HierarchicalIndex, of: str | None, ask: Sequence[str], max_bytes: int
) -> tuple[str, int, str | None]:
    """Return the file, the number of its nodes, and the omitted parts."""
    snapshot = index.table.snapshot()
    snapshot.require()
    order = reading_order(snapshot)
    if not len(order.ids):
        raise InputError(NO_NODES)
    top = None if of is None else snapshot.node_beginning(of)
    first = None if top is None else order.position(top.id)
    nodes = _Nodes(snapshot, order, max_bytes)
    documents = None
    if top is not None:
        (documents,) = snapshot.columns("documents", node_ids=[top.id])["documents"]
    titles = titles_of_documents(snapshot, documents)
    about, overview = of_index(snapshot), of_overview(snapshot, None if top is None else top.id)
    answers = {question: index.at(snapshot).ask(question).to_json() for question in ask}
    title = about["name"] if top is None else f"{top.title} (a part of {about['name']})"
    front = paper(title, about, overview, answers)
    data: dict[str, Any] = {
        "of": None if top is None else top.id,
        "index": about | ({} if top is None else {"roots": [], "titles": []}),
        "titles": titles if _size(titles) <= max_bytes // 10 else {},  # else ids are shown
        "overview": overview,
        "left_out": nodes.left_out(),
    }
    nodes.room -= len(inlined(json_in_html({**data, "nodes": []}), front).encode())
    nodes.list_levels(first)
    nodes.add_texts()
    in_order = [node for _, node in sorted(nodes.listed.items())]
    data |= {"left_out": nodes.left_out(), "nodes": in_order}
    return inlined(json_in_html(data), front), len(nodes.listed), nodes.left_out()


class _Nodes:
    """The nodes of a report, by position, and the number of bytes left."""

    def __init__(self, snapshot: Snapshot, order: ReadingOrder, max_bytes: int) -> None:
        self.room = max_bytes
        self.listed = dict[int, dict[str, Any]]()
        self._snapshot = snapshot
        self._order = order
        self._max_bytes = max_bytes
        self._n = len(order.ids)
        self._n_texts = 0

    def left_out(self) -> str | None:
        """Return a sentence about what there is no room for, None if there is for all."""
        parts = [
            f"{what} of the lowest levels ({of - n:,} of {of:,})"
            for what, n, of in (
                ("nodes", len(self.listed), self._n),
                ("texts", self._n_texts, len(self.listed) or self._n),
            )
            if n < of
        ]
        size = f"{self._max_bytes / 1e6:g} MB"
        return f"Left out, to stay below {size}: {' and '.join(parts)}." if parts else None

    def list_levels(self, first: int | None) -> None:
        """List what is under a node, or all, without texts, as many levels as there is room for."""
        icicle, part = self._order.icicle, self._order.icicle.part(first)
        positions = np.arange(part.start, part.stop)
        self._n = len(positions)
        for level in np.unique(icicle.level[part])[::-1].tolist():
            at = positions[icicle.level[part] == level].tolist()
            if len(at) * LEAST > self.room:
                break
            nodes = entries(self._snapshot, self._order, at)
            for position, node in zip(at, nodes, strict=True):
                above = int(icicle.parent[position])
                parent = None if position == first or above < 0 else self.listed[above]["id"]
                node |= {"parent": parent, "text": "", "quotes": [], "marks": []}
            n_bytes = sum(_size(node) + 1 for node in nodes)
            if n_bytes > self.room:
                break
            self.room -= n_bytes
            self.listed |= zip(at, nodes, strict=True)
        if not self.listed:
            raise InputError(
                f"max_bytes={self._max_bytes:,} is less than the page and its highest level need."
            )

    def add_texts(self) -> None:
        """Add texts, of the highest level first and of chunks the quoted ones, while they fit."""
        level = self._order.icicle.level
        summaries = sorted((p for p in self.listed if level[p]), key=lambda p: (-level[p], p))
        chunks = sorted(p for p in self.listed if not level[p])
        quotes = list[Quote]()
        for position, row in self._rows(summaries):
            quotes += quotes_in(row["record"])
            if not self._add_text(position, row):
                return
        for position, row in self._rows(self._quoted_first(chunks, quotes)):
            if not self._add_text(position, row):
                return

    def _add_text(self, position: int, row: dict[str, Any]) -> bool:
        """Add the text of a node; return whether it fitted."""
        node = {
            **self.listed[position],
            "text": row["text"],
            "quotes": quotes_json(quotes_in(row["record"])),
            "marks": marks_of(row["text"]),
            "kind": row["kind"],
            "grounding": json.loads(row["record"] or "{}").get("grounding"),
        }
        n_bytes = _size(node) - _size(self.listed[position])
        if n_bytes > self.room:
            return False
        self.room -= n_bytes
        self.listed[position] = node
        self._n_texts += 1
        return True

    def _rows(self, positions: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield positions and their rows, of which only some are in memory."""
        for start in range(0, len(positions), BATCH):
            some = positions[start : start + BATCH]
            rows = self._snapshot.rows(self._order.ids_at(some), columns=COLUMNS)
            yield from zip(some, rows, strict=True)

    def _quoted_first(self, chunks: Sequence[int], quotes: Iterable[Quote]) -> list[int]:
        """Return the positions of chunks, first those whose text is the source of a quote."""
        starts = defaultdict[str, list[int]](list)
        for span in (quote.source for quote in quotes if quote.source):
            starts[span.document].append(span.start)
        for each in starts.values():
            each.sort()

        def is_quoted(record: str) -> bool:
            spans = (quote.source for quote in quotes_in(record) if quote.source)
            return any(
                bisect_left(starts[span.document], span.start)
                < bisect_left(starts[span.document], span.end)
                for span in spans
            )

        ids = self._order.ids_at(chunks)
        few = ids if len(ids) <= MANY else None
        found = self._snapshot.columns("id", "record", node_ids=few)
        records = dict(zip(found["id"], found["record"], strict=True))
        quoted = {i: is_quoted(records[node_id]) for i, node_id in zip(chunks, ids, strict=True)}
        return sorted(chunks, key=lambda position: not quoted[position])


def _size(value: Any) -> int:
    """Return the number of bytes of a value in the file."""
    return len(json_in_html(value).encode())
