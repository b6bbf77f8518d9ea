"""A tree as an icicle."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.core.arrays import Ints1d
from hierindex.core.icicle import Icicle
from hierindex.errors import InputError
from hierindex.plot.style import (
    DARK,
    GREY,
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
from hierindex.store.table import Table
from hierindex.text.display import counted

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST = 1_000  # nodes; more are slow, and too small to see
READ = 480  # characters of a node's text
WIDTH = 120  # characters of labels in a row
ALL = "all"  # the box of several roots


@on_newest
def plot_tree(table: Table, node_id: str | None = None, max_nodes: int = MOST) -> "Figure":
    """Draw the tree, or a node and what is under it, as an icicle.

    A node is a box as high as the number of chunks under it, with its children to the right, in
    reading order. Its colour is its level. A click enlarges it.

    Parameters
    ----------
    table : Table
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
    snapshot = table.snapshot()
    require_chunks(snapshot)
    order = reading_order(snapshot)
    icicle = order.icicle
    first = None if node_id is None else order.position(snapshot.id_beginning(node_id))
    start, end = icicle.span(first)
    cells = _broadest(icicle, icicle.cells(first, start, end, max_nodes + 1), max_nodes)
    if not cells:
        raise InputError(f"No chunk is under node {node_id!r}: there is nothing to plot.")
    nodes = entries(snapshot, order, cells, READ)
    of = {cell: node["id"] for cell, node in zip(cells, nodes, strict=True)}
    parents = [of.get(int(parent), "") for parent in icicle.parent[cells]]
    title = label(nodes[0]["title"]) if first is not None else name_of(snapshot)
    drawn = _drawn(nodes, len(icicle.row[icicle.part(first)]))
    n_columns = 1 + int(np.ptp(icicle.depth[cells]))
    if parents.count("") > 1:  # Plotly needs one box
        whole = {"id": ALL, "title": PurePath(snapshot.uri).name, "chunks": end - start}
        nodes, n_columns = [whole, *nodes], 1 + n_columns
        parents = ["", *(parent or ALL for parent in parents)]
    trace = go.Icicle(
        ids=[node["id"] for node in nodes],
        parents=parents,
        values=[node["chunks"] for node in nodes],
        labels=[label(node["title"], WIDTH // n_columns) for node in nodes],
        hovertext=[*map(_told, nodes)],
        hoverinfo="text",
        branchvalues="total",
        sort=False,
        **_colours([node.get("level") for node in nodes]),
    )
    layout = look(
        f"{title}: {drawn}",
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


def _told(node: Mapping[str, Any]) -> str:
    """Return what is shown when the pointer is over a box."""
    heading = f"<b>{label(node['title'])}</b><br>"
    if "level" not in node:
        return heading + counted(node["chunks"], "chunk")
    chunks, documents = (counted(node[f"{what}s"], what) for what in ("chunk", "document"))
    return f"{heading}level {node['level']}, {chunks} of {documents}<br>{lines(node['text'])}"


def _colours(levels: Sequence[int | None]) -> dict[str, Any]:
    """Return the colours of boxes by level, of their labels, and their scale; None is for all."""
    n = 1 + max(level for level in levels if level is not None)
    colours, ticks = shades(n), [*map(str, range(n))]
    numbers = [n if level is None else level for level in levels]
    if n in numbers:
        colours, ticks = [*colours, GREY], [*ticks, ALL]
    steps, dark = len(colours), range((n + 1) // 2, n)
    return {
        "textfont": {"color": ["white" if number in dark else DARK for number in numbers]},
        "marker": {
            "colors": numbers,
            "colorscale": [(x / steps, c) for i, c in enumerate(colours) for x in (i, i + 1)],
            "cmin": -0.5,
            "cmax": steps - 0.5,
            "colorbar": {
                "title": {"text": "level", "font": {"size": 13}},
                "tickvals": [*range(steps)],
                "ticktext": ticks,
                "outlinewidth": 0,
                "thickness": 16,
                "len": min(1, 0.08 * steps),
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
