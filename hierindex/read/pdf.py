"""PDF files: the text of their pages, without running heads and dot leaders."""

import ctypes
import logging
import os
import re
from collections import Counter
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO

from hierindex.node import PAGE_BREAK, PAGE_LABELS, PAGES, TITLE, Heading
from hierindex.read.pdf_headings import Line, Outlined, Placed, font_headings, outline_headings
from hierindex.read.text import HEAD, MAX_TITLE, Reading, UnreadableError

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfTextPage

EDGE = 3  # outermost lines of a page that may be running heads or feet
RECURRING = 3  # pages
SHARE = 1 / 3  # of the pages with a line at a place, on which it recurs if it is a running head
LEADERS = re.compile(
    r"(?<=[^ .·…]) *(?:(?:[.·…] ?){4,}\d+|(?:[.·…] ?){5,}[ivxlcdm]*)$", re.I
)  # of tables of contents, with the page number
BOLD = re.compile(r"bold|black|heavy|demi|BX\d", re.I)
HEAVY = 500  # weight of a font from which it is bold
HYPHEN = "\ufffe"  # how PDFium reads a hyphen with the line end after it
UNPRINTABLE = str.maketrans(dict.fromkeys("\f\r\n", " ") | dict.fromkeys("\0\x02", ""))
ONE_AT_A_TIME = Lock()  # PDFium has no threads


def read_pdf(file: BinaryIO) -> Reading:
    """Return the text of the pages, how many there are, their labels, and the headings.

    Lines that recur at the top or bottom of pages, and page numbers, are left out. Headings are
    those of the outline or, without one, short lines in a larger or bolder font than the text.
    The title is that of the file's properties, if the first page has it, or the one heading
    above all others.
    """
    import pypdfium2

    begins = file.read(1024)
    file.seek(max(0, file.seek(0, os.SEEK_END) - HEAD))
    if b"%PDF-" not in begins or b"%%EOF" not in file.read():  # so that no other file is loaded
        raise UnreadableError("cannot be read as PDF")
    file.seek(0)
    data = file.read()
    notes = logging.getLogger("pypdfium2")  # it also logs what it repairs
    with ONE_AT_A_TIME:
        level = notes.level
        notes.setLevel(logging.CRITICAL)
        try:
            with pypdfium2.PdfDocument(data) as pdf:
                pages = [_lines(pdf, number) for number in range(len(pdf))]
                labels = [_label(pdf, number) for number in range(len(pdf))]
                outline = _outline(pdf)
                stated = _stated_title(pdf)
        except pypdfium2.PdfiumError as error:
            # PDFium does not always reset the code of the last error.
            locked = error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD and b"/Encrypt" in data
            why = "is an encrypted PDF" if locked else "cannot be read as PDF"
            raise UnreadableError(why) from error
        finally:
            notes.setLevel(level)
    if not any(line.text.strip() for page in pages for line in page):
        raise UnreadableError("is a PDF without text")
    metadata: dict[str, Any] = {PAGES: len(pages)}
    if any(labels) and labels != [str(number + 1) for number in range(len(pages))]:
        metadata[PAGE_LABELS] = labels
    pages = without_running_heads(pages)
    text, headings = _joined(pages, outline_headings(pages, outline) or font_headings(pages))
    if title := _title(stated, text.partition(PAGE_BREAK)[0], headings):
        metadata[TITLE] = title
    return Reading(text, metadata, headings)


def _stated_title(pdf: "PdfDocument") -> str:
    """Return the title in the properties of a file; empty if there is none or it is damaged."""
    try:
        return str(pdf.get_metadata_value("Title"))
    except UnicodeDecodeError:
        return ""


def _title(stated: str, first_page: str, headings: list[Heading]) -> str:
    """Return the title of a file, or an empty text if it is unknown."""
    if (letters := _letters(stated)) and letters in _letters(first_page):
        return " ".join(stated.split())[:MAX_TITLE]
    if headings and all(heading.level > headings[0].level for heading in headings[1:]):
        return headings[0].title
    return ""


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).casefold()


def _lines(pdf: "PdfDocument", number: int) -> list[Line]:
    """Return the lines of a page."""
    page = pdf[number]
    textpage = page.get_textpage()
    lines, at = [], 0
    for text in textpage.get_text_range().split("\r\n"):
        lines.append(_line(textpage, text, at))
        at += len(text) + 2
    textpage.close()
    page.close()
    return lines


def _line(textpage: "PdfTextPage", text: str, at: int) -> Line:
    """Return a line with the font of its first letter, if its last one has the same."""
    from pypdfium2 import raw

    letters = [i for i in (0, len(text) - 1) if text and text[i].isalnum()]
    if len(letters) < 2:
        letters = [i for i, character in enumerate(text) if character.isalnum()]
    clean = text.replace(HYPHEN, "").translate(UNPRINTABLE)
    x, y, matrix = ctypes.c_double(), ctypes.c_double(), raw.FS_MATRIX()
    first = raw.FPDFText_GetCharIndexFromTextIndex(textpage, at + (letters[0] if letters else 0))
    raw.FPDFText_GetCharOrigin(textpage, first, x, y)
    if not letters:
        return Line(clean, y.value)
    last = raw.FPDFText_GetCharIndexFromTextIndex(textpage, at + letters[-1])
    font = size, bold = _font(textpage, first)
    raw.FPDFText_GetMatrix(textpage, first, matrix)
    scale = max(abs(matrix.b), abs(matrix.d))
    found = LEADERS.search(clean)
    return Line(
        clean[: found.start()] if found else clean,
        y.value,
        round(2 * size * scale) / 2,
        bold,
        font == _font(textpage, last),
        in_contents=found is not None,
    )


def _font(textpage: "PdfTextPage", character: int) -> tuple[float, bool]:
    """Return the size of a character before it is scaled, and whether it is bold."""
    from pypdfium2 import raw

    size = raw.FPDFText_GetFontSize(textpage, character)
    if raw.FPDFText_GetFontWeight(textpage, character) >= HEAVY:
        return size, True
    name, flags = ctypes.create_string_buffer(100), ctypes.c_int()
    raw.FPDFText_GetFontInfo(textpage, character, name, 100, flags)
    return size, _is_bold(name.value)


@lru_cache(maxsize=100)
def _is_bold(name: bytes) -> bool:
    return BOLD.search(name.decode("latin-1")) is not None


def _label(pdf: "PdfDocument", number: int) -> str:
    """Return the printed number of a page; empty if it has none or cannot be read."""
    try:
        return str(pdf.get_page_label(number))
    except UnicodeDecodeError:
        return ""


def _outline(pdf: "PdfDocument") -> list[Outlined]:
    """Return the outline's entries that name a page."""
    entries = []
    for bookmark in pdf.get_toc():
        try:
            title = bookmark.get_title()
        except UnicodeDecodeError:
            continue
        destination = bookmark.get_dest()
        page = destination and destination.get_index()
        if page is not None and page < len(pdf):
            mode, view = destination.get_view()
            at = Y_OF_VIEW.get(mode, len(view))
            y = view[at] if at < len(view) else None
            entries.append(Outlined(bookmark.level + 1, title, page, y))
    return entries


Y_OF_VIEW = {1: 1, 3: 0, 5: 3, 7: 0}
"""Index of the upper edge in a destination's view, by the view's mode."""


def without_running_heads(pages: list[list[Line]]) -> list[list[Line]]:
    """Leave out lines that recur, with other numbers, at one height at an edge of the pages.

    What stands alone at such a height is left out as well, as heads name changing sections. A
    page of nothing else is kept.
    """
    edges = [[*_at_edge(page, 1), *_at_edge(page, -1)] for page in pages]
    recurring = Counter(key for edge in edges for key in {_key(*place) for place in edge})
    at_height = Counter(key[:2] for edge in edges for key in {_key(*place)[:2] for place in edge})
    heads: Counter[tuple[int, int]] = Counter()
    for key, n_pages in recurring.items():
        if n_pages >= RECURRING:
            heads[key[:2]] += n_pages
    kept = []
    for page, edge in zip(pages, edges, strict=True):
        gone = set()
        outside = {1, -1}  # edges at which all lines up to here are gone
        for side, line in edge:
            key = _key(side, line)
            if heads[key[:2]] >= SHARE * at_height[key[:2]] and (
                recurring[key] >= RECURRING or side in outside
            ):
                gone.add(id(line))
            else:
                outside.discard(side)
        rest = [line for line in page if id(line) not in gone]
        kept.append(rest if any(line.text.strip() for line in rest) else page)
    return kept


def _at_edge(page: list[Line], side: int) -> list[tuple[int, Line]]:
    """Return the outermost lines at the top (1) or bottom (-1) of a page, from the outside."""
    lines = [line for line in page if line.text.strip()]
    return [(side, line) for line in sorted(lines, key=lambda line: -side * line.y)[:EDGE]]


def _key(side: int, line: Line) -> tuple[int, int, str]:
    return side, round(line.y), re.sub(r"\d+", "0", line.text.strip())


def _joined(pages: list[list[Line]], placed: list[Placed]) -> tuple[str, list[Heading]]:
    """Return the text of all pages and the headings at their places in it."""
    at = {(each.page, each.line): each for each in reversed(placed)}
    parts: list[str] = []
    headings, start = [], 0
    for number, page in enumerate(pages):
        if number:
            parts.append(PAGE_BREAK)
            start += 1
        i = 0
        while i < len(page):
            text, n_lines = page[i].text, 1
            if heading := at.get((number, i)):
                n_lines = heading.n_lines
                text = " ".join(line.text.strip() for line in page[i : i + n_lines])
                title = text[: heading.n_characters or MAX_TITLE][:MAX_TITLE]
                headings.append(Heading(heading.level, title, start))
            i += n_lines
            if i < len(page):
                text += "\n"
            parts.append(text)
            start += len(text)
    return "".join(parts), headings
