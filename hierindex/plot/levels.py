"""The levels of a tree, side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hierindex.plot.style import counted, graph_objects, look, name_of, require_chunks, shades
from hierindex.store.description import overview
from hierindex.store.generations import on_newest
from hierindex.store.prefilter import SUMMARIES
from hierindex.store.snapshot import Snapshot
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import wait_for

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@on_newest
def plot_levels(store: HierarchyStore) -> "Figure":
    """Draw the nodes and tokens of each level, and the mean number of children of its nodes.

    A node that passed up counts at each level that it belongs to, as in `info`; its children count
    at its own level.

    Parameters
    ----------
    store : HierarchyStore

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If the index is empty or Plotly is not installed.
    """
    go = graph_objects()
    from plotly.subplots import make_subplots

    snapshot = store.snapshot()
    require_chunks(snapshot)
    shown = wait_for(overview(snapshot))
    numbers = [each["level"] for each in shown["levels"]]
    children = _children(snapshot)
    means = [children[n][0] if n in children else None for n in numbers]
    panels: dict[str, tuple[Sequence[float | None], list[str]]] = {
        "nodes": _counts([each["nodes"] for each in shown["levels"]]),
        "tokens": _counts([each["tokens"] for each in shown["levels"]]),
        "children of a node, mean (range)": (means, [children.get(n, (0, ""))[1] for n in numbers]),
    }
    drawn = make_subplots(
        cols=len(panels), shared_yaxes=True, subplot_titles=[*panels], horizontal_spacing=0.03
    )
    for column, (values, texts) in enumerate(panels.values(), 1):
        bars = go.Bar(
            x=values,
            y=[f"level {n}" for n in numbers],
            text=texts,
            orientation="h",
            textposition="outside",
            cliponaxis=False,
            hoverinfo="skip",
            marker={"color": shades(len(numbers))},
            showlegend=False,
        )
        drawn.add_trace(bars, 1, column)
        longest = max((each for each in values if each), default=1)
        drawn.update_xaxes(visible=False, range=[0, 1.4 * longest], col=column)
        drawn.layout.annotations[column - 1].update(
            x=drawn.get_subplot(1, column).xaxis.domain[0], xanchor="left", font={"size": 13}
        )
    drawn.update_yaxes(ticklen=8, tickcolor="white", automargin=True)
    layout = look(
        f"{name_of(snapshot)}: {counted(shown['documents'], 'document')} in "
        f"{counted(len(numbers), 'level')}",
        "Level 0 is the chunks; a node that passed up counts at each of its levels",
        height=200 + 40 * len(numbers),
        bargap=0.25,
    )
    return drawn.update_layout(layout | {"margin": {"l": 20, "r": 20, "t": 120, "b": 20}})


def _counts(values: list[int]) -> tuple[list[int], list[str]]:
    return values, [f"{value:,}" for value in values]


def _children(snapshot: Snapshot) -> dict[int, tuple[float, str]]:
    """Return the mean number of children of a level's nodes, and a text with the range."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = wait_for(snapshot.select("level", "child_ids", where=SUMMARIES))
    counts = pa.table({"level": rows["level"], "n": pc.list_value_length(rows["child_ids"])})
    found = counts.group_by("level").aggregate([("n", "min"), ("n", "mean"), ("n", "max")])
    told = dict[int, tuple[float, str]]()
    for each in found.to_pylist():
        least, mean, most = (each[f"n_{kind}"] for kind in ("min", "mean", "max"))
        told[each["level"]] = mean, f"{mean:.1f} ({least} to {most})" if least < most else f"{most}"
    return told
