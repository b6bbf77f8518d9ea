"""The map of an index."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hierindex.plot.style import (
    COLOURS,
    GREY,
    graph_objects,
    label,
    lines,
    look,
    name_of,
    require_nodes,
)
from hierindex.retrieve.levels import Level
from hierindex.retrieve.map import MOST, chunk_map
from hierindex.store.description import overview
from hierindex.store.generations import on_newest
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import wait_for

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SYMBOLS = ("circle", "diamond", "square")
NAMED = len(COLOURS) * len(SYMBOLS)  # parents that have a colour and a symbol


@on_newest
def plot_map(store: HierarchyStore, level: Level | None = None, max_chunks: int = MOST) -> "Figure":
    """Draw the chunks as points of a plane, similar ones near each other, coloured by parent.

    Parameters
    ----------
    store : HierarchyStore
    level : int or {"top", "documents", "sections", "chunks"}, optional
        Of the parents, of which the 18 with most points have a colour and a symbol; by default,
        the lowest that has no more.
    max_chunks : int
        Points to draw, at most 5,000.

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
    snapshot = store.snapshot()
    require_nodes(snapshot)
    if level is None:
        level = _coloured(wait_for(overview(snapshot))["levels"])
    found = wait_for(chunk_map(snapshot, level, max_chunks))
    points, parents = found["points"], found["parents"]
    read = wait_for(snapshot.columns("id", "title", "text", node_ids=[p["id"] for p in points]))
    texts = {each[0]: each[1:] for each in zip(*(read[k] for k in read), strict=True)}
    groups: dict[int, list[dict[str, Any]]] = {}
    for point in points:
        above = NAMED if point["parent"] is None else min(point["parent"], NAMED)
        groups.setdefault(above, []).append(point)

    def hover(point: dict[str, Any]) -> str:
        title, text = texts[point["id"]]
        under = "" if point["parent"] is None else parents[point["parent"]]["title"]
        heads = [f"<b>{label(title)}</b>", *([f"under {label(under)}"] if under else [])]
        return "<br>".join([*heads, lines(text)])

    others = max(0, len(parents) - NAMED)
    traces = [
        go.Scatter(
            x=[point["x"] for point in group],
            y=[point["y"] for point in group],
            mode="markers",
            name=_name(number, group, parents, others),
            hovertext=[hover(point) for point in group],
            hoverinfo="text",
            marker=_marker(number),
            legendrank=number,
        )
        for number, group in sorted(groups.items(), key=lambda each: (each[0] < NAMED, each[0]))
    ]
    shown = f"{len(points):,} chunks"
    if len(points) < found["chunks"]:
        shown = f"{len(points):,} of {found['chunks']:,} chunks, a sample,"
    layout = look(
        f"{name_of(snapshot)}: {shown} by similarity",
        "Near points are similar texts; long distances mean little (t-SNE of the embeddings)",
        height=800,
        xaxis={"visible": False, "constrain": "domain"},
        yaxis={"visible": False, "scaleanchor": "x"},
        legend={"title": {"text": f"Nodes of level {level} (chunks)"}, "itemsizing": "constant"},
    )
    return go.Figure(traces, layout)


def _coloured(levels: Sequence[Mapping[str, int]]) -> int:
    """Return the lowest level whose nodes can all have a colour, or the highest."""
    few = (each["level"] for each in levels if each["nodes"] <= NAMED)
    return next(few, levels[-1]["level"])


def _name(
    number: int, group: list[dict[str, Any]], parents: list[dict[str, Any]], others: int
) -> str:
    if number < NAMED:
        return f"{label(parents[number]['title'], 36)} ({len(group):,})"
    return f"{others:,} other nodes ({len(group):,})" if others else f"no parent ({len(group):,})"


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
