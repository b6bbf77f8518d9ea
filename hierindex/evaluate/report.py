"""The report of an evaluation: as a table, as JSON and as a plot."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hierindex.core.arguments import require
from hierindex.errors import InputError


class Row(NamedTuple):
    """The mean of a measure over the questions of a kind, by one way to retrieve.

    `budget` is in tokens, None for a measure of rankings. `questions` and `groups` count what the
    mean is over. `low` and `high` are the ends of its 95% interval. `difference` is the mean
    difference to the way that the report is `against`, paired by question, with its interval;
    None for that way itself.
    """

    data: str
    kind: str
    measure: str
    budget: int | None
    way: str
    questions: int
    groups: int
    mean: float
    low: float
    high: float
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None


@dataclass(frozen=True)
class Report:
    """The result of `evaluate`.

    Parameters
    ----------
    part : str
    against : str
        The way that the others are compared with.
    rows : list[Row]
    notes : list[str]
        What was left out, and why.
    seconds : float
    """

    part: str
    against: str
    rows: list[Row]
    notes: list[str]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name, and the rows as dicts."""
        return {**asdict(self), "rows": [row._asdict() for row in self.rows]}

    def __str__(self) -> str:
        return table(self.to_json())

    def plot(self, path: str | Path) -> None:
        """Draw each measure that has several budgets against them, as PNG, SVG or PDF.

        Raises
        ------
        InputError
            If there is no such measure, or the file cannot be written.
        """
        check_plot(path, [row.budget for row in self.rows if row.budget is not None])
        from matplotlib.figure import Figure

        panels: dict[str, dict[str, list[tuple[int, float]]]] = {}
        for row in self.rows:
            if row.budget is not None:
                head = f"{row.data}, {row.kind}: {row.measure}".replace(", :", ":")
                panels.setdefault(head, {}).setdefault(row.way, []).append((row.budget, row.mean))
        figure = Figure(figsize=(9, 5 * len(panels)), layout="constrained")
        columns = figure.subplots(len(panels), squeeze=False)[:, 0]
        for axes, (head, lines) in zip(columns, panels.items(), strict=True):
            for way, points in lines.items():
                axes.plot(*zip(*sorted(points), strict=True), marker="o", label=way)
            axes.set(title=head, xlabel="tokens", ylabel="mean")
            axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
        try:
            figure.savefig(path)
        except (OSError, ValueError) as error:
            raise InputError(f"The plot cannot be written to {path}: {error}.") from error


def check_plot(path: str | Path, budgets: Sequence[int]) -> None:
    """Raise InputError if measures at these budgets cannot be plotted, or not in this file."""
    path, several = Path(path), sorted({*budgets})
    require(len(several) > 1, "budgets", "two or more for a plot", several)
    known = path.suffix.lower() in (".png", ".svg", ".pdf")
    require(known, "A plot", "a PNG, SVG or PDF file", str(path))
    if not path.parent.is_dir():
        raise InputError(f"The plot cannot be written to {path}: there is no such folder.")


def table(report: Mapping[str, Any], width: int | None = None) -> str:
    """Format what `Report.to_json` returns: a Markdown table for each kind of question.

    A cell has the mean, and the 95% interval of its difference to the way `against`. A table that
    is wider than `width` columns is printed as several, of some measures each.
    """
    blocks = []
    for data, kind in dict.fromkeys((row["data"], row["kind"]) for row in report["rows"]):
        rows = [row for row in report["rows"] if (row["data"], row["kind"]) == (data, kind)]
        n_questions, n_groups = (max(row[n] for row in rows) for n in ("questions", "groups"))
        head = f"{data}, {kind}".removesuffix(", ")
        blocks.append(
            f"{head}: {n_questions:,} questions, {n_groups:,} groups\n\n{_cells(rows, width)}"
        )
    told = f"Part: {report['part']}. [low, high]: 95% of the difference to {report['against']}."
    return "\n\n".join([*blocks, told, *report["notes"]])


def _cells(rows: Sequence[Mapping[str, Any]], width: int | None) -> str:
    columns = list(dict.fromkeys((row["measure"], row["budget"]) for row in rows))
    cells = {(row["way"], row["measure"], row["budget"]): _cell(row) for row in rows}
    heads = [m if budget is None else f"{m} at {budget:,}" for m, budget in columns]
    ways = dict.fromkeys(row["way"] for row in rows)
    body = [[way, *(cells.get((way, *column), "") for column in columns)] for way in ways]
    of_ways, *others = ([*column] for column in zip(["way", *heads], *body, strict=True))
    tables, room = list[list[list[str]]](), 0
    for column in others:
        taken = max(map(len, column)) + len(" | ")
        if not tables or (width is not None and taken > room):
            tables.append([of_ways])
            room = (width or 0) - max(map(len, of_ways)) - len("|  |")
        tables[-1].append(column)
        room -= taken
    return "\n\n".join(map(_markdown, tables))


def _markdown(columns: Sequence[Sequence[str]]) -> str:
    """Format columns, each with its head, as a Markdown table."""
    widths = [max(map(len, column)) for column in columns]
    head, *body = zip(*columns, strict=True)
    lines = [head, ["-" * width for width in widths], *body]
    padded = ([c.ljust(w) for c, w in zip(line, widths, strict=True)] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def _cell(row: Mapping[str, Any]) -> str:
    if row["difference"] is None:
        return f"{row['mean']:.3f}"
    return f"{row['mean']:.3f} [{row['difference_low']:+.3f}, {row['difference_high']:+.3f}]"
