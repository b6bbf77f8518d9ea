"""A tree as an icicle."""

from typing import TYPE_CHECKING

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.core.icicle import Icicle
from hierindex.core.membership import Ints1d
from hierindex.plot.style import (
    DARK,
    graph_objects,
    label,
    lines,
    look,
    name_of,
    require_nodes,
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
    require_nodes(snapshot)
    order = wait_for(reading_order(snapshot))
    icicle = order.icicle
    first = None if node_id is None else order.position(wait_for(snapshot.id_beginning(node_id)))
    start, end = icicle.span(first)
    cells = _broadest(icicle, icicle.cells(first, start, end, max_nodes + 1), max_nodes)
    nodes = wait_for(entries(snapshot, order, cells, READ))
    of = dict(zip(cells, nodes, strict=True))
    parents = (of.get(int(icicle.parent[cell])) for cell in cells)
    levels = [node["level"] for node in nodes]
    colours = shades(1 + max(levels))
    depth = icicle.depth[cells]
    fitting = WIDTH // int(1 + depth.max() - depth.min())
    trace = go.Icicle(
        ids=[node["id"] for node in nodes],
        labels=[label(node["title"], fitting) for node in nodes],
        parents=["" if parent is None else parent["id"] for parent in parents],
        values=[node["chunks"] for node in nodes],
        branchvalues="total",
        sort=False,
        textfont={"color": [DARK if 2 * n < len(colours) else "white" for n in levels]},
        hovertext=[
            f"<b>{label(node['title'])}</b><br>level {node['level']}, "
            f"{_counted(node['chunks'], 'chunk')} of {_counted(node['documents'], 'document')}"
            f"<br>{lines(node['text'])}"
            for node in nodes
        ],
        hoverinfo="text",
        marker={
            "colors": levels,
            "colorscale": _steps(colours),
            "cmin": -0.5,
            "cmax": len(colours) - 0.5,
            "colorbar": {
                "title": {"text": "level", "font": {"size": 13}},
                "tickvals": [*range(len(colours))],
                "outlinewidth": 0,
                "thickness": 16,
                "len": min(1, 0.08 * len(colours)),
                "yanchor": "top",
                "y": 1,
            },
            "line": {"color": "white", "width": 0.6},
        },
    )
    named = name_of(snapshot) if first is None else label(of[first]["title"])
    total = len(icicle.row[icicle.part(first)])
    drawn = f"{total:,} nodes"
    if len(nodes) < total:
        least = min(node["chunks"] for node in nodes)
        drawn = f"the {len(nodes):,} of {total:,} nodes with {_counted(least, 'chunk')} or more"
    layout = look(
        f"{named}: {drawn}",
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


def _steps(colours: list[str]) -> list[tuple[float, str]]:
    """Return a scale on which each of n colours has one nth."""
    n = len(colours)
    return [(end / n, colour) for i, colour in enumerate(colours) for end in (i, i + 1)]


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"
