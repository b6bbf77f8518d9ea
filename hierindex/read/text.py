"""Text files: whether they are text, and in which encoding."""

import codecs
import re
from collections.abc import Sequence
from os import SEEK_END
from typing import Any, BinaryIO, NamedTuple

from hierindex.node import Heading

HEAD = 65_536  # bytes; a file is loaded only if they look like text
MAX_BYTES = 2**28  # of a text; to build a tree over 100 MB takes some 4 GB of memory
MAX_TITLE = 1000  # characters; each chunk stores the title


class Reading(NamedTuple):
    """What is read of a file: its text, its metadata, and its headings in the order of the text."""

    text: str
    metadata: dict[str, Any]
    headings: Sequence[Heading] = ()


class UnreadableError(Exception):
    """The file cannot be read as a document; the message completes "The file ..."."""


def read_text(file: BinaryIO) -> Reading:
    """Decode a file as UTF-8, or else in the detected encoding, which becomes metadata."""
    from charset_normalizer import from_bytes, is_binary
    from charset_normalizer.utils import any_specified_encoding

    data = read_bytes(file)
    metadata = {}
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        best = None if is_binary(data) else from_bytes(data).best()
        if best is None:
            raise UnreadableError("is not text") from None
        declared = any_specified_encoding(data) == best.encoding
        if declared or best.multi_byte_usage or best.coherence or best.bom:
            text, metadata = str(best), {"encoding": best.encoding}
        else:  # too short for a detection
            text, metadata = data.decode("cp1252", "replace"), {"encoding": "cp1252"}
    if "\0" in text:
        raise UnreadableError("is not text")
    return Reading(text.replace("\r\n", "\n").replace("\r", "\n"), metadata)


def is_binary_head(data: bytes) -> bool:
    """Return whether the first bytes of a file show that it is not text."""
    return b"\0" in data and not data.startswith(WITH_ZEROS)


def without_embedded(text: str) -> tuple[str, int]:
    """Return a text without the files that URIs embed, such as pictures in base64; their number.

    >>> without_embedded("![map](data:image/png;base64,iVBORw0KGgo=) of Lier")
    ('![map]() of Lier', 1)
    """
    return EMBEDDED.subn("", text) if "data:" in text else (text, 0)


MEDIA = r"data:(?:audio|font|image|video)/[\w.+-]+(?:;[\w.+=-]+)*"
EMBEDDED = re.compile(  # in quotes, or up to what may end a link
    rf"""(?<="){MEDIA},(?:[^"\n]|\n(?!\n)){{40,}}|(?<='){MEDIA},(?:[^'\n]|\n(?!\n)){{40,}}|"""
    rf"""data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*;base64,(?:[A-Za-z0-9+/_-]|%\w\w)+=*|"""
    rf"""{MEDIA},[^\s"'<>()\[\]]{{40,}}"""
)


def read_bytes(file: BinaryIO) -> bytes:
    """Return the content of a file, unless it is too large or begins like no text."""
    data = file.read(HEAD)
    if is_binary_head(data):
        raise UnreadableError("is not text")
    if (size := file.seek(0, SEEK_END)) > MAX_BYTES:
        raise UnreadableError(
            f"has {size / 1e6:,.0f} MB of text, more than {MAX_BYTES / 1e6:.0f}; "
            "split it into smaller files"
        )
    file.seek(len(data))
    return data + file.read()


WITH_ZEROS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
"""Byte order marks of texts with zero bytes; that of UTF-32-LE begins with that of UTF-16-LE."""
