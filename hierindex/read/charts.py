"""Charts and diagrams of Office files as tables and text."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from hierindex.read.number_formats import displayed
from hierindex.read.tables import markdown_table

C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
MOST_POINTS = 10_000  # of a chart


def chart_blocks(root: Any) -> Iterator[str]:
    """Yield the titles of a chart and its axes, and a table of its categories and values."""
    titles = (_said(title) for title in root.iter(f"{C}title"))
    yield ": ".join(["Chart", *filter(None, titles)])
    columns = list[tuple[str, dict[int, str]]]()
    for i, series in enumerate(root.iterfind(f".//{C}plotArea/*/{C}ser"), start=1):
        categories = _points(series, "cat", "xVal")
        if not columns or categories not in ({}, columns[0][1]):  # each x of points
            columns.append(("", categories))
        name = " ".join(_points(series, "tx").values()) or series.findtext(f"{C}tx/{C}v")
        columns.append((name or f"Series {i}", _points(series, "val", "yVal")))
    if rows := sorted({at for _, column in columns for at in column})[:MOST_POINTS]:
        table = [[column.get(at, "") for _, column in columns] for at in rows]
        yield markdown_table([[name for name, _ in columns], *table])


def diagram_lines(root: Any) -> Iterator[str]:
    """Yield the texts of the shapes of a diagram (SmartArt)."""
    yield from filter(None, map(_said, root.iter(f"{DIAGRAM}pt")))


def _points(series: Any, *names: str) -> dict[int, str]:
    """Return the values of a series by their index; the levels of categories are joined."""
    found = defaultdict[int, list[str]](list)
    for cache in (cache for name in names for cache in series.iterfind(f"{C}{name}//*[{C}pt]")):
        code = cache.findtext(f"{C}formatCode") or ""
        for point in cache.iterfind(f"{C}pt"):
            found[int(point.get("idx"))].append(_shown(point.findtext(f"{C}v") or "", code))
    return {at: " ".join(reversed(texts)) for at, texts in found.items()}


def _shown(text: str, code: str) -> str:
    """Return a value with its unit."""
    try:
        return displayed(float(text), code)
    except (OverflowError, ValueError):  # a date beyond the calendar, or no number
        return text.strip()


def _said(element: Any) -> str:
    """Return the words of a part, in order."""
    said = ("".join(t.text or "" for t in p.iter(f"{A}t")) for p in element.iter(f"{A}p"))
    return " ".join(" ".join(said).split())
