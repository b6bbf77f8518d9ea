"""Charts and diagrams of Office files as tables and text."""

from collections.abc import Iterator
from typing import Any

from hierindex.read.tables import markdown_table

C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
MOST_POINTS = 10_000  # of a chart


def chart_blocks(root: Any) -> Iterator[str]:
    """Yield the title of a chart, and a table of its categories and values."""
    chart = root.find(f".//{C}chart")
    if chart is None:
        return
    title = _said(chart.find(f"{C}title"))
    axes = [_said(axis) for axis in chart.iterfind(f".//{C}plotArea/*/{C}title")]
    yield ": ".join(filter(None, ["Chart", title, ", ".join(filter(None, axes))]))
    names, columns = list[str](), list[dict[int, str]]()
    labels = dict[int, str]()
    for i, series in enumerate(chart.iter(f"{C}ser"), start=1):
        categories = _points(series, "cat", "xVal")
        if categories and labels and categories != labels:  # points of a scatter chart
            names.append("")
            columns.append(categories)
        labels = labels or categories
        found = " ".join(_points(series, "tx").values()) or _text(series.find(f"{C}tx/{C}v"))
        names.append(found or f"Series {i}")
        columns.append(_points(series, "val", "yVal"))
    rows = sorted({*labels, *(at for column in columns for at in column)})[:MOST_POINTS]
    if rows:
        table = [[labels.get(at, ""), *(column.get(at, "") for column in columns)] for at in rows]
        yield markdown_table([["", *names], *table])


def diagram_lines(root: Any) -> Iterator[str]:
    """Yield the texts of the shapes of a diagram (SmartArt)."""
    for point in root.iter(f"{DIAGRAM}pt"):
        if text := _said(point):
            yield text


def _points(series: Any, *names: str) -> dict[int, str]:
    """Return the values of a series by their index; the levels of categories are joined."""
    found = dict[int, str]()
    for name in names:
        for cache in series.iterfind(f"{C}{name}//*[{C}pt]"):
            for point in cache.iterfind(f"{C}pt"):
                at, text = point.get("idx", ""), _text(point.find(f"{C}v"))
                if at.isdecimal() and len(at) < 10:
                    said = _shown(text, cache.findtext(f"{C}formatCode") or "")
                    found[int(at)] = " ".join(filter(None, [said, found.get(int(at), "")]))
    return found


def _shown(text: str, code: str) -> str:
    """Return a value with its unit."""
    from hierindex.read.number_formats import displayed

    try:
        return displayed(float(text), code)
    except ValueError:
        return text


def _text(element: Any) -> str:
    return "" if element is None else (element.text or "").strip()


def _said(element: Any) -> str:
    """Return the words of a part, in order."""
    if element is None:
        return ""
    said = ("".join(t.text or "" for t in p.iter(f"{A}t")) for p in element.iter(f"{A}p"))
    return " ".join(" ".join(said).split())
