"""Office files and books: opening them, their properties, charts and formats of numbers."""

import math
import posixpath
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote
from zipfile import ZipFile

from hierindex.node import TITLE
from hierindex.read.html import html_reading
from hierindex.read.tables import markdown_table
from hierindex.read.text import (
    MAX_TITLE,
    OLE,
    Reading,
    UnreadableError,
    decode,
    first_day,
    reading_as,
)

MAX_GROWTH = 100_000_000  # bytes; converters need forty times as much memory
CORE = "docProps/core.xml"
NO_TITLE = re.compile(
    r"\W*(?:microsoft (?:word|excel|powerpoint)\b.*|powerpoint[- ]\w+|pr\w+ (?:de )?powerpoint|"
    r"untitled.*|anonymous|unspecified|(?:(?:word )?document|doc|dokument|book|workbook|"
    r"presentation|slide|sheet|template|title|unbenannt|sans titre)\W*\d*|\w:\\.*|/\S+|"
    r".*\.(?:docx?|odt|rtf|pptx?|odp|xlsx?|ods|pdf|tex|dvi|ps|indd|qxd|pmd|fm|html?|txt|md|cdr|ai|"
    r"tiff?|jpe?g|png|eps|tmp)|[\W\d_]*)\W*",
    re.IGNORECASE | re.DOTALL,
)
"""Placeholders that programs write instead of a title."""
LIBRARIES = set("python-docx,steve canny,openpyxl,xlsxwriter,apache poi,phpword".split(","))
"""Authors in the templates of libraries, whose dates are those of the templates."""
NO_AUTHOR = set(
    "user,admin,administrator,anonymous,author,owner,root,unknown,microsoft office user".split(",")
)
NO_AUTHOR |= LIBRARIES
PART = re.compile(  # of a number format: a literal text, a space, a currency, a condition, digits
    r'"([^"]*)"|\\(.)|[_*].|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|(?P<digits>[#0?][#0?,.]*)', re.DOTALL
)
GENERAL = re.compile("general", re.IGNORECASE)
CONDITION = re.compile(r"\[[<>=]")
EPOCH = datetime(1899, 12, 30)
MOST_DAYS = 2_958_466  # to the year 10000

STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")  # namespaces of ISO's strict form
COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
UNREAD_PARTS = {"picture": "/media/image", "chart": "xl/charts/chart"}  # what is in their names
COMMENT = re.compile(rb"<(?:\w+:)?(?:comment|cm)[ />]")
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
DRAWINGS = {f"{C}chart": f"{R}id", f"{DIAGRAM}relIds": f"{R}dm"}
"""Elements in the place of charts and diagrams, and the attributes with the ids of their parts."""


class Block(NamedTuple):
    """A paragraph, a table or another block, with its heading level and its depth in a list."""

    text: str
    level: int = 0
    depth: int | None = None


@contextmanager
def unpacked(file: BinaryIO, kind: str) -> Iterator[ZipFile]:
    """Open a zip file; raise an error with the reason if it cannot be read."""
    if file.read(len(OLE)) == OLE:
        raise UnreadableError("is encrypted, or not in the format of its suffix")
    with reading_as(kind), ZipFile(file) as parts, warnings.catch_warnings(action="ignore"):
        check_growth(sum(part.file_size - part.compress_size for part in parts.infolist()))
        yield parts


def check_growth(n_bytes: int) -> None:
    """Raise an error if a file grows by too many bytes when it is unpacked."""
    if n_bytes > MAX_GROWTH:
        raise UnreadableError(f"grows by {n_bytes:,} bytes when unpacked")


def parsed(data: bytes) -> Any:
    """Return the root of XML, without entities and with one choice of each alternative content."""
    from lxml import etree

    if b"purl.oclc.org" in data[:5000]:
        data = STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data)
    root = etree.fromstring(data, etree.XMLParser(resolve_entities=False))
    choose(root)
    etree.strip_tags(root, etree.Comment, etree.PI, etree.Entity)
    return root


def choose(root: Any) -> None:
    """Replace each alternative content by its first choice."""
    from lxml import etree

    etree.strip_elements(root, f"{COMPATIBILITY}Fallback", with_tail=False)
    etree.strip_tags(root, f"{COMPATIBILITY}AlternateContent", f"{COMPATIBILITY}Choice")


def properties(parts: ZipFile) -> dict[str, Any]:
    """Return the title, author and date in a file's properties, if they are plausible."""
    if CORE not in parts.namelist():
        return {}
    root = parsed(parts.read(CORE))
    names = ("title", "creator", "created", "modified")
    return stated(*(root.findtext(f"{{*}}{name}") or "" for name in names))


def stated(title: str, author: str, *dates: str) -> dict[str, Any]:
    """Return the title, the author and the first date that a file states, if they are plausible.

    A title is not plausible if it names a file or a program's new document, an author if it is
    nobody's name, a date if it is that of a library's template.
    """
    title, author = (" ".join(said.split())[:MAX_TITLE] for said in (title, author))
    found = {} if NO_TITLE.fullmatch(title) else {TITLE: title}
    name = author.casefold().strip("()")
    if any(map(str.isalpha, author)) and name not in NO_AUTHOR:
        found["author"] = ", ".join(filter(None, map(str.strip, author.split(";"))))
    if (day := first_day(dates)) and name not in LIBRARIES:
        found["date"] = day
    return found


def unread_parts(parts: ZipFile) -> Counter[str]:
    """Count the pictures, the comments and, in workbooks, the charts of a file."""
    names = parts.namelist()
    found = Counter(
        {kind: sum(sign in name for name in names) for kind, sign in UNREAD_PARTS.items()}
    )
    found["comment"] = sum(
        len(COMMENT.findall(parts.read(name))) for name in names if "/comments" in name
    )
    return found


def as_reading(
    parts: ZipFile, blocks: Iterable[Block], unread: Counter[str], title: str = ""
) -> Reading:
    """Return the blocks of a file as Markdown with their headings, and the file's properties.

    The title is used if the properties have none. Omitted parts are listed in the metadata.
    """
    text, _, headings = Reading.joined(_as_markdown(blocks))
    metadata = properties(parts)
    if title:
        metadata.setdefault(TITLE, title[:MAX_TITLE])
    return Reading(text, metadata, headings).leaving_out(unread_parts(parts) + unread)


def _as_markdown(blocks: Iterable[Block]) -> Iterator[Reading]:
    """Yield blocks, and each list as a whole, without blank lines between its items."""
    said = (block for block in blocks if block.text.strip())
    for is_list, group in groupby(said, lambda block: block.depth is not None):
        if is_list:
            items = [("  " * (block.depth or 0), block.text) for block in group]
            n = len(items[0][0])  # as deep as the first item
            yield Reading.block("\n".join(indent[n:] + text for indent, text in items))
            continue
        for text, level, _ in group:
            yield Reading.block(f"{'#' * level} {text}" if level else text, level, text)


def read_epub(file: BinaryIO) -> Reading:
    """Return the text of a book's chapters in order, with its title, authors and date.

    The chapters are read as the main content of one HTML page, see `read_html`.
    """
    with unpacked(file, "EPUB") as parts:
        container = parsed(parts.read("META-INF/container.xml"))
        path = container.find(".//{*}rootfile").get("full-path")
        package, folder = parsed(parts.read(path)), posixpath.dirname(path)
        items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
        names, chapters = set(parts.namelist()), list[str]()
        for reference in package.iterfind(".//{*}itemref"):
            item = items.pop(reference.get("idref"), {})
            name = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
            is_picture = item.get("media-type", "").startswith("image/")
            if name not in names or is_picture or "nav" in item.get("properties", "").split():
                continue
            chapters.append(decode(parts.read(name)).text)
        html = "\n".join(["<main>", *chapters, "</main>"])
        text, metadata, headings = html_reading(html, {})
        authors = ", ".join(name.text or "" for name in package.iterfind(".//{*}creator"))
        title, date = (package.findtext(f".//{{*}}{name}") or "" for name in ("title", "date"))
        metadata |= stated(title, authors, date)
        return Reading(text, metadata, [heading._replace(anchor="") for heading in headings])


def drawn(root: Any) -> Iterator[str]:
    """Yield the texts of a chart or of a diagram (SmartArt), given the root of its part.

    Of a chart, these are its title and those of its axes, and a table of its categories and values.
    """
    if root.tag != f"{C}chartSpace":
        yield from filter(None, map(_said, root.iter(f"{DIAGRAM}pt")))
        return
    titles = (_said(title) for title in root.iter(f"{C}title"))
    yield ": ".join(["Chart", *filter(None, titles)])
    columns = list[tuple[str, dict[int, str]]]()
    for i, series in enumerate(root.iterfind(f".//{C}plotArea/*/{C}ser"), start=1):
        categories = _points(series, "cat", "xVal")
        if not columns or categories not in ({}, columns[0][1]):  # each x of points
            columns.append(("", categories))
        name = " ".join(_points(series, "tx").values()) or series.findtext(f"{C}tx/{C}v")
        columns.append((name or f"Series {i}", _points(series, "val", "yVal")))
    if rows := sorted({at for _, column in columns for at in column}):
        table = [[column.get(at, "") for _, column in columns] for at in rows]
        yield markdown_table([[name for name, _ in columns], *table])


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
        return formatted_number(float(text), code)
    except (OverflowError, ValueError):  # a date beyond the calendar, or no number
        return text.strip()


def _said(element: Any) -> str:
    """Return the words of a part, in order."""
    said = ("".join(t.text or "" for t in p.iter(f"{A}t")) for p in element.iter(f"{A}p"))
    return " ".join(" ".join(said).split())


def formatted_number(value: float, code: str) -> str:
    """Format a number as a spreadsheet displays it, and dates in ISO 8601.

    With formats for exponents, fractions or conditions, the number itself is returned. Zero is
    always shown.

    >>> formatted_number(0.125, "0.0%"), formatted_number(-1234.5, '#,##0.00 "EUR"')
    ('12.5%', '-1,234.50 EUR')
    >>> formatted_number(45296.5, "d.m.yy h:mm"), formatted_number(-1e10, "d.m.yy")
    ('2024-01-05 12:00:00', '-10000000000')
    """
    if GENERAL.fullmatch(code) or CONDITION.search(code) or not math.isfinite(value):
        return f"{value:.15g}"
    positive, _, negative = GENERAL.sub("0.##########", code).partition(";")
    section = negative.partition(";")[0] if value < 0 and negative else positive
    digits = [found["digits"] for found in PART.finditer(section) if found["digits"]]
    signs = PART.sub("", section)
    if not digits and re.search("[dhmsy]", signs, re.IGNORECASE) and 0 <= value < MOST_DAYS:
        return (EPOCH + timedelta(days=value)).isoformat(" ", "seconds").removesuffix(" 00:00:00")
    if len(digits) != 1:
        return f"{value:.15g}"
    bare = digits[0].rstrip(",")  # each comma at the end stands for a thousand
    shape, _, decimals = bare.partition(".")
    scale = 2 * ("%" in signs) - 3 * (len(digits[0]) - len(bare))
    with localcontext(rounding=ROUND_HALF_UP):
        number = Decimal(repr(abs(value))).scaleb(scale)
        text = f"{number:{',' if ',' in shape else ''}.{len(decimals)}f}"
    whole, _, rest = text.partition(".")
    rest = rest[: decimals.count("0")] + rest[decimals.count("0") :].rstrip("0")
    shown = whole.rjust(shape.count("0"), "0") + (rest and f".{rest}")
    said = PART.sub(
        lambda found: shown if found["digits"] else "".join(filter(None, found.groups())),
        section,
    )
    sign = "-" if value < 0 and not {"-", "("} & {*said} else ""
    return " ".join(f"{sign}{said}".split())
