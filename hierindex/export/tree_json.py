"""Export of a tree as a dict or a JSON file."""

import json
from pathlib import Path
from typing import Any

from hierindex.export.nodes import new, ordered_nodes
from hierindex.index import HierarchicalIndex
from hierindex.node import Maker
from hierindex.store.rows import describe


def to_tree(index: HierarchicalIndex) -> dict[str, Any]:
    """Return the tree as a dict of JSON values, without vectors and in a reproducible order.

    Parameters
    ----------
    index : HierarchicalIndex

    Returns
    -------
    dict
        `method`, `embed_model`, `summarizer`; the ids of `documents` and `roots`; and `nodes`, a
        flat list with the chunks first. Each node is a dict as from `HierarchicalIndex.describe`;
        its `parents` have weights that sum to 1, and its `children` are ids.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, or it is empty.
    """
    found = ordered_nodes(index.table.snapshot())
    maker = found[0].maker or Maker()  # equal in all nodes
    nodes = [describe(node) for node in found]
    return {
        "method": maker.method,
        "embed_model": maker.embed_model,
        "summarizer": maker.summarizer,
        "documents": sorted({document for node in nodes for document in node["documents"]}),
        "roots": [node["id"] for node in nodes if not node["parents"]],
        "nodes": nodes,
    }


def to_json(index: HierarchicalIndex, path: str | Path) -> int:
    """Write the dict of `to_tree` to a new JSON file, in UTF-8.

    Parameters
    ----------
    index : HierarchicalIndex
    path : str or Path
        File to create; missing parent folders are created.

    Returns
    -------
    int
        Number of nodes.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, it is empty, or the file exists or cannot be written.
    """
    with new(path) as partial:
        tree = to_tree(index)
        with partial.open("w", encoding="utf-8") as file:
            json.dump(tree, file, ensure_ascii=False, allow_nan=False, indent=1)
    return len(tree["nodes"])
