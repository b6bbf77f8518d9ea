"""The report of an evaluation: as a table and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


class Row(NamedTuple):
    """The mean of a measure over the questions of a kind, for one retrieval method.

    `budget` is in tokens, None for a measure of rankings. The mean is over `questions` questions in
    `groups` groups; `low` and `high` are the ends of its 95% interval. `difference` is the mean
    difference to the baseline `Report.against`, paired by question, with its interval; None for the
    baseline itself.
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
    against : str
        The baseline that the others are compared with.
    rows : list[Row]
    notes : list[str]
        What was left out, and why.
    seconds : float
    """

    against: str
    rows: list[Row]
    notes: list[str]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name, and the rows as dicts."""
        return {**asdict(self), "rows": [row._asdict() for row in self.rows]}

    def __str__(self) -> str:
        return table(self.to_json())


def table(report: Mapping[str, Any], width: int | None = None) -> str:
    """Format the dict of `Report.to_json`: a Markdown table for each kind of question.

    A cell has the mean, and the 95% interval of its difference to the baseline. A table wider
    than `width` columns is split into several tables with fewer measures.
    """
    blocks = []
    for data, kind in dict.fromkeys((row["data"], row["kind"]) for row in report["rows"]):
        rows = [row for row in report["rows"] if (row["data"], row["kind"]) == (data, kind)]
        n_questions, n_groups = (max(row[n] for row in rows) for n in ("questions", "groups"))
        head = f"{data}, {kind}".removesuffix(", ")
        blocks.append(
            f"{head}: {n_questions:,} questions, {n_groups:,} groups\n\n{_cells(rows, width)}"
        )
    told = f"[low, high]: 95% interval of the difference to {report['against']}."
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
