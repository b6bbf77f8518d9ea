"""Text files: detection of binary data and of encodings."""

import codecs
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import SEEK_END
from typing import Any, BinaryIO, NamedTuple, Self
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile

from hierindex.node import LEFT_OUT, Heading
from hierindex.text.display import counted

OLE = b"\xd0\xcf\x11\xe0"  # begins office files of older formats, and encrypted ones
HEAD = 65_536  # bytes; a file is loaded only if they look like text
MAX_BYTES = 2**28  # of a text; to build a tree over 100 MB takes some 4 GB of memory
MAX_TITLE = 1000  # characters; each chunk stores the title
DAY = re.compile(r"\s*(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))(?!\d)")
NO_DAY = {"1601-01-01", "1970-01-01", "1980-01-01"}  # zero in the clock of a file

BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # begins with that of UTF-16
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by byte order mark."""
DECLARED = re.compile(rb"(?:charset|coding)\s*[:=]\s*[\"']?\s*([\w.:+-]+)", re.IGNORECASE)
MEANT = {  # by labels, of which browsers take more than they say: encoding.spec.whatwg.org
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
OF_TEXT = ("big5", "cp", "euc", "gb", "hz", "iso", "koi8", "mac", "shift", "utf")  # names' starts
SEVEN_BIT = ("hz", "iso2022", "utf-7")  # whose files look like ASCII
CONTROLS = bytes({*range(32), 127} - {*b"\t\n\v\f\r\x1b"})
MOST_CONTROLS = 0.02  # share of a text's bytes
FEWEST_VALID = 5  # bytes that only UTF-8 has, for each that it cannot have
BAD_BYTES = re.compile("[\udc80-\udcff]+")  # as `surrogateescape` decodes them
SAMPLE = 2**20  # bytes
MOST_KNOWN = 0.98  # of the letters beyond ASCII
ALPHABETS = (  # letters beyond ASCII of languages, by encodings in the order of trial
    (
        "cp1252",  # foreign words of English; fr de es pt it nl ca et sv da
        "áàâäåçéèêëíïñóôöü àâæçéèêëîïôœùûüÿ äöüßé áéíñóúü ãõáâàéêíóôúüç àèéìíîòóùú áéèêëíïóöúü "
        "àçèéíïòóúü äõöüšž åäöé æøåéèêòóôäöü",
    ),
    ("cp1254", "çğıöşü\u0130"),  # tr
    ("cp1252", "ðþáéíóúýæö"),  # is
    ("cp1250", "áéíóöőúüű"),  # hu
    ("cp1257", "ąčęėįšųūž"),  # lt
)
NO_LETTERS = frozenset("ªºµåÅ")  # but signs and units
ODD_SIGN = re.compile(  # within a word or at its start, and so a letter; C1 controls
    "[^\\W\\d_][¡¢£¤¥¦§¨©¬¯°±²³\xb4¶\xb8¹º»¼½¾¿ª„†‡‰][^\\W\\d_]"
    "|[¹³¼¾¦¶±\xb8][^\\W\\d_]|(?<![\\w.])[ºª][^\\W\\d_]|[\x80-\x9f]"
)
MALFORMED = (
    *(BadZipFile, EOFError, ExpatError, OSError, SyntaxError, struct.error, zlib.error),
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError),
    *(TypeError, ValueError),
)
"""Exceptions of other libraries for malformed files."""
MEDIA = r"data:(?:audio|font|image|video)/[\w.+-]+(?:;[\w.+=-]+)*"
EMBEDDED = re.compile(  # in quotes, or up to what may end a link
    rf"""(?<="){MEDIA},(?:[^"\n]|\n(?!\n)){{40,}}|(?<='){MEDIA},(?:[^'\n]|\n(?!\n)){{40,}}|"""
    rf"""data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*;base64,(?:[A-Za-z0-9+/_-]|%\w\w)+=*|"""
    rf"""{MEDIA},[^\s"'<>()\[\]]{{40,}}"""
)


class Reading(NamedTuple):
    """The result of reading a file: text, metadata, and headings in the order of the text."""

    text: str
    metadata: dict[str, Any]
    headings: Sequence[Heading] = ()

    @classmethod
    def block(cls, text: str, level: int = 0, title: str = "") -> Self:
        """Return a block of text; with a level it is a heading, whose title may be the text."""
        return cls(text, {}, [Heading(level, (title or text)[:MAX_TITLE], 0)] if level else [])

    @classmethod
    def joined(cls, readings: Iterable[Self], level: int = 0, between: str = "\n\n") -> Self:
        """Join several readings into one; heading levels are increased by `level`.

        Its metadata have the first encoding and everything that was left out.
        """
        texts, headings, start = list[str](), list[Heading](), 0
        metadata: dict[str, Any] = {}
        for text, more, within in readings:
            texts.append(text)
            headings += (h._replace(level=h.level + level, start=start + h.start) for h in within)
            start += len(text) + len(between)
            if "encoding" in more:
                metadata.setdefault("encoding", more["encoding"])
            if LEFT_OUT in more:
                metadata.setdefault(LEFT_OUT, []).extend(more[LEFT_OUT])
        return cls(between.join(texts), metadata, headings)

    def leaving_out(self, counts: Mapping[str, int], phrases: Sequence[str] = ()) -> Self:
        """Record how many things of each kind were not read, and other notes; return itself."""
        if notes := [*(counted(n, what) for what, n in counts.items() if n), *phrases]:
            self.metadata[LEFT_OUT] = [*self.metadata.get(LEFT_OUT, []), *notes]
        return self


class UnreadableError(Exception):
    """The file cannot be read as a document; the message completes "The file ..."."""


@contextmanager
def reading_as(kind: str) -> Iterator[None]:
    """Turn errors for a malformed file or a missing extra into one that names the kind of file."""
    try:
        yield
    except ImportError as error:
        raise UnreadableError("needs `pip install 'hierindex[office]'`") from error
    except MALFORMED as error:
        raise UnreadableError(f"cannot be read as {kind}") from error


def read_text(file: BinaryIO) -> Reading:
    """Return the text of a file, see `decode`."""
    return decode(read_bytes(file))


def decode(data: bytes, declared: str = "") -> Reading:
    r"""Decode bytes to text with ``\n`` as line end; the encoding is metadata.

    Uses the first of these that fits: the encoding of the byte order mark; UTF-8, even if a few
    bytes are invalid; the declared encoding, with its name read as in browsers; the detected
    encoding.

    Parameters
    ----------
    data : bytes
    declared : str
        Label of an encoding; by default the one declared in the data, as in HTML, XML and Python.

    Raises
    ------
    UnreadableError
        If the data are not text.

    Examples
    --------
    >>> decode(b"\xa33,500")
    Reading(text='£3,500', metadata={'encoding': 'cp1252'}, headings=())
    >>> decode(b"caf\xc3\xa9s \xe2\x80\x93 \xff").metadata
    {'encoding': 'utf_8', 'left_out': ['1 byte sequence that is not UTF-8']}
    """
    encoding = _encoding(data, declared)
    text = data.decode(encoding, "replace")
    n_bad = 0
    if "\ufffd" in text:  # perhaps as the file has it
        n_bad = text.count("\ufffd") - data.decode(encoding, "ignore").count("\ufffd")
    if "\0" in text:
        raise UnreadableError("is not text")
    metadata: dict[str, Any] = {}
    if n_bad or not encoding.startswith("utf-8"):
        metadata["encoding"] = encoding.removesuffix("-sig").replace("-", "_")
    if n_bad:
        are = "byte sequence that is" if n_bad == 1 else "byte sequences that are"
        metadata[LEFT_OUT] = [f"{n_bad:,} {are} not {encoding.replace('utf-8', 'UTF-8')}"]
    return Reading(text.replace("\r\n", "\n").replace("\r", "\n"), metadata)


def first_day(dates: Iterable[str]) -> str:
    """Return the day of the first plausible date in ISO 8601, or ""."""
    days = (match[1] for match in map(DAY.match, dates) if match)
    return next((day for day in days if day not in NO_DAY), "")


def _encoding(data: bytes, declared: str) -> str:
    """Return Python's name of the encoding of a text."""
    for mark, encoding in BOMS.items():
        if data.startswith(mark):
            return encoding
    if not declared and (found := DECLARED.search(data, 0, HEAD)):
        declared = found[1].decode("ascii", "replace")
        if declared.lower().startswith("utf"):  # an ASCII name is not in UTF-16
            declared = "utf-8"
    named = codec_of(declared) or ("iso2022_jp" if b"\x1b$" in data else "")
    if data.isascii():
        return named if named.startswith(SEVEN_BIT) and _fits(data, named) else "utf-8"
    if _is_utf8(data, named):
        return "utf-8"
    if named and not named.startswith("utf-8") and _fits(data, named):
        return named
    return _detected(data)


def codec_of(label: str) -> str:
    """Return the name of the codec that a label means, or "" if it is unknown."""
    label = label.strip().lower()
    for form in (label, re.sub(r"^(x|cs)[-_]?|-[ie]$", "", label), label.replace("-", "")):
        try:
            name = codecs.lookup(form).name
        except (LookupError, ValueError):
            continue
        name = MEANT.get(name, name)
        if name.startswith(OF_TEXT):
            return name
    return ""


def _fits(data: bytes, encoding: str) -> bool:
    """Return whether at most a hundredth of the characters cannot be decoded."""
    text = data.decode(encoding, "replace")
    return text.count("\ufffd") <= len(text) / 100 + 1


def _is_utf8(data: bytes, named: str) -> bool:
    """Return whether nearly all bytes are UTF-8, or most if declared so; the end may be cut off."""
    text = data.decode("utf-8", "surrogateescape")
    n_bad, n_valid = len(BAD_BYTES.findall(text)), len(data) - len(text)
    if named == "utf-8":
        return n_bad <= n_valid != 0
    return FEWEST_VALID * (n_bad - (not named)) <= n_valid != 0


def _detected(data: bytes) -> str:
    """Return the encoding found by Firefox's detector, or Windows-1252 as used in practice."""
    from chardetng_py import detect

    sample = data[:HEAD]
    if len(sample) - len(sample.translate(None, CONTROLS)) > MOST_CONTROLS * len(sample):
        raise UnreadableError("is not text")
    for encoding, alphabets in ALPHABETS:
        if _is_one_of(data[:SAMPLE], encoding, alphabets.split()):
            return encoding
    found = codec_of(detect(data))
    return "cp850" if found == "cp1252" and not _fits(data, found) else found  # of DOS


def _is_one_of(data: bytes, encoding: str, alphabets: Sequence[str]) -> bool:
    """Return whether a Latin text uses the letters of one language, and no odd signs.

    >>> [_is_one_of(text.encode("cp1252"), "cp1252", ["é"]) for text in ("£3 née", "z³oty", "ñu")]
    [True, False, False]
    """
    try:
        text = data.decode(encoding).lower()
    except UnicodeDecodeError:
        return False
    letters = Counter(a for a in text if a.isalpha() and a not in NO_LETTERS)
    foreign = [a for a in letters if not a.isascii()]
    n_foreign = sum(letters[a] for a in foreign)
    n_known = max(sum(letters[a] for a in foreign if a in alphabet) for alphabet in alphabets)
    is_latin = n_foreign <= letters.total() / 2 and not ODD_SIGN.search(text)
    return is_latin and n_known >= MOST_KNOWN * n_foreign


def without_embedded(text: str) -> tuple[str, int]:
    """Return a text without files embedded in URIs, such as base64 pictures, and their number.

    >>> without_embedded("![map](data:image/png;base64,iVBORw0KGgo=) of Lier")
    ('![map]() of Lier', 1)
    """
    return EMBEDDED.subn("", text) if "data:" in text else (text, 0)


def read_bytes(file: BinaryIO) -> bytes:
    """Return the content of a file; raise an error if it is too large or not text."""
    data = file.read(HEAD)
    if b"\0" in data and not data.startswith(tuple(BOMS)):
        raise UnreadableError("is not text")
    if (size := file.seek(0, SEEK_END)) > MAX_BYTES:
        raise UnreadableError(
            f"has {size / 1e6:,.0f} MB of text, more than {MAX_BYTES / 1e6:.0f}; "
            "split it into smaller files"
        )
    file.seek(len(data))
    return data + file.read()
