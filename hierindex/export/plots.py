"""Figures of an index by Plotly: the tree as an icicle, and the map of its chunks."""

import html
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from hierindex.core.arguments import is_whole, require
from hierindex.core.titles import without_shared_prefix
from hierindex.errors import InputError
from hierindex.export.drawing import colours, fitted, names_of, shades
from hierindex.index import HierarchicalIndex
from hierindex.loading import extra
from hierindex.retrieve.contents import entries, reading_order
from hierindex.retrieve.levels import Level
from hierindex.retrieve.map import MAX_POINTS, chunk_map
from hierindex.store.generations import on_newest
from hierindex.store.prefilter import CHUNKS
from hierindex.store.snapshot import Snapshot, overview
from hierindex.text.display import counted
from hierindex.unsafe import beginning

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


TITLE = 60  # characters of a label
TEXT = 240  # characters of a text
LINE = 70  # characters of a line of it

MOST_NODES = 1_000  # nodes; more are slow, and too small to see
READ = 480  # characters of a node's text
WIDTH = 120  # characters of names in a row
HEIGHTS = 400, 2_400  # pixels of a tree; higher ones take long to scroll
HEAD, BOTTOM = 90, 20  # pixels above and below what is drawn
ROW = 16  # pixels of a line of a name
LETTER = 6.5  # pixels: wider than most letters
ALL = "all"  # the box of several roots

MAP = 800  # pixels
NAMED = 8  # parents that have a colour: --map-1 to --map-8 of the explorer
NAME = 24  # characters of a name on the map


def graph_objects() -> Any:
    """Import Plotly's graph objects.

    Raises
    ------
    InputError
        If Plotly is not installed.
    """
    with extra("plot", "Figures need"):
        from plotly import graph_objects
    return graph_objects


def label(text: str, most: int = TITLE) -> str:
    """Return the beginning of a text on one line, escaped for Plotly.

    Plotly reads tags as formatting and text between dollar signs as TeX.

    >>> label("<b>costs $5</b>", 12)
    '&lt;b&gt;costs &#36;5…'
    """
    return _escaped(beginning(text, most))


def lines(text: str) -> str:
    """Return the beginning of a text in lines of at most 70 characters, escaped for Plotly."""
    return "<br>".join(map(_escaped, wrap(beginning(text, TEXT), LINE)))


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("$", "&#36;")  # Plotly knows no &quot;


def newest(index: HierarchicalIndex) -> Snapshot:
    """Return the newest snapshot of an index.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index or it is empty.
    """
    snapshot = index.table.snapshot()
    snapshot.require()
    if not snapshot.count(CHUNKS):
        raise InputError("The index is empty: there is nothing to plot.")
    return snapshot


def look(title: str, below: str, **layout: Any) -> dict[str, Any]:
    """Return the layout of a figure with a title and a line below it, both already escaped."""
    colour = colours()
    font = {"family": colour["words"], "size": 13, "color": colour["ink"]}
    return {
        "template": "none",
        "title": {"text": title, "subtitle": {"text": below}, "x": 0.02, "xanchor": "left"},
        "font": font,
        "hoverlabel": {"align": "left", "bgcolor": colour["raised"], "font": font},
        "margin": {"l": 20, "r": 20, "t": HEAD, "b": BOTTOM},
        "paper_bgcolor": colour["paper"],
        "plot_bgcolor": colour["paper"],
        **layout,
    }


@on_newest
def plot_tree(
    index: HierarchicalIndex, node_id: str | None = None, max_nodes: int = MOST_NODES
) -> "Figure":
    """Draw the tree, or the subtree of a node, as an icicle chart.

    A node is a box; its height is the number of chunks under it, its colour the level, and its
    children are to the right of it in reading order. A click enlarges a box. Pointing at a box
    shows its whole title and the beginning of its text. The more boxes stand side by side, the
    taller the figure.

    Parameters
    ----------
    index : HierarchicalIndex
    node_id : str, optional
        Id or unique id prefix of the node to draw; by default all roots.
    max_nodes : int
        Maximum number of nodes to draw; 1,000 by default. Nodes with the most chunks are drawn.

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
    snapshot = newest(index)
    order = reading_order(snapshot)
    icicle = order.icicle
    first = None if node_id is None else order.position(snapshot.id_beginning(node_id))
    start, end = icicle.span(first)
    cells = sorted(icicle.cells(first, start, end, max_nodes).tolist())
    if not cells:
        raise InputError(f"No chunk is under node {node_id!r}: there is nothing to plot.")
    nodes = entries(snapshot, order, cells, READ)
    above: list[int] = icicle.parent[cells].tolist()
    names = names_of([node["title"] for node in nodes], above)
    of_level = shades(1 + max(node["level"] for node in nodes))
    fills = [of_level[node["level"]] for node in nodes]
    ids = {cell: node["id"] for cell, node in zip(cells, nodes, strict=True)}
    parents = [ids.get(parent, "") for parent in above]
    total = len(icicle.row[icicle.part(first)])
    drawn = counted(total, "node")
    if len(nodes) < total:
        drawn = f"the {len(nodes):,} of {total:,} nodes with the most chunks"
    title = snapshot.name if first is None else nodes[0]["title"]
    if parents.count("") > 1:  # Plotly needs one box
        nodes = [{"id": ALL, "title": title, "chunks": end - start}, *nodes]
        parents = ["", *(parent or ALL for parent in parents)]
        names, fills = [title, *names], [colours()["chosen"], *fills]
    letters = WIDTH // len({*icicle.depth[cells].tolist()})
    least, most = HEIGHTS
    height = min(max(least, ROW * (len(nodes) - len({*parents}) + 1)), most)
    trace = go.Icicle(
        ids=[node["id"] for node in nodes],
        parents=parents,
        values=[node["chunks"] for node in nodes],
        labels=[_escaped("".join(fitted(name, letters, 1))) for name in names],
        hovertext=[*map(_told, nodes)],
        hoverinfo="text",
        branchvalues="total",
        sort=False,
        marker={"colors": fills, "line": {"color": colours()["paper"], "width": 0.6}},
        textfont={"size": 12, "color": colours()["ink"]},
    )
    layout = look(
        f"{label(title)}: {drawn}",
        f"The height of a box is its number of chunks, of {end - start:,} in reading order",
        height=HEAD + height + BOTTOM,
        uniformtext={"minsize": 11, "mode": "hide"},
    )
    return go.Figure(trace, layout)


def _told(node: Mapping[str, Any]) -> str:
    """Return the text shown when the pointer is over a box."""
    heading = f"<b>{label(node['title'])}</b><br>"
    if "level" not in node:
        return heading + counted(node["chunks"], "chunk")
    chunks, documents = (counted(node[f"{what}s"], what) for what in ("chunk", "document"))
    return f"{heading}level {node['level']}, {chunks} of {documents}<br>{lines(node['text'])}"


@on_newest
def plot_map(
    index: HierarchicalIndex, level: Level | None = None, max_chunks: int = MAX_POINTS
) -> "Figure":
    """Draw the chunks as points of a plane, similar ones near each other, coloured by parent.

    The name of a parent is written on its points. If there is no room for all names, parents with
    more points come first.

    Parameters
    ----------
    index : HierarchicalIndex
    level : int or {"top", "documents", "sections", "chunks"}, optional
        Level of the parents that colour the points; the 8 parents with most points get a colour.
        By default the highest level with at least 8 nodes, or else the lowest above the chunks.
    max_chunks : int
        Maximum number of points. 2,000 by default and at most. If there are more chunks, a sample
        is drawn.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If the index is empty, `max_chunks` is not positive, or Plotly is not installed.
    LevelError
        If the tree lacks the level.

    Notes
    -----
    `hierindex.retrieve.map.chunk_map` places the points. The first map of a generation takes
    seconds.
    """
    go = graph_objects()
    require(is_whole(max_chunks, 1), "max_chunks", "an integer of at least 1", max_chunks)
    snapshot = newest(index)
    if level is None:
        level = _coloured(overview(snapshot)["levels"])
    found = chunk_map(snapshot, level, max_chunks)
    points, parents = found["points"], found["parents"]
    groups = defaultdict[int, list[dict[str, Any]]](list)
    for point, text in zip(points, _texts(snapshot, points, parents), strict=True):
        group = NAMED if point["parent"] is None else min(point["parent"], NAMED)
        groups[group].append({**point, "text": text})
    names = [label(parent["title"], 36) for parent in parents[:NAMED]]
    traces = [
        go.Scatter(
            x=[point["x"] for point in group],
            y=[point["y"] for point in group],
            mode="markers",
            name=f"{names[number] if number < NAMED else 'others'} ({len(group):,})",
            hovertext=[point["text"] for point in group],
            hoverinfo="text",
            marker={
                "color": colours()["quiet" if number == NAMED else f"map-{number + 1}"],
                "size": 7,
                "line": {"width": 0},
            },
            legendrank=number,
        )
        for number, group in sorted(groups.items(), reverse=True)  # the largest on top
    ]
    shown = counted(len(points), "chunk")
    if len(points) < found["chunks"]:
        shown = f"{len(points):,} of {found['chunks']:,} chunks, a sample,"
    layout = look(
        f"{label(snapshot.name)}: {shown} by similarity",
        "Near points are similar texts; long distances mean little (t-SNE of the embeddings)",
        height=MAP,
        annotations=[*_names_on_map(points, parents)],
        xaxis={"visible": False, "constrain": "domain"},
        yaxis={"visible": False, "scaleanchor": "x"},
        legend={"title": {"text": f"Nodes of level {level} (chunks)"}, "itemsizing": "constant"},
        showlegend=True,
    )
    return go.Figure(traces, layout)


def _texts(
    snapshot: Snapshot, points: Sequence[Mapping[str, Any]], parents: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    """Yield the text shown above each point: its title, its parent's title and its text."""
    rows = snapshot.rows([point["id"] for point in points], columns=("id", "title", "text"))
    for point, row in zip(points, rows, strict=True):
        under = [parents[point["parent"]]["title"]] if point["parent"] is not None else []
        above = [f"<b>{label(row['title'])}</b>", *(f"under {label(each)}" for each in under)]
        yield "<br>".join([*above, lines(row["text"])])


def _coloured(levels: Sequence[Mapping[str, int]]) -> int:
    """Return the highest level whose nodes use all colours, or else the lowest above the chunks."""
    above = [each["level"] for each in levels[1:] if each["nodes"] > 1] or [levels[-1]["level"]]
    many = (each["level"] for each in reversed(levels[1:]) if each["nodes"] >= NAMED)
    return next(many, above[0])


def _names_on_map(
    points: Sequence[Mapping[str, Any]], parents: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the names of parents at their positions, without those that would cover another."""
    sides = ([point[side] for point in points] for side in ("x", "y"))
    pixel = max(max(side) - min(side) for side in sides) / (MAP - HEAD - BOTTOM) or 1
    taken = list[tuple[float, float, float]]()  # x, y and width
    names = without_shared_prefix([parent["title"] for parent in parents])
    for parent, name in zip(parents, names, strict=True):
        text = "".join(fitted(name, NAME, 1))
        x, y, width = parent["x"], parent["y"], pixel * LETTER * len(text)
        if all(2 * abs(x - a) > width + w or abs(y - b) > pixel * ROW for a, b, w in taken):
            taken.append((x, y, width))
            behind = colours()["paper"] + "d9"  # 85%
            yield {"x": x, "y": y, "text": _escaped(text), "showarrow": False, "bgcolor": behind}
