"""PDF files: the text of their pages, without running heads and dot leaders."""

import ctypes
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from hierindex.node import PAGE_BREAK, PAGE_LABELS, PAGES, TITLE, Heading
from hierindex.read.office import NO_TITLE, stated
from hierindex.read.pdf_layout import (
    NUMBER,
    Line,
    Outlined,
    Placed,
    font_headings,
    letters_of,
    outline_headings,
    without_furniture,
)
from hierindex.read.text import HEAD, Reading, UnreadableError

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

LEADERS = re.compile(
    r"(?<=[^ .·…]) *(?:(?:[.·…] ?){4,}\d+|(?:[.·…] ?){5,}[ivxlcdm]*)$", re.I
)  # of tables of contents, with the page number
AFFILIATION = re.compile(
    r"@|\b(?:universi|institut|department|faculty|school of|college|laborator)", re.I
)
SECTION_NUMBER = re.compile(r"^\d{1,2}(?:\.\d+)*[.:)]?\s")
ABOVE_TITLE = 200  # characters
TITLE_WORD = re.compile(r"[^\W\d_]{2,}")
BOLD = re.compile(rb"bold|black|heavy|demi|BX\d", re.I)
HEAVY = 500  # weight of a font from which it is bold
ONE_AT_A_TIME = Lock()  # PDFium has no threads
Y_OF_VIEW = {1: 1, 3: 0, 5: 3, 7: 0}
"""Index of the upper edge in a destination's view, by the view's mode."""
HYPHEN = "\ufffe"  # how PDFium reads a hyphen with the line end after it
CONTROLS = dict(
    enumerate(
        [*"ff fi".split(), "", *"ffi ffl “ ” „ « » \u2013 —".split(), "", "", "\u0131", "\u0237",
         *"ff fi fl ffi ffl".split()],
        start=0x0B,
    )
)  # fmt: skip
"""Letters of LaTeX's fonts where others have control characters: OT1 to \\x0f, then T1 (Cork)."""
LATIN, CONTROL = r"[0-9A-Za-z\u00c0-\u024f]", r"[\x0b\x0c\x0e-\x1f]+"
BESIDE_LATIN = re.compile(rf"(?<={LATIN}|[.,]){CONTROL}|{CONTROL}(?={LATIN})")
LETTERS = dict(enumerate("ff fi fl ffi ffl st st".split(), start=0xFB00))
LETTERS |= dict.fromkeys(b"\f\r\n", " ") | dict.fromkeys(b"\0\x02", "")
WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
AROUND = 100  # characters beside a hyphen that are looked at
LAST, FIRST = re.compile(r"[^\W_]*$"), re.compile(r"[^\W_]*")
ADDRESS = re.compile(r"[@/\\_]|\w[.:]\w")


def read_pdf(file: BinaryIO) -> Reading:
    """Return the text of the pages, their number and labels, and the headings.

    Running heads and page numbers are left out. Headings are taken from the outline. Without an
    outline, they are short lines in a larger or bolder font than the text. Title, author and date
    are from the file's properties. If the title is missing there, the only heading of the highest
    level is used, if the text begins with it.
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
                pdf.init_forms()  # so that the fields of forms are flattened
                read = [_page(pdf, number) for number in range(len(pdf))]
                first_page = " ".join(line.text for line in read[0].lines) if read else ""
                labels = [_text(pdf.get_page_label, number) for number in range(len(pdf))]
                outline = _outline(pdf)
                metadata = _properties(pdf, first_page)
                n_attached = pdf.count_attachments()
        except pypdfium2.PdfiumError as error:
            # PDFium does not always reset the code of the last error.
            locked = error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD and b"/Encrypt" in data
            why = "is an encrypted PDF" if locked else "cannot be read as PDF"
            raise UnreadableError(why) from error
        finally:
            notes.setLevel(level)
    pages = [page.lines for page in read]
    if not any(line.text.strip() for page in pages for line in page):
        raise UnreadableError("is a PDF without text")
    metadata[PAGES] = len(pages)
    if any(labels) and labels != [str(number + 1) for number in range(len(pages))]:
        metadata[PAGE_LABELS] = labels
    pages, furniture = without_furniture(pages, labels)
    first = next(page for page in pages if any(line.text.strip() for line in page))
    words = _Vocabulary(line.text for page in pages for line in page)
    for page in pages:
        for line in page:
            line.text = words.undivided(line.text)
    outlined = outline_headings(pages, outline)
    text, _, headings = _joined(pages, outlined or font_headings(pages))
    if TITLE not in metadata:
        title = _title(first, headings)
        if outlined and not title:  # most outlines begin with the first section
            title = _title(first, _joined(pages, font_headings(pages)).headings)
        metadata |= {TITLE: title} if title else {}
    n_images, n_comments = sum(page.is_image for page in read), sum(p.n_comments for p in read)
    have = "has" if n_images == 1 else "have"
    images = [f"{n_images} of {len(pages)} pages {have} no text"] if n_images else []
    others = {"comment": n_comments, "attached file": n_attached}
    return Reading(text, metadata, headings).leaving_out({}, images).leaving_out(others, furniture)


def _properties(pdf: "PdfDocument", first_page: str) -> dict[str, Any]:
    """Return the title, author and date in a file's properties, if they are plausible."""
    title, author, created = (
        _text(pdf.get_metadata_value, name).replace("\0", "").strip()
        for name in ("Title", "Author", "CreationDate")
    )
    is_name = " " in title or title.isalpha() or letters_of(title) in letters_of(first_page)
    created = created.removeprefix("D:")
    day = f"{created[:4]}-{created[4:6]}-{created[6:8]}"
    return stated(title if is_name and sum(map(str.isalpha, title)) > 1 else "", author, day)


def _text(get: Callable[..., str], *arguments: Any) -> str:
    """Return a text of a file; empty if it is damaged."""
    try:
        return get(*arguments)
    except UnicodeDecodeError:
        return ""


def _title(first_page: list[Line], headings: Sequence[Heading]) -> str:
    """Return the highest heading, if the first page begins with it and it reads like a title."""
    if not headings or any(each.level <= headings[0].level for each in headings[1:]):
        return ""
    title = headings[0].title
    lines = [line for line in first_page if line.text.strip()]
    at = next((line for line in lines if title.startswith(line.text.strip())), None)
    if at is None or sum(len(line.text) for line in lines if line.y > at.y) > ABOVE_TITLE:
        return ""
    formula = 2 * sum(map(len, TITLE_WORD.findall(title))) < len(title) or "=" in title
    other = NO_TITLE.fullmatch(title) or SECTION_NUMBER.match(title) or AFFILIATION.search(title)
    return "" if formula or other else title


class _Page(NamedTuple):
    lines: list[Line]
    is_image: bool  # shows something but has no text
    n_comments: int


def _page(pdf: "PdfDocument", number: int) -> _Page:
    """Return the lines of a page, with those of its form fields."""
    from pypdfium2 import raw

    page = pdf[number]
    n_comments = _n_comments(page)
    if page.formenv and raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY) == raw.FLATTEN_SUCCESS:
        page.close()
        page = pdf[number]
    textpage = page.get_textpage()
    lines, at = [], 0
    for text in textpage.get_text_range().split("\r\n"):
        lines.append(_line(textpage, text, at))
        at += len(text) + 2
    textpage.close()
    has_text = any(line.text.strip() for line in lines)
    is_image = not has_text and raw.FPDFPage_CountObjects(page) > 0
    page.close()
    return _Page(lines, is_image, n_comments)


def _n_comments(page: "PdfPage") -> int:
    """Return how many annotations have a text that the page does not show."""
    from pypdfium2 import raw

    shown = {raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_WIDGET}
    shown |= {raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP} if page.formenv else set()
    n_comments = 0
    for i in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, i)
        if raw.FPDFAnnot_GetSubtype(annotation) not in shown:  # a text of no characters: two bytes
            n_comments += raw.FPDFAnnot_GetStringValue(annotation, b"Contents", None, 0) > 2
        raw.FPDFPage_CloseAnnot(annotation)
    return n_comments


def _line(textpage: "PdfTextPage", text: str, at: int) -> Line:
    """Return a line with the font of its first letter, if its last one has the same."""
    from pypdfium2 import raw

    letters = [i for i in (0, len(text) - 1) if text and text[i].isalnum()]
    if len(letters) < 2:
        letters = [i for i, character in enumerate(text) if character.isalnum()]
    clean = BESIDE_LATIN.sub(lambda found: found[0].translate(CONTROLS), text).translate(LETTERS)
    x, y, matrix = ctypes.c_double(), ctypes.c_double(), raw.FS_MATRIX()
    first = raw.FPDFText_GetCharIndexFromTextIndex(textpage, at + (letters[0] if letters else 0))
    raw.FPDFText_GetCharOrigin(textpage, first, x, y)
    if not letters:
        return Line(clean, y.value)
    last = raw.FPDFText_GetCharIndexFromTextIndex(textpage, at + letters[-1])
    font = size, bold = _font(textpage, first)
    raw.FPDFText_GetMatrix(textpage, first, matrix)
    scale = max(abs(matrix.b), abs(matrix.d))
    is_stamp = abs(matrix.b) > abs(matrix.a) and not textpage.page.get_rotation()  # on a margin
    found = LEADERS.search(clean)
    return Line(
        clean[: found.start()] if found else clean,
        y.value,
        round(2 * size * scale) / 2,
        bold,
        not is_stamp and font == _font(textpage, last),
        in_contents=found is not None,
        number_apart=_number_apart(textpage, text, at, size * scale),
    )


def _number_apart(textpage: "PdfTextPage", text: str, at: int, size: float) -> bool:
    """Return whether a wide space parts a line from a number at its start or its end."""
    from pypdfium2 import raw

    def edges(i: int) -> tuple[float, float]:
        box = [ctypes.c_double() for _ in range(4)]
        character = raw.FPDFText_GetCharIndexFromTextIndex(textpage, at + i)
        raw.FPDFText_GetCharBox(textpage, character, *box)
        return box[0].value, box[1].value

    text = text.rstrip()
    return any(
        0 < i < len(text) - 1
        and (NUMBER.fullmatch(text[:i]) or NUMBER.fullmatch(text[i + 1 :]))
        and edges(i + 1)[0] - edges(i - 1)[1] > size
        for i in (text.find(" "), text.rfind(" "))
    )


def _font(textpage: "PdfTextPage", character: int) -> tuple[float, bool]:
    """Return the size of a character before it is scaled, and whether it is bold."""
    from pypdfium2 import raw

    size = raw.FPDFText_GetFontSize(textpage, character)
    if raw.FPDFText_GetFontWeight(textpage, character) >= HEAVY:
        return size, True
    name, flags = ctypes.create_string_buffer(100), ctypes.c_int()
    raw.FPDFText_GetFontInfo(textpage, character, name, 100, flags)
    return size, BOLD.search(name.value) is not None


def _outline(pdf: "PdfDocument") -> list[Outlined]:
    """Return the outline's entries that name a page."""
    entries = []
    for bookmark in pdf.get_toc():
        destination = bookmark.get_dest()
        page = destination and destination.get_index()
        if page is not None and page < len(pdf):
            mode, view = destination.get_view()
            at = Y_OF_VIEW.get(mode, len(view))
            y = view[at] if at < len(view) else None
            entries.append(Outlined(bookmark.level + 1, _text(bookmark.get_title), page, y))
    return entries


def _joined(pages: list[list[Line]], placed: list[Placed]) -> Reading:
    """Return the text of all pages, and the headings at their offsets in it."""
    at = {(each.page, each.line): (each.level, each.n_lines) for each in reversed(placed)}
    readings = list[Reading]()
    for number, page in enumerate(pages):
        parts, i = list[Reading](), 0
        while i < len(page):
            level, n_lines = at.get((number, i), (0, 1))
            lines = [line.text for line in page[i : i + n_lines]]
            text = " ".join(map(str.strip, lines)) if level else lines[0]
            parts.append(Reading.block(text, level))
            i += n_lines
        readings.append(Reading.joined(parts, between="\n"))
    return Reading.joined(readings, between=PAGE_BREAK)


class _Vocabulary:
    """The words of a document that are not divided at line ends."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._counts: Counter[str] = Counter()
        for line in lines:
            for part in line.casefold().split():
                for word in WORD.findall(part) if HYPHEN not in part else ():
                    self._counts.update({word, *re.split(r"[-\u2010]", word)})

    def undivided(self, text: str) -> str:
        """Join the words of a line that line ends divide.

        The hyphen is kept next to digits, in addresses, before capital letters, and if the document
        contains the two parts but not the joined word.
        """
        return re.sub(HYPHEN, lambda found: "-" * self._is_hyphen(text, found.start()), text)

    def _is_hyphen(self, text: str, at: int) -> bool:
        """Return whether a hyphen in a line belongs to the word."""
        before, after = text[max(0, at - AROUND) : at], text[at + 1 : at + AROUND]
        left, right = LAST.findall(before)[0], FIRST.findall(after)[0]
        if not (left and right and (left + right).isalpha()):
            return True
        first, second = left.casefold(), right.casefold()
        n_joined, n_kept = (self._counts[first + between + second] for between in ("", "-"))
        if n_joined or n_kept:
            return n_kept > n_joined
        if right[0].isupper() or (len(left) > 1 and left.isupper()):
            return True
        if ADDRESS.search(before.split()[-1] + after.split()[0]):
            return True
        is_compound = before[: -len(left)].endswith(("-", "\u2010"))
        return first in self._counts and (is_compound or second in self._counts)
