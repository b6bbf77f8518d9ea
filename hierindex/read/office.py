"""Word, PowerPoint, Excel and EPUB files: their Markdown."""

import posixpath
import struct
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from itertools import groupby
from typing import Any, BinaryIO
from urllib.parse import unquote
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile, ZipFile

from hierindex.read.html import MAX_TITLE
from hierindex.read.markdown import markdown_headings
from hierindex.read.text import Reading, UnreadableError
from hierindex.record import TITLE

INSTALL = "needs `pip install 'hierindex[office]'`"
MAX_UNPACKED = 100_000_000  # bytes more than the file has; converters need forty times as much
MAX_CELLS = 10_000_000
OLE = b"\xd0\xcf\x11\xe0"  # begins files of older formats, and encrypted ones
LOCKS = "META-INF/encryption.xml"  # names the parts of a book that are encrypted
WORD_STYLES = "p[style-name='Title'] => h1:fresh"  # beside the headings
INLINE = "a b code del em i img s strong sub sup u".split()  # only their text is read

Convert = Callable[[BinaryIO], tuple[str, dict[str, Any]]]


def _reads(kind: str) -> Callable[[Convert], Callable[[BinaryIO], Reading]]:
    """Make a reader of a function that converts a zip file to Markdown and metadata."""

    def decorate(convert: Convert) -> Callable[[BinaryIO], Reading]:
        @wraps(convert)
        def read(file: BinaryIO) -> Reading:
            if file.read(len(OLE)) == OLE:
                raise UnreadableError("is encrypted, or not in the format of its suffix")
            try:
                with ZipFile(file) as parts:
                    growth = sum(part.file_size - part.compress_size for part in parts.infolist())
                if growth > MAX_UNPACKED:
                    raise UnreadableError(
                        f"grows by {growth:,} bytes when unpacked, more than {MAX_UNPACKED:,}"
                    )
                with warnings.catch_warnings(action="ignore"):  # of what is left out
                    text, metadata = convert(file)
            except ImportError as error:
                raise UnreadableError(INSTALL) from error
            except MALFORMED as error:
                raise UnreadableError(f"cannot be read as {kind}") from error
            return Reading(text, metadata, list(markdown_headings(text)))

        return read

    return decorate


@_reads("Word")
def read_word(file: BinaryIO) -> tuple[str, dict[str, Any]]:
    """Read a Word file without its pictures and comments."""
    import mammoth

    html = mammoth.convert_to_html(file, style_map=WORD_STYLES, convert_image=lambda image: [])
    return _markdown(html.value.replace("↑</a>", "</a>")), {}  # from a note to its place


@_reads("EPUB")
def read_epub(file: BinaryIO) -> tuple[str, dict[str, Any]]:
    """Read the chapters of a book in their order, with its title and authors as metadata."""
    from lxml import etree

    with ZipFile(file) as parts:
        names = set(parts.namelist())

        def root(name: str) -> Any:
            return etree.fromstring(parts.read(name), etree.XMLParser(resolve_entities=False))

        opf = root("META-INF/container.xml").find(".//{*}rootfile").get("full-path")
        package = root(opf)
        items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
        spine = [items.get(ref.get("idref")) for ref in package.iterfind(".//{*}itemref")]
        hrefs = (
            unquote(item.get("href"))
            for item in spine
            if item is not None and "nav" not in item.get("properties", "").split()
        )
        folder = posixpath.dirname(opf)
        chapters = [posixpath.normpath(posixpath.join(folder, href)) for href in hrefs]
        locks = parts.read(LOCKS) if LOCKS in names else b""
        if any(chapter.encode() in locks for chapter in chapters):
            raise UnreadableError("is an encrypted book")
        texts = [
            _markdown(parts.read(chapter))
            for chapter in dict.fromkeys(chapters)
            if chapter in names
        ]
    creators = (element.text or "" for element in package.iterfind(".//{*}creator"))
    about = {TITLE: package.findtext(".//{*}title") or "", "author": ", ".join(creators)}
    metadata = {key: said[:MAX_TITLE] for key, text in about.items() if (said := text.strip())}
    return "\n\n".join(filter(None, texts)), metadata


@_reads("PowerPoint")
def read_powerpoint(file: BinaryIO) -> tuple[str, dict[str, Any]]:
    """Read slides as sections that their titles head, with tables and notes."""
    from pptx import Presentation
    from pptx.exc import PythonPptxError

    blocks = []
    try:
        for i, slide in enumerate(Presentation(file).slides, start=1):
            title = slide.shapes.title
            said = "" if title is None else " ".join(title.text_frame.text.split())
            blocks.append(f"# {said or f'Slide {i}'}")
            rest = (s for s in slide.shapes if title is None or s.shape_id != title.shape_id)
            blocks += _shapes(rest)
            if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame):
                blocks.append(f"Notes: {notes.text}" if notes.text.strip() else "")
    except PythonPptxError as error:
        raise ValueError from error
    return "\n\n".join(filter(str.strip, blocks)).replace("\v", "\n"), {}


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
    """Return a table of Markdown without empty columns; the first row is its header."""
    columns = sorted({i for row in rows for i, cell in enumerate(row) if cell})
    cells = ([" ".join("".join(row[i : i + 1]).split()) for i in columns] for row in rows)
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], f"|{' --- |' * len(columns)}", *lines[1:]])


@_reads("Excel")
def read_excel(file: BinaryIO) -> tuple[str, dict[str, Any]]:
    """Read sheets as sections, with the tables that blank rows separate.

    Of formulas, the last results are read.
    """
    from openpyxl import load_workbook

    blocks, n_cells = [], 0
    for sheet in load_workbook(file, read_only=True, data_only=True, keep_links=False).worksheets:
        blocks.append(f"# {sheet.title}")
        sheet.reset_dimensions()  # of which files may say anything
        rows: list[list[str]] = []
        for row in sheet.iter_rows(values_only=True):
            n_cells += len(row)
            if n_cells > MAX_CELLS:
                raise UnreadableError(f"has more than {MAX_CELLS:,} cells")
            rows.append([*map(_said, row)])
        for blank, group in groupby(rows, lambda row: not any(row)):
            if not blank:
                blocks += _block(list(group))
    return "\n\n".join(blocks), {}


def _block(rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines above a table, and the table."""
    while rows and sum(map(bool, rows[0])) == 1:
        yield "".join(rows.pop(0))
    if rows:
        yield _table(rows)


def _said(value: object) -> str:
    """Return the value of a cell as people write it.

    >>> _said(3.0), _said(0.1 + 0.2), _said(None)
    ('3', '0.3', '')
    """
    if isinstance(value, float):
        return f"{value:.15g}"
    return "" if value is None else str(value).removesuffix(" 00:00:00").strip()


def _markdown(html: str | bytes) -> str:
    """Return the Markdown of HTML, without links, pictures and emphasis."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    class Converter(MarkdownConverter):
        """Numbers the items of a list in linear time."""

        def convert_li(self, el: Any, text: str, parent_tags: object) -> str:
            mark = "- "
            if el.parent is not None and el.parent.name == "ol":
                numbers[id(el.parent)] += 1
                mark = f"{numbers[id(el.parent)]}. "
            return f"{mark}{text.strip()}".replace("\n", "\n" + " " * len(mark)) + "\n"

    numbers: Counter[int] = Counter()
    soup = BeautifulSoup(html, "lxml")
    text: str = Converter(
        heading_style="ATX",
        table_infer_header=True,
        escape_asterisks=False,
        escape_underscores=False,
        strip=INLINE,
    ).convert_soup(soup.body or soup)
    return text.strip()


MALFORMED = (
    *(BadZipFile, EOFError, ExpatError, OSError, SyntaxError, struct.error, zlib.error),
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError),
    *(TypeError, ValueError),
)
"""Exceptions of the converters for malformed files."""
