"""PowerPoint files: their Markdown."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from hierindex.node import TITLE
from hierindex.read.charts import DIAGRAM, A, chart_blocks, diagram_lines
from hierindex.read.equations import equation
from hierindex.read.office import left_out, parsed, properties, sectioned, unpacked
from hierindex.read.scripts import PLAIN, SUB, SUPER, with_scripts
from hierindex.read.tables import Cell, merged, repeated, table_blocks
from hierindex.read.text import MAX_TITLE, Reading

R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
ALTERNATE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
EQUATION = "{http://schemas.microsoft.com/office/drawing/2010/main}m"
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

    def read(self, slides: Iterable[Any]) -> Iterator[tuple[str, list[str]]]:
        for i, slide in enumerate(slides, start=1):
            if slide._element.get("show") in ("0", "false"):
                self._unread["hidden slide"] += 1
                continue
            _choose(slide._element)
            title = slide.shapes.title
            said = "" if title is None else " ".join(self._text(title.text_frame).split())
            shapes = [shape for shape in slide.shapes if shape != title]
            blocks = [*self._shapes(shapes, slide.part)]
            if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame):
                blocks.append(notes.text and f"Notes: {notes.text}")
            yield said or f"Slide {i}", [block.replace("\v", "\n") for block in blocks]

    def _shapes(self, shapes: Iterable[Any], part: Any) -> Iterator[str]:
        for shape in _in_reading_order(shapes):
            element = shape._element
            if hasattr(shape, "shapes"):  # a group
                yield from self._shapes(shape.shapes, part)
            elif shape.has_text_frame:
                lines = [(p.level, self._said(p._p)) for p in shape.text_frame.paragraphs]
                lines = [(level, line) for level, line in lines if line]
                bullet = "- " if len(lines) > 1 else ""
                yield "\n".join(f"{'  ' * level}{bullet}{line}" for level, line in lines)
            elif shape.has_table:
                yield from table_blocks([*self._rows(shape.table)])
            elif shape.has_chart:
                yield from chart_blocks(shape.chart._chartSpace)
            elif (diagram := element.find(f".//{DIAGRAM}relIds")) is not None:
                yield from self._diagram(part, diagram.get(f"{R}dm"))
            elif element.tag.endswith("}pic"):
                self._unread["picture"] += 1

    def _diagram(self, part: Any, name: str | None) -> Iterator[str]:
        if name in part.rels and not part.rels[name].is_external:
            yield from diagram_lines(parsed(part.rels[name].target_part.blob))

    def _rows(self, table: Any) -> Iterator[list[Cell]]:
        above: list[Cell] = []
        for row in table.rows:
            cells: list[Cell] = []
            for cell in row.cells:
                if cell._tc.hMerge:
                    continue
                is_below, width = cell._tc.vMerge, min(cell._tc.gridSpan, MAX_SPAN)
                is_merged = width > 1 or cell._tc.rowSpan > 1
                text = self._text(cell.text_frame, " / " if is_merged else " ")
                if is_below and not text and len(cells) < len(above):
                    text = repeated(above[len(cells)].text)
                cells += merged(text, width, is_below=is_below)
            above = cells
            yield cells

    def _text(self, frame: Any, between: str = " ") -> str:
        return between.join(filter(None, (self._said(p._p) for p in frame.paragraphs)))

    def _said(self, paragraph: Any) -> str:
        return with_scripts(self._pieces(paragraph)).strip()

    def _pieces(self, paragraph: Any) -> Iterator[tuple[str, str]]:
        for child in paragraph:
            if child.tag == f"{A}br":
                yield PLAIN, "\n"
            elif child.tag == EQUATION:
                yield PLAIN, equation(child)
            elif child.tag in (f"{A}r", f"{A}fld"):
                style = child.find(f"{A}rPr")
                style = {} if style is None else style.attrib
                if style.get("strike", "noStrike") != "noStrike":
                    self._unread["passage of struck text"] += 1
                    continue
                raised = style.get("baseline", "0")
                kind = SUB if raised.startswith("-") else SUPER if raised.strip("0%") else PLAIN
                yield kind, child.findtext(f"{A}t") or ""


def _choose(element: Any) -> None:
    """Replace alternatives, which python-pptx ignores, by the first of each."""
    for alternatives in [*element.iter(ALTERNATE)]:
        parent = alternatives.getparent()
        at = parent.index(alternatives)
        for chosen in alternatives[:1]:
            parent[at:at] = [*chosen]
        parent.remove(alternatives)


def _in_reading_order(shapes: Iterable[Any]) -> Iterator[Any]:
    """Yield shapes from top to bottom, and from left to right where they stand beside each other.

    A shape stands beside another if its top is above the other's middle.
    """
    rows, middle = list[list[Any]](), 0.0
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        if not rows or (shape.top or 0) >= middle:
            rows.append([])
            middle = (shape.top or 0) + (shape.height or 0) / 2
        rows[-1].append(shape)
    for row in rows:
        yield from sorted(row, key=lambda shape: shape.left or 0)
