"""Files of office programs: how they are opened, and what they say of themselves."""

import re
import struct
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any, BinaryIO
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile, ZipFile

from hierindex.node import LEFT_OUT, TITLE, Heading
from hierindex.read.rtf import read_unnamed
from hierindex.read.text import MAX_TITLE, Reading, UnreadableError

MAX_GROWTH = 100_000_000  # bytes; converters need forty times as much memory
OLE = b"\xd0\xcf\x11\xe0"  # begins files of older formats, and encrypted ones
OLD = {
    ".doc": "is an old Word file; save it as .docx",
    ".ppt": "is an old PowerPoint file; save it as .pptx",
    ".xls": "is an old Excel file; save it as .xlsx",
}
"""Files that are not read, and what to do about it, by suffix."""

CORE = "docProps/core.xml"
NO_TITLE = re.compile(
    r"microsoft (word|excel|powerpoint)\b.*|((word )?document|doc|book|workbook|presentation|slide|"
    r"title|untitled|unbenannt|sans titre)[ -]?\d*|powerpoint[- ]\w+|pr\w+ (de )?powerpoint|"
    r".*\.(docx?|rtf|odt|pptx?|xlsx?|pdf|tmp)|[\W\d_]*",
    re.IGNORECASE | re.DOTALL,
)
"""What programs write in place of a title."""
LIBRARIES = {"python-docx", "steve canny", "openpyxl", "xlsxwriter", "apache poi", "phpword"}
"""Authors in the templates of libraries, whose dates are those of the templates."""
EPOCH = 1980  # zero in the clocks of files
NO_AUTHOR = {
    "user",
    "admin",
    "administrator",
    "author",
    "owner",
    "unknown",
    "microsoft office user",
}


def read_old(suffix: str, file: BinaryIO) -> Reading:
    """Say what to do about a file of an older format; read other files with its suffix as text."""
    if file.read(len(OLE)) == OLE:
        raise UnreadableError(OLD[suffix])
    file.seek(0)
    return read_unnamed(file)


@contextmanager
def unpacked(file: BinaryIO, kind: str) -> Iterator[ZipFile]:
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


def parsed(data: bytes) -> Any:
    """Return the root of XML, without expanding entities."""
    from lxml import etree

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False))


def properties(parts: ZipFile) -> dict[str, Any]:
    """Return the title, the author and the day of a file's properties, if they are sensible."""
    if CORE not in parts.namelist():
        return {}
    root = parsed(parts.read(CORE))
    said = {
        name: " ".join((root.findtext(f"{{*}}{name}") or "").split())[:MAX_TITLE]
        for name in ("title", "creator", "created", "modified")
    }
    found = {}
    if not NO_TITLE.fullmatch(said["title"]):
        found[TITLE] = said["title"]
    if said["creator"].lower() in LIBRARIES:
        return found
    if said["creator"] and said["creator"].lower() not in NO_AUTHOR:
        found["author"] = ", ".join(filter(None, map(str.strip, said["creator"].split(";"))))
    for day in (said["created"][:10], said["modified"][:10]):
        try:
            created = date.fromisoformat(day)
        except ValueError:
            continue
        if created.year > EPOCH:
            found.setdefault("date", created.isoformat())
    return found


def sectioned(sections: Iterable[tuple[str, Iterable[str]]]) -> Reading:
    """Return sections with their titles as the only headings, and without blank blocks."""
    blocks, headings, start = list[str](), list[Heading](), 0
    for title, inside in sections:
        headings.append(Heading(1, title[:MAX_TITLE], start))
        for block in (f"# {title}", *filter(str.strip, inside)):
            blocks.append(block)
            start += len(block) + 2
    return Reading("\n\n".join(blocks), {}, headings)


def left_out(unread: Counter[str]) -> dict[str, list[str]]:
    """Return what was not read as metadata, or nothing if all was.

    >>> left_out(Counter({"picture": 2, "passage of hidden text": 2, "comment": 0}))
    {'left_out': ['2 pictures', '2 passages of hidden text']}
    """
    phrases = []
    for name, n in unread.items():
        first, *rest = name.split(" of ", 1)
        plural = first if n == 1 else f"{first}s"
        if n:
            phrases.append(" of ".join([f"{n:,} {plural}", *rest]))
    return {LEFT_OUT: phrases} if phrases else {}


MALFORMED = (
    *(BadZipFile, EOFError, ExpatError, OSError, SyntaxError, struct.error, zlib.error),
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError),
    *(TypeError, ValueError),
)
"""Exceptions of the converters for malformed files."""
