"""A tree as an icicle."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.core.icicle import Icicle
from hierindex.core.membership import Ints1d
from hierindex.errors import InputError
from hierindex.plot.style import (
    DARK,
    counted,
    graph_objects,
    label,
    lines,
    look,
    name_of,
    require_chunks,
    shades,
)
from hierindex.retrieve.reading_order import entries, reading_order
from hierindex.store.generations import on_newest
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import wait_for

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST = 1_000  # nodes; more are slow, and too small to see
READ = 480  # characters of a node's text
WIDTH = 120  # characters of labels in a row
ABOVE = {"id": ""}  # what Plotly takes for the parent of the first boxes


@on_newest
def plot_tree(store: HierarchyStore, node_id: str | None = None, max_nodes: int = MOST) -> "Figure":
    """Draw the tree, or a node and what is under it, as an icicle.

    A node is a box as high as the number of chunks under it, with its children to the right, in
    reading order. Its colour is its level. A click enlarges it.

    Parameters
    ----------
    store : HierarchyStore
    node_id : str, optional
        Id or unique id prefix of the node to begin with; by default all roots.
    max_nodes : int
        Maximum number of nodes to draw: those with most chunks, and all of an equal number or none.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If the index is empty, no node or more than one node matches, `max_nodes` is not positive,
        or Plotly is not installed.

    Notes
    -----
    A node with several parents is drawn under its strongest parent only.
    """
    go = graph_objects()
    require(is_whole(max_nodes, 1), "max_nodes", "an integer of at least 1", max_nodes)
    snapshot = store.snapshot()
    require_chunks(snapshot)
    order = wait_for(reading_order(snapshot))
    icicle = order.icicle
    first = None if node_id is None else order.position(wait_for(snapshot.id_beginning(node_id)))
    start, end = icicle.span(first)
    cells = _broadest(icicle, icicle.cells(first, start, end, max_nodes + 1), max_nodes)
    if not cells:
        raise InputError(f"No chunk is under node {node_id!r}: there is nothing to plot.")
    nodes = wait_for(entries(snapshot, order, cells, READ))
    of = dict(zip(cells, nodes, strict=True))
    depth = icicle.depth[cells]
    trace = go.Icicle(
        ids=[node["id"] for node in nodes],
        parents=[of.get(int(parent), ABOVE)["id"] for parent in icicle.parent[cells]],
        values=[node["chunks"] for node in nodes],
        **_texts(nodes, WIDTH // int(1 + depth.max() - depth.min())),
        **_colours([node["level"] for node in nodes]),
        branchvalues="total",
        sort=False,
    )
    layout = look(
        f"{name_of(snapshot) if first is None else label(nodes[0]['title'])}: "
        + _drawn(nodes, len(icicle.row[icicle.part(first)])),
        f"The height of a box is its number of chunks, of {end - start:,} in reading order",
        height=800,
        uniformtext={"minsize": 10, "mode": "hide"},
    )
    return go.Figure(trace, layout)


def _broadest(icicle: Icicle, cells: Ints1d, most: int) -> list[int]:
    """Return the cells of an ascending order that are not too many, all of one width or none."""
    if len(cells) > most:
        width = icicle.x1[cells] - icicle.x0[cells]
        broader = cells[width > width[-1]]
        cells = broader if len(broader) else cells[:most]
    kept: list[int] = np.sort(cells).tolist()
    return kept


def _texts(nodes: Sequence[Mapping[str, Any]], fitting: int) -> dict[str, Any]:
    """Return the labels of boxes, of so many characters, and what is shown above them."""
    return {
        "labels": [label(node["title"], fitting) for node in nodes],
        "hoverinfo": "text",
        "hovertext": [
            f"<b>{label(node['title'])}</b><br>level {node['level']}, "
            f"{counted(node['chunks'], 'chunk')} of {counted(node['documents'], 'document')}"
            f"<br>{lines(node['text'])}"
            for node in nodes
        ],
    }


def _colours(levels: list[int]) -> dict[str, Any]:
    """Return the colours of boxes by level, of their labels, and their scale."""
    colours = shades(1 + max(levels))
    n = len(colours)
    return {
        "textfont": {"color": [DARK if 2 * level < n else "white" for level in levels]},
        "marker": {
            "colors": levels,
            "colorscale": [(end / n, c) for i, c in enumerate(colours) for end in (i, i + 1)],
            "cmin": -0.5,
            "cmax": n - 0.5,
            "colorbar": {
                "title": {"text": "level", "font": {"size": 13}},
                "tickvals": [*range(n)],
                "outlinewidth": 0,
                "thickness": 16,
                "len": min(1, 0.08 * n),
                "yanchor": "top",
                "y": 1,
            },
            "line": {"color": "white", "width": 0.6},
        },
    }


def _drawn(nodes: Sequence[Mapping[str, Any]], total: int) -> str:
    """Return which nodes are drawn."""
    if len(nodes) == total:
        return counted(total, "node")
    least = min(node["chunks"] for node in nodes)
    return f"the {len(nodes):,} of {total:,} nodes with {counted(least, 'chunk')} or more"
