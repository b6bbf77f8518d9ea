"""A tree as JSON."""

import json
from pathlib import Path
from typing import Any

from hierindex.export.nodes import ordered_nodes
from hierindex.export.target import new
from hierindex.index import HierarchicalIndex
from hierindex.record import NodeRecord
from hierindex.store.description import describe


def to_tree(index: HierarchicalIndex) -> dict[str, Any]:
    """The whole tree as plain values, without vectors; the same tree gives the same.

    Returns
    -------
    dict
        `method`, `embed_model`, `summarizer`; `documents` and `roots`, ids; and `nodes`, the
        leaves first, each as `HierarchicalIndex.describe` gives it. The list is flat, for a
        node may have several parents; `parents` (ids with weights that sum to 1) and
        `children` (ids) link it.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, or it is empty.
    """
    found = ordered_nodes(index.store.snapshot())
    record = NodeRecord.from_metadata(found[0].metadata)  # all name the same
    nodes = [describe(node) for node in found]
    return {
        "method": record.method,
        "embed_model": record.embed_model,
        "summarizer": record.summarizer,
        "documents": sorted({document for node in nodes for document in node["documents"]}),
        "roots": [node["id"] for node in nodes if not node["parents"]],
        "nodes": nodes,
    }


def to_json(index: HierarchicalIndex, path: str | Path) -> int:
    """Write `to_tree` to a new file, in UTF-8.

    Returns
    -------
    int
        How many nodes.

    Raises
    ------
    IndexNotFoundError, InputError
        As `to_tree`; or if the file exists or cannot be written.
    """
    with new(path) as partial:
        tree = to_tree(index)
        with partial.open("w", encoding="utf-8") as file:
            json.dump(tree, file, ensure_ascii=False, allow_nan=False, indent=1)
    return len(tree["nodes"])
