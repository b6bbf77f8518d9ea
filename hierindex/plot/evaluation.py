"""The report of an evaluation, as means with intervals."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from hierindex.errors import InputError
from hierindex.plot.style import COLOURS, GREY, PALE, graph_objects, label, look

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BETTER, WORSE = COLOURS[0], COLOURS[4]
ROW, PANEL = 22, 110  # pixels of a way, and of a panel's head and axis


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
    rows, against = read["rows"], read["against"]
    sets = [*dict.fromkeys((row["data"], row["kind"]) for row in rows)]
    measures = [*dict.fromkeys((row["measure"], row["budget"]) for row in rows)]
    ways = [*dict.fromkeys(row["way"] for row in rows)]
    height = ROW * len(ways) + PANEL
    drawn = make_subplots(
        len(sets),
        len(measures),
        shared_yaxes=True,
        column_titles=[_head(*measure) for measure in measures],
        row_titles=[label(", ".join(filter(None, each)), 40) for each in sets],
        horizontal_spacing=0.02,
        vertical_spacing=min(0.2, 50 / (height * len(sets))) if len(sets) > 1 else 0,
    )
    for r, of_set in enumerate(sets, 1):
        for c, of_measure in enumerate(measures, 1):
            cells = [
                row
                for row in rows
                if (row["data"], row["kind"]) == of_set
                and (row["measure"], row["budget"]) == of_measure
            ]
            if not cells:
                drawn.update_xaxes(visible=False, row=r, col=c)
                continue
            drawn.add_trace(_means(go, cells), r, c)
            for row in cells:
                if row["way"] == against:
                    drawn.add_vline(row["mean"], line={"color": GREY, "width": 1}, row=r, col=c)
    drawn.update_xaxes(gridcolor=PALE, zeroline=False, nticks=5, tickformat=".2~f")
    drawn.update_yaxes(
        categoryorder="array", categoryarray=[label(way) for way in ways[::-1]], automargin=True
    )
    layout = look(
        f"Means of {len(ways)} ways with 95% intervals, {label(read.get('part', 'all'))} questions",
        f"Blue is better and orange worse than {label(against)}, question by question, by more "
        "than chance; the line is its mean",
        height=height * len(sets) + PANEL,
        width=170 + max(560, 220 * len(measures)),
    )
    return drawn.update_layout(layout | {"margin": {"l": 20, "r": 60, "t": 130, "b": 40}})


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


def _head(measure: str, budget: int | None) -> str:
    return label(measure) if budget is None else f"{label(measure)}<br>at {budget:,} tokens"
