"""The map of an index."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hierindex.core.arguments import is_whole, require
from hierindex.plot.style import (
    COLOURS,
    GREY,
    graph_objects,
    label,
    lines,
    look,
    name_of,
    require_chunks,
)
from hierindex.retrieve.levels import Level
from hierindex.retrieve.map import MOST, chunk_map
from hierindex.store.generations import on_newest
from hierindex.store.snapshot import Snapshot, overview
from hierindex.store.table import Table
from hierindex.text.display import counted

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SYMBOLS = ("circle", "diamond", "square")
NAMED = len(COLOURS) * len(SYMBOLS)  # parents that have a colour and a symbol


@on_newest
def plot_map(table: Table, level: Level | None = None, max_chunks: int = MOST) -> "Figure":
    """Draw the chunks as points of a plane, similar ones near each other, coloured by parent.

    Parameters
    ----------
    table : Table
    level : int or {"top", "documents", "sections", "chunks"}, optional
        Of the parents, of which the 18 with most points have a colour and a symbol; by default,
        the lowest that has no more.
    max_chunks : int
        Points to draw, at most 2,000.

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
    See `hierindex.retrieve.map.chunk_map`. The first map of a generation takes seconds.
    """
    go = graph_objects()
    require(is_whole(max_chunks, 1), "max_chunks", "an integer of at least 1", max_chunks)
    snapshot = table.snapshot()
    require_chunks(snapshot)
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
            marker=_marker(number),
            legendrank=number,
        )
        for number, group in sorted(groups.items(), reverse=True)  # the largest on top
    ]
    shown = counted(len(points), "chunk")
    if len(points) < found["chunks"]:
        shown = f"{len(points):,} of {found['chunks']:,} chunks, a sample,"
    layout = look(
        f"{name_of(snapshot)}: {shown} by similarity",
        "Near points are similar texts; long distances mean little (t-SNE of the embeddings)",
        height=800,
        xaxis={"visible": False, "constrain": "domain"},
        yaxis={"visible": False, "scaleanchor": "x"},
        legend={"title": {"text": f"Nodes of level {level} (chunks)"}, "itemsizing": "constant"},
        showlegend=True,
    )
    return go.Figure(traces, layout)


def _texts(
    snapshot: Snapshot, points: Sequence[Mapping[str, Any]], parents: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    """Yield what is shown above each point: its title, its parent's title and its text."""
    read = snapshot.columns("id", "title", "text", node_ids=[p["id"] for p in points])
    of = dict(zip(read["id"], zip(read["title"], read["text"], strict=True), strict=True))
    for point in points:
        title, text = of[point["id"]]
        under = [parents[point["parent"]]["title"]] if point["parent"] is not None else []
        above = [f"<b>{label(title)}</b>", *(f"under {label(each)}" for each in under)]
        yield "<br>".join([*above, lines(text)])


def _coloured(levels: Sequence[Mapping[str, int]]) -> int:
    """Return the lowest level whose nodes can all have a colour, or the highest."""
    few = (each["level"] for each in levels if each["nodes"] <= NAMED)
    return next(few, levels[-1]["level"])


def _marker(number: int) -> dict[str, Any]:
    if number == NAMED:
        return {"color": GREY, "size": 5}
    symbol = SYMBOLS[number // len(COLOURS)]
    return {
        "color": COLOURS[number % len(COLOURS)],
        "symbol": symbol,
        "size": 8,
        "line": {"color": "white", "width": 0.5},
    }
