"""Word, PowerPoint, Excel and EPUB files: their Markdown."""

import posixpath
import struct
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import dropwhile, groupby
from typing import Any, BinaryIO
from urllib.parse import unquote
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile, ZipFile

from hierindex.node import TITLE, Heading
from hierindex.read.markdown import markdown_headings
from hierindex.read.records import BETWEEN, as_block, records_of_table
from hierindex.read.rtf import read_unnamed
from hierindex.read.text import MAX_TITLE, Reading, UnreadableError

MAX_GROWTH = 100_000_000  # bytes; converters need forty times as much memory
MAX_CELLS = 10_000_000
OLE = b"\xd0\xcf\x11\xe0"  # begins files of older formats, and encrypted ones
OLD = {
    ".doc": "is an old Word file; save it as .docx",
    ".ppt": "is an old PowerPoint file; save it as .pptx",
    ".xls": "is an old Excel file; save it as .xlsx",
}
"""Files that are not read, and what to do about it, by suffix."""

LOCKS = "META-INF/encryption.xml"  # names the parts of a book that are encrypted
WORD_STYLES = "p[style-name='Title'] => h1:fresh"  # beside the headings
EDGE = "\0"  # of records: a line end, which markdownify would drop
INLINE = "a b code del em i img s strong sub sup u".split()  # only their text is read


def read_word(file: BinaryIO) -> Reading:
    """Return the Markdown of a Word file, without its pictures and comments."""
    with _unpacked(file, "Word"):
        import mammoth

        html = mammoth.convert_to_html(file, style_map=WORD_STYLES, convert_image=lambda image: [])
        linked = html.value.replace("↑</a>", "</a>")  # from a note to its place
        return _reading(_markdown(linked, guess_headers=True))


def read_epub(file: BinaryIO) -> Reading:
    """Return the Markdown of a book's chapters in their order, and its title and authors."""
    with _unpacked(file, "EPUB") as parts:
        from lxml import etree

        def root(name: str) -> Any:
            return etree.fromstring(parts.read(name), etree.XMLParser(resolve_entities=False))

        path = root("META-INF/container.xml").find(".//{*}rootfile").get("full-path")
        package, folder = root(path), posixpath.dirname(path)
        items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
        names, chapters = set(parts.namelist()), []
        locks = parts.read(LOCKS) if LOCKS in names else b""
        for reference in package.iterfind(".//{*}itemref"):
            item = items.pop(reference.get("idref"), {})
            name = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
            if name not in names or "nav" in item.get("properties", "").split():
                continue
            if name.encode() in locks:
                raise UnreadableError("is an encrypted book")
            chapters.append(_markdown(parts.read(name)))
        authors = ", ".join(name.text or "" for name in package.iterfind(".//{*}creator"))
        about = {TITLE: package.findtext(".//{*}title") or "", "author": authors}
        metadata = {key: value.strip()[:MAX_TITLE] for key, value in about.items() if value.strip()}
        return _reading("\n\n".join(filter(None, chapters)), metadata)


def read_powerpoint(file: BinaryIO) -> Reading:
    """Return the Markdown of slides: sections that their titles head, with tables and notes."""
    with _unpacked(file, "PowerPoint"):
        from pptx import Presentation
        from pptx.exc import PythonPptxError

        try:
            return _sectioned(_slides(Presentation(file).slides))
        except PythonPptxError as error:
            raise ValueError from error


def read_excel(file: BinaryIO) -> Reading:
    """Return the Markdown of sheets: sections with the tables that blank rows separate.

    Of formulas, the last results are read. Long tables become records.
    """
    with _unpacked(file, "Excel"):
        from openpyxl import load_workbook

        sections, n_cells = list[tuple[str, list[str]]](), 0
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        for sheet in book.worksheets:
            sections.append((sheet.title, []))
            sheet.reset_dimensions()  # of which files may say anything
            rows: list[list[str]] = []
            for row in sheet.iter_rows(values_only=True):
                n_cells += len(row)
                if n_cells > MAX_CELLS:
                    raise UnreadableError(f"has more than {MAX_CELLS:,} cells")
                rows.append([*map(_said, row)])
            for blank, group in groupby(rows, lambda row: not any(row)):
                if not blank:
                    sections[-1][1].extend(_block(list(group)))
        title = (book.properties.title or "").strip()[:MAX_TITLE]
        return _sectioned(sections, {TITLE: title} if title else {})


def read_old(suffix: str, file: BinaryIO) -> Reading:
    """Say what to do about a file of an older format; read other files with its suffix as text."""
    if file.read(len(OLE)) == OLE:
        raise UnreadableError(OLD[suffix])
    file.seek(0)
    return read_unnamed(file)


@contextmanager
def _unpacked(file: BinaryIO, kind: str) -> Iterator[ZipFile]:
    """Open a zip file, and say why it cannot be read."""
    if file.read(len(OLE)) == OLE:
        raise UnreadableError("is encrypted, or not in the format of its suffix")
    try:
        with ZipFile(file) as parts, warnings.catch_warnings(action="ignore"):
            growth = sum(part.file_size - part.compress_size for part in parts.infolist())
            if growth > MAX_GROWTH:
                reason = f"grows by {growth:,} bytes when unpacked, more than {MAX_GROWTH:,}"
                raise UnreadableError(reason)
            yield parts
    except ImportError as error:
        raise UnreadableError("needs `pip install 'hierindex[office]'`") from error
    except MALFORMED as error:
        raise UnreadableError(f"cannot be read as {kind}") from error


def _reading(text: str, metadata: dict[str, Any] | None = None) -> Reading:
    return Reading(text, metadata or {}, list(markdown_headings(text)))


def _sectioned(
    sections: Iterable[tuple[str, Iterable[str]]], metadata: dict[str, Any] | None = None
) -> Reading:
    """Return sections with their titles as the only headings, and without blank blocks."""
    blocks, headings, start = list[str](), list[Heading](), 0
    for title, inside in sections:
        headings.append(Heading(1, title[:MAX_TITLE], start))
        for block in (f"# {title}", *filter(str.strip, inside)):
            blocks.append(block)
            start += len(block) + 2
    return Reading("\n\n".join(blocks), metadata or {}, headings)


def _slides(slides: Iterable[Any]) -> Iterator[tuple[str, list[str]]]:
    for i, slide in enumerate(slides, start=1):
        title = slide.shapes.title
        said = "" if title is None else " ".join(title.text_frame.text.split())
        blocks = [*_shapes(shape for shape in slide.shapes if shape != title)]
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame):
            blocks.append(notes.text and f"Notes: {notes.text}")
        yield said or f"Slide {i}", [block.replace("\v", "\n") for block in blocks]


def _shapes(shapes: Iterable[Any]) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):  # a group
            yield from _shapes(shape.shapes)
        elif shape.has_text_frame:
            paragraphs = [p for p in shape.text_frame.paragraphs if p.text.strip()]
            bullet = "- " if len(paragraphs) > 1 else ""
            yield "\n".join(f"{'  ' * p.level}{bullet}{p.text}" for p in paragraphs)
        elif shape.has_table:
            yield _table([[cell.text for cell in row.cells] for row in shape.table.rows])


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown without empty columns, or its records if it is long.

    The first row is its header.
    """
    columns = sorted({i for row in rows for i, cell in enumerate(row) if cell})
    cells = [[" ".join("".join(row[i : i + 1]).split()) for i in columns] for row in rows]
    if records := records_of_table(cells):
        return as_block(records)
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], f"|{' --- |' * len(columns)}", *lines[1:]])


def _block(rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines above a table, and the table."""
    table = list(dropwhile(lambda row: sum(map(bool, row)) == 1, rows))
    yield from map("".join, rows[: len(rows) - len(table)])
    if table:
        yield _table(table)


def _said(value: object) -> str:
    """Return the value of a cell as people write it.

    >>> _said(3.0), _said(0.1 + 0.2), _said(None)
    ('3', '0.3', '')
    """
    if isinstance(value, float):
        return f"{value:.15g}"
    return "" if value is None else str(value).removesuffix(" 00:00:00").strip()


def _markdown(html: str | bytes, *, guess_headers: bool = False) -> str:
    """Return the Markdown of HTML, without links, pictures and emphasis.

    Long tables become records if they have headers, which can be guessed.
    """
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    class Converter(MarkdownConverter):
        """Numbers the items of a list in linear time, and writes long tables as records."""

        def convert_li(self, el: Any, text: str, parent_tags: object) -> str:
            mark = "- "
            if el.parent is not None and el.parent.name == "ol":
                numbers[id(el.parent)] += 1
                mark = f"{numbers[id(el.parent)]}. "
            return f"{mark}{text.strip()}".replace("\n", "\n" + " " * len(mark)) + "\n"

        def convert_table(self, el: Any, text: str, parent_tags: object) -> str:
            rows = [row.find_all(["td", "th"]) for row in el.find_all("tr")]
            named = bool(rows) and all(cell.name == "th" for cell in rows[0])
            is_plain = el.select_one("table, [colspan], [rowspan]") is None
            if is_plain and (named or guess_headers):
                cells = [[" ".join(cell.get_text(" ").split()) for cell in row] for row in rows]
                if records := records_of_table(cells, named=named):
                    text = f"{EDGE}{BETWEEN.join(records)}{EDGE}"
            return f"\n\n{text.strip()}\n\n"

    numbers: Counter[int] = Counter()
    soup = BeautifulSoup(html, "lxml")
    text: str = Converter(
        heading_style="ATX",
        table_infer_header=True,
        escape_asterisks=False,
        escape_underscores=False,
        strip=INLINE,
    ).convert_soup(soup.body or soup)
    return text.strip().replace(EDGE, "\n")


MALFORMED = (
    *(BadZipFile, EOFError, ExpatError, OSError, SyntaxError, struct.error, zlib.error),
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError),
    *(TypeError, ValueError),
)
"""Exceptions of the converters for malformed files."""
