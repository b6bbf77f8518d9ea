"""PowerPoint files as Markdown."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from hierindex.read.marks import RunKind, equation, joined_runs
from hierindex.read.office import DRAWINGS, A, Block, as_reading, choose, drawn, parsed, unpacked
from hierindex.read.tables import merge, table_blocks
from hierindex.read.text import Reading

DEEPEST = 8  # level of a point, as in PowerPoint
EQUATION = "{http://schemas.microsoft.com/office/drawing/2010/main}m"


def read_powerpoint(file: BinaryIO) -> Reading:
    """Return the slides as Markdown: sections headed by the slides' titles, with tables and notes.

    Shapes are read from top to bottom and from left to right; hidden slides are left out.
    """
    with unpacked(file, "PowerPoint") as parts:
        from pptx import Presentation
        from pptx.exc import PythonPptxError

        unread = Counter[str]()
        try:
            blocks = [*_slides(Presentation(file).slides, unread)]
        except PythonPptxError as error:
            raise ValueError from error
        return as_reading(parts, blocks, unread, title=blocks[0].text if blocks else "")


def _slides(slides: Iterable[Any], unread: Counter[str]) -> Iterator[Block]:
    """Yield the blocks of slides, and count the omitted parts."""
    for i, slide in enumerate(slides, start=1):
        if slide._element.get("show") in ("0", "false"):
            unread["hidden slide"] += 1
            continue
        choose(slide._element)
        title = slide.shapes.title
        said = "" if title is None else " ".join(_text(title.text_frame, unread).split())
        yield Block(said or f"Slide {i}", 1)
        shapes = [shape for shape in slide.shapes if shape != title]
        yield from map(Block, _shapes(shapes, slide.part, unread))
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame):
            yield Block(notes.text and f"Notes: {notes.text}".replace("\v", "\n"))


def _shapes(shapes: Iterable[Any], part: Any, unread: Counter[str]) -> Iterator[str]:
    for shape in _in_reading_order(shapes):
        if hasattr(shape, "shapes"):  # a group
            yield from _shapes(shape.shapes, part, unread)
        elif shape.has_text_frame:
            paragraphs = shape.text_frame.paragraphs
            lines = [(min(p.level, DEEPEST), _said(p, unread)) for p in paragraphs]
            lines = [(level, line) for level, line in lines if line]
            bullet = "- " if len(lines) > 1 else ""
            yield "\n".join(f"{'  ' * level}{bullet}{line}" for level, line in lines)
        elif shape.has_table:
            yield from table_blocks(_rows(shape.table, unread))
        elif (drawing := next(shape._element.iter(*DRAWINGS), None)) is not None:
            data = part.rels.get(drawing.get(DRAWINGS[drawing.tag]))
            if data is not None and not data.is_external:
                yield from drawn(parsed(data.target_part.blob))


def _rows(table: Any, unread: Counter[str]) -> list[list[str]]:
    cells = [[*row.cells] for row in table.rows]
    rows = [[_text(cell.text_frame, unread, cell.is_merge_origin) for cell in row] for row in cells]
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            if cell.is_merge_origin:
                right = min(j + cell.span_width, len(row))
                merge(rows, i, j, i + cell.span_height, right)
    return rows


def _text(frame: Any, unread: Counter[str], is_merged: bool = False) -> str:
    between = " / " if is_merged else " "
    return between.join(filter(None, (_said(each, unread) for each in frame.paragraphs)))


def _said(paragraph: Any, unread: Counter[str]) -> str:
    return joined_runs(_runs(paragraph._p), unread)


def _runs(paragraph: Any) -> Iterator[tuple[RunKind, str]]:
    for child in paragraph:
        if child.tag == f"{A}br":
            yield RunKind.PLAIN, "\n"
        elif child.tag == EQUATION:
            yield RunKind.PLAIN, "".join(map(equation, child))
        elif child.tag in (f"{A}r", f"{A}fld"):
            style = child.find(f"{A}rPr")
            style = {} if style is None else style.attrib
            raised = style.get("baseline", "0")
            kind = RunKind.SUPER if raised.strip("0%") else RunKind.PLAIN
            if style.get("strike", "noStrike") != "noStrike":
                kind = RunKind.STRUCK
            elif raised.startswith("-"):
                kind = RunKind.SUB
            yield kind, child.findtext(f"{A}t") or ""


def _in_reading_order(shapes: Iterable[Any]) -> Iterator[Any]:
    """Yield shapes from top to bottom, and from left to right where they stand beside each other.

    A shape stands beside another if its top is above the other's middle.
    """
    rows, middle = list[list[tuple[int, Any]]](), 0.0
    placed = [(shape.top or 0, shape.left or 0, shape) for shape in shapes]
    for top, left, shape in sorted(placed, key=lambda each: each[:2]):
        if not rows or top >= middle:
            rows.append([])
            middle = top + (shape.height or 0) / 2
        rows[-1].append((left, shape))
    for row in rows:
        yield from (shape for _, shape in sorted(row, key=lambda each: each[0]))
