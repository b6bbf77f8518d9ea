"""The map of the chunks of an index, drawn by Plotly."""

import html
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError, extra
from hierindex.export.svg import colours
from hierindex.index import HierarchicalIndex
from hierindex.retrieve.levels import Level
from hierindex.retrieve.tree import MAX_POINTS, chunk_map
from hierindex.store.filters import CHUNKS
from hierindex.store.generations import on_newest
from hierindex.store.snapshot import Snapshot, overview
from hierindex.text.display import counted
from hierindex.unsafe import beginning

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

TITLE = 60  # characters of a label
TEXT = 240  # characters of a text
LINE = 70  # characters of a line of it

MAP = 800  # pixels
NAMED = 8  # parents that have a colour: --map-1 to --map-8 of the explorer


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


@on_newest
def plot_map(
    index: HierarchicalIndex, level: Level | None = None, max_chunks: int = MAX_POINTS
) -> "Figure":
    """Draw the chunks as points of a plane, similar ones near each other, coloured by parent.

    The legend has the names of the parents with the most points.

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
    `hierindex.retrieve.tree.chunk_map` places the points. The first map of a generation takes
    seconds.
    """
    with extra("plot", "Figures need"):
        from plotly import graph_objects as go
    require(is_whole(max_chunks, 1), "max_chunks", "an integer of at least 1", max_chunks)
    snapshot = index.table.snapshot()
    snapshot.require()
    if not snapshot.count(CHUNKS):
        raise InputError("The index is empty: there is nothing to plot.")
    if level is None:
        level = _coloured(overview(snapshot)["levels"])
    found = chunk_map(snapshot, level, max_chunks)
    points, parents = found["points"], found["parents"]
    groups = defaultdict[int, list[dict[str, Any]]](list)
    for point, text in zip(points, _texts(snapshot, points, parents), strict=True):
        group = NAMED if point["parent"] is None else min(point["parent"], NAMED)
        groups[group].append({**point, "text": text})
    colour = colours()
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
                "color": colour["quiet" if number == NAMED else f"map-{number + 1}"],
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
    font = {"family": colour["words"], "size": 13, "color": colour["ink"]}
    title = f"{label(snapshot.name)}: {shown} by similarity"
    below = "Near points are similar texts; long distances mean little (t-SNE of the embeddings)"
    layout = {
        "template": "none",
        "title": {"text": title, "subtitle": {"text": below}, "x": 0.02, "xanchor": "left"},
        "font": font,
        "hoverlabel": {"align": "left", "bgcolor": colour["raised"], "font": font},
        "margin": {"l": 20, "r": 20, "t": 90, "b": 20},
        "paper_bgcolor": colour["paper"],
        "plot_bgcolor": colour["paper"],
        "height": MAP,
        "xaxis": {"visible": False, "constrain": "domain"},
        "yaxis": {"visible": False, "scaleanchor": "x"},
        "legend": {"title": {"text": f"Nodes of level {level} (chunks)"}, "itemsizing": "constant"},
        "showlegend": True,
    }
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
