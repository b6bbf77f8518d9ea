"""Export of a tree as one HTML file that can be explored in a browser offline."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError
from hierindex.export.files import NO_NODES, new
from hierindex.export.paper import paper
from hierindex.index import HierarchicalIndex
from hierindex.respond.overview import overview_of
from hierindex.retrieve.named import titles_of_documents
from hierindex.retrieve.tree import ReadingOrder, entries, reading_order
from hierindex.serve.explorer.endpoints import of_index, quotes_json
from hierindex.serve.explorer.inline import inlined, json_in_html
from hierindex.settings import REPORT_MB
from hierindex.store.generations import on_newest
from hierindex.store.rows import quotes_in
from hierindex.store.snapshot import Snapshot
from hierindex.text.display import marks_of

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
        Maximum size of the file, 5,000,000 by default. If it would be larger, texts of the lowest
        levels are left out. If the titles alone are too large, the lowest levels are left out.

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
    documents = None if top is None else [*top.documents]
    titles = titles_of_documents(snapshot, documents)
    about, overview = of_index(snapshot), overview_of(snapshot, None if top is None else top.id)
    answers = {question: index.at(snapshot).ask(question).to_json() for question in ask}
    title = about["name"] if top is None else f"{top.title} (a part of {about['name']})"
    front = paper(title, about, overview, answers)
    part = order.icicle.part(first)
    n = part.stop - part.start
    data: dict[str, Any] = {
        "of": None if top is None else top.id,
        "index": about | ({} if top is None else {"roots": [], "titles": []}),
        "titles": titles if _size(titles) <= max_bytes // 10 else {},  # else ids are shown
        "overview": overview,
        "left_out": _left_out(max_bytes, nodes=(0, n), texts=(0, n)),
    }
    room = max_bytes - len(inlined(json_in_html({**data, "nodes": []}), front).encode())
    nodes = _listed(snapshot, order, part, room)
    if not nodes:
        raise InputError(
            f"max_bytes={max_bytes:,} is less than the page and its highest level need."
        )
    n_texts = _add_texts(snapshot, order, nodes, room - _size([*nodes.values()]))
    counts = {"nodes": (len(nodes), n), "texts": (n_texts, len(nodes))}
    left_out = _left_out(max_bytes, **counts)
    data |= {"left_out": left_out, "nodes": [node for _, node in sorted(nodes.items())]}
    return inlined(json_in_html(data), front), len(nodes), left_out


def _left_out(max_bytes: int, **counts: tuple[int, int]) -> str | None:
    """Return a sentence on what there is no room for, given the numbers that fit and of all."""
    parts = [
        f"{what} of the lowest levels ({of - n:,} of {of:,})"
        for what, (n, of) in counts.items()
        if n < of
    ]
    size = f"{max_bytes / 1e6:g} MB"
    return f"Left out, to stay below {size}: {' and '.join(parts)}." if parts else None


def _listed(
    snapshot: Snapshot, order: ReadingOrder, part: slice, room: int
) -> dict[int, dict[str, Any]]:
    """Return nodes by position, without texts, of as many levels from the top as fit."""
    icicle, listed = order.icicle, dict[int, dict[str, Any]]()
    for level in np.unique(icicle.level[part])[::-1].tolist():
        positions = (part.start + np.flatnonzero(icicle.level[part] == level)).tolist()
        if len(positions) * LEAST > room:
            break
        nodes = entries(snapshot, order, positions)
        for position, node in zip(positions, nodes, strict=True):
            above = listed.get(int(icicle.parent[position]))
            node |= {"parent": above and above["id"], "text": "", "quotes": [], "marks": []}
        room -= _size(nodes)
        if room < 0:
            break
        listed |= zip(positions, nodes, strict=True)
    return listed


def _add_texts(
    snapshot: Snapshot, order: ReadingOrder, nodes: dict[int, dict[str, Any]], room: int
) -> int:
    """Add the texts of nodes, the highest level first, while they fit; return their number."""
    positions, n_texts = sorted(nodes, key=lambda at: (-nodes[at]["level"], at)), 0
    for start in range(0, len(positions), BATCH):
        some = positions[start : start + BATCH]
        rows = snapshot.rows(order.ids_at(some), columns=COLUMNS)
        for position, row in zip(some, rows, strict=True):
            node = {
                **nodes[position],
                "text": row["text"],
                "quotes": quotes_json(quotes_in(row["record"])),
                "marks": marks_of(row["text"]),
                "kind": row["kind"],
                "grounding": json.loads(row["record"] or "{}").get("grounding"),
            }
            room -= _size(node) - _size(nodes[position])
            if room < 0:
                return n_texts
            nodes[position] = node
            n_texts += 1
    return n_texts


def _size(value: Any) -> int:
    """Return the number of bytes of a value in the file."""
    return len(json_in_html(value).encode())
