"""The report of an evaluation, as means with intervals."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from hierindex.errors import InputError
from hierindex.plot.style import COLOURS, GREY, PALE, graph_objects, label, look

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BETTER, WORSE = COLOURS[0], COLOURS[4]
OF_PANEL = ("data", "kind", "measure", "budget")
COLUMNS = 4  # panels side by side
WAY, BESIDE, HEAD = 22, 90, 140  # pixels of a way, between panels, and above them


class Reported(Protocol):
    """What has an evaluation's report as JSON values: `hierindex.evaluate.Report`."""

    def to_json(self) -> dict[str, Any]:
        """Return what `hierindex evaluate --json` prints."""
        ...


def plot_evaluation(report: Reported | Mapping[str, Any]) -> "Figure":
    """Draw the means of each measure with their 95% intervals, by way and by set of questions.

    A mean is blue or orange if the whole interval of its difference to the way that the report is
    `against`, paired by question, is above or below 0; otherwise it is grey. That way's own mean
    is a line.

    Parameters
    ----------
    report : Report or mapping
        What `hierindex.evaluate.evaluate` returns, or what `hierindex evaluate --json` prints.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If it is no report, it has no rows, or Plotly is not installed.
    """
    go = graph_objects()
    from plotly.subplots import make_subplots

    read = report if isinstance(report, Mapping) else report.to_json()
    if not read.get("rows") or "against" not in read:
        raise InputError("The report has no figures: there is nothing to plot.")
    panels: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in read["rows"]:
        panels.setdefault(tuple(row[key] for key in OF_PANEL), []).append(row)
    ways = [*dict.fromkeys(row["way"] for row in read["rows"])]
    against, n_columns = read["against"], min(COLUMNS, len(panels))
    n_rows = -(-len(panels) // n_columns)
    height = WAY * len(ways) + BESIDE
    drawn = make_subplots(
        n_rows,
        n_columns,
        shared_yaxes=True,
        subplot_titles=[_head(*panel) for panel in panels],
        horizontal_spacing=0.03,
        vertical_spacing=BESIDE / (height * n_rows),
    )
    for i, rows in enumerate(panels.values()):
        place = {"row": 1 + i // n_columns, "col": 1 + i % n_columns}
        drawn.add_trace(_means(go, rows), **place)
        for row in rows:
            if row["way"] == against:
                drawn.add_vline(
                    row["mean"], line={"color": GREY, "width": 1}, layer="below", **place
                )
        left = drawn.get_subplot(place["row"], place["col"]).xaxis.domain[0]
        drawn.layout.annotations[i].update(x=left, xanchor="left", align="left", font={"size": 13})
    drawn.update_xaxes(gridcolor=PALE, zeroline=False, nticks=5)
    order = {"categoryorder": "array", "categoryarray": [label(way) for way in ways[::-1]]}
    drawn.update_yaxes(**order, gridcolor=PALE, automargin=True, ticklen=4, tickcolor="white")
    layout = look(
        f"Means of {len(ways)} ways with 95% intervals (part: {label(read.get('part', 'all'))})",
        f"Blue is better and orange is worse than {label(against)} by more than chance, question "
        "by question; the line is its mean",
        height=height * n_rows + HEAD,
    )
    return drawn.update_layout(layout | {"margin": {"l": 20, "r": 20, "t": HEAD, "b": 40}})


def _means(go: Any, rows: list[Mapping[str, Any]]) -> Any:
    means = [row["mean"] for row in rows]
    return go.Scatter(
        x=means,
        y=[label(row["way"]) for row in rows],
        mode="markers",
        marker={"color": [_colour(row) for row in rows], "size": 8},
        error_x={
            "array": [row["high"] - row["mean"] for row in rows],
            "arrayminus": [row["mean"] - row["low"] for row in rows],
            "color": "#888888",
            "thickness": 1,
            "width": 0,
        },
        hovertext=[_told(row) for row in rows],
        hoverinfo="text",
        showlegend=False,
    )


def _colour(row: Mapping[str, Any]) -> str:
    if row["difference"] is None or row["difference_low"] <= 0 <= row["difference_high"]:
        return "#777777"
    return BETTER if row["difference_low"] > 0 else WORSE


def _told(row: Mapping[str, Any]) -> str:
    told = f"<b>{label(row['way'])}</b><br>{row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    if row["difference"] is not None:
        apart = f"[{row['difference_low']:+.3f}, {row['difference_high']:+.3f}]"
        told += f"<br>difference {row['difference']:+.3f} {apart}"
    return f"{told}<br>{row['questions']:,} questions, {row['groups']:,} groups"


def _head(data: str, kind: str, measure: str, budget: int | None) -> str:
    tokens = "" if budget is None else f" at {budget:,} tokens"
    return f"{label(f'{data}, {kind}'.removesuffix(', '), 40)}<br>{label(measure, 30)}{tokens}"
