"""PowerPoint files: their Markdown."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from hierindex.node import TITLE
from hierindex.read.charts import DIAGRAM, A, chart_blocks, diagram_lines
from hierindex.read.equations import equation
from hierindex.read.office import left_out, parsed, properties, sectioned, unpacked
from hierindex.read.runs import PLAIN, STRUCK, SUB, SUPER, joined_runs
from hierindex.read.tables import merged, repeated, table_blocks
from hierindex.read.text import MAX_TITLE, Reading

R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
ALTERNATE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
EQUATION = "{http://schemas.microsoft.com/office/drawing/2010/main}m"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
OWN_PLACES = {"title", "dt", "ftr", "sldNum"}  # kinds of placeholders on a master, beside its body
MAX_SPAN = 1000  # columns


def read_powerpoint(file: BinaryIO) -> Reading:
    """Return the Markdown of slides: sections that their titles head, with tables and notes.

    Shapes are read from top to bottom and from left to right; hidden slides are left out.
    """
    with unpacked(file, "PowerPoint") as parts:
        from pptx import Presentation
        from pptx.exc import PythonPptxError

        metadata = properties(parts)
        unread = Counter[str]()
        unread["comment"] = sum(
            parts.read(name).count(b"<p:cm ") + parts.read(name).count(b"<p188:cm ")
            for name in parts.namelist()
            if name.startswith("ppt/comments/")
        )
        try:
            slides = Presentation(file).slides
            reading = sectioned(_Slides(unread).read(slides))
        except PythonPptxError as error:
            raise ValueError from error
        if reading.headings:
            metadata.setdefault(TITLE, reading.headings[0].title[:MAX_TITLE])
        return reading._replace(metadata=metadata | left_out(unread))


class _Slides:
    """Reads slides, and counts what is left out."""

    def __init__(self, unread: Counter[str]) -> None:
        self._unread = unread
        self._charts = set[Any]()

    def read(self, slides: Iterable[Any]) -> Iterator[tuple[str, list[str]]]:
        for i, slide in enumerate(slides, start=1):
            if slide._element.get("show") in ("0", "false"):
                self._unread["hidden slide"] += 1
                continue
            _choose(slide._element)
            title = slide.shapes.title
            said = "" if title is None else " ".join(self._text(title.text_frame).split())
            shapes = [shape for shape in slide.shapes if shape != title]
            blocks = [*self._shapes(shapes, slide)]
            if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame):
                blocks.append(notes.text and f"Notes: {notes.text}")
            yield said or f"Slide {i}", [block.replace("\v", "\n") for block in blocks]

    def _shapes(self, shapes: Iterable[Any], slide: Any) -> Iterator[str]:
        for shape in _in_reading_order(shapes, slide.slide_layout):
            element = shape._element
            if hasattr(shape, "shapes"):  # a group
                yield from self._shapes(shape.shapes, slide)
            elif shape.has_text_frame:
                lines = [(p.level, self._said(p._p)) for p in shape.text_frame.paragraphs]
                lines = [(level, line) for level, line in lines if line]
                bullet = "- " if len(lines) > 1 else ""
                yield "\n".join(f"{'  ' * level}{bullet}{line}" for level, line in lines)
            elif shape.has_table:
                yield from table_blocks([*self._rows(shape.table)])
            elif shape.has_chart:
                if shape.chart_part not in self._charts:
                    self._charts.add(shape.chart_part)
                    yield from chart_blocks(shape.chart._chartSpace)
            elif (diagram := element.find(f".//{DIAGRAM}relIds")) is not None:
                yield from self._diagram(slide.part, diagram.get(f"{R}dm"))
            elif element.tag.endswith("}pic"):
                self._unread["picture"] += 1

    def _diagram(self, part: Any, name: str | None) -> Iterator[str]:
        if name in part.rels and not part.rels[name].is_external:
            yield from diagram_lines(parsed(part.rels[name].target_part.blob))

    def _rows(self, table: Any) -> Iterator[list[str]]:
        above: list[str] = []
        for row in table.rows:
            cells: list[str] = []
            for cell in row.cells:
                if cell._tc.hMerge:
                    continue
                is_below, width = cell._tc.vMerge, min(cell._tc.gridSpan, MAX_SPAN)
                is_merged = width > 1 or cell._tc.rowSpan > 1
                text = self._text(cell.text_frame, " / " if is_merged else " ")
                if is_below and not text and len(cells) < len(above):
                    text = repeated(above[len(cells)])
                cells += merged(text, width, is_below=is_below)
            above = cells
            yield cells

    def _text(self, frame: Any, between: str = " ") -> str:
        return between.join(filter(None, (self._said(p._p) for p in frame.paragraphs)))

    def _said(self, paragraph: Any) -> str:
        return joined_runs(_runs(paragraph), self._unread)


def _runs(paragraph: Any) -> Iterator[tuple[str, str]]:
    for child in paragraph:
        if child.tag == f"{A}br":
            yield PLAIN, "\n"
        elif child.tag == EQUATION:
            yield PLAIN, equation(child)
        elif child.tag in (f"{A}r", f"{A}fld"):
            style = child.find(f"{A}rPr")
            style = {} if style is None else style.attrib
            raised = style.get("baseline", "0")
            kind = SUB if raised.startswith("-") else SUPER if raised.strip("0%") else PLAIN
            is_struck = style.get("strike", "noStrike") != "noStrike"
            yield STRUCK if is_struck else kind, child.findtext(f"{A}t") or ""


def _choose(element: Any) -> None:
    """Replace alternatives, which python-pptx ignores, by the first of each."""
    for alternatives in [*element.iter(ALTERNATE)]:
        parent = alternatives.getparent()
        at = parent.index(alternatives)
        for chosen in alternatives[:1]:
            parent[at:at] = [*chosen]
        parent.remove(alternatives)


def _in_reading_order(shapes: Iterable[Any], layout: Any) -> Iterator[Any]:
    """Yield shapes from top to bottom, and from left to right where they stand beside each other.

    A shape stands beside another if its top is above the other's middle.
    """
    placed = [(_place(shape._element, layout), shape) for shape in shapes]
    rows, middle = list[list[tuple[int, Any]]](), 0.0
    for (top, left, height), shape in sorted(placed, key=lambda each: each[0][:2]):
        if not rows or top >= middle:
            rows.append([])
            middle = top + height / 2
        rows[-1].append((left, shape))
    for row in rows:
        yield from (shape for _, shape in sorted(row, key=lambda each: each[0]))


def _place(element: Any, layout: Any) -> tuple[int, int, int]:
    """Return the top, the left and the height of a shape, which a layout or its master may say."""
    offset, inherited = element.find(f".//{A}off"), element.find(f".//{P}ph")
    for part in (layout, layout.slide_master):
        if offset is not None or inherited is None:
            break
        found = _placeholder(part._element, inherited, by_kind=part is not layout)
        if found is not None:
            offset, inherited = found.find(f".//{A}off"), found.find(f".//{P}ph")
    size = None if offset is None else offset.getnext()
    if size is None:
        return 0, 0, 0
    return int(offset.get("y", 0)), int(offset.get("x", 0)), int(size.get("cy", 0))


def _placeholder(page: Any, of: Any, *, by_kind: bool) -> Any:
    """Return the shape of a layout or master from which a placeholder has its place."""
    for shape in page.iter(f"{P}sp"):
        found = shape.find(f".//{P}ph")
        if found is None:
            continue
        if by_kind and _kind(found) == _kind(of):
            return shape
        if not by_kind and found.get("idx", "0") == of.get("idx", "0"):
            return shape
    return None


def _kind(placeholder: Any) -> str:
    kind = str(placeholder.get("type", "obj"))
    return {"ctrTitle": "title"}.get(kind, kind if kind in OWN_PLACES else "body")
