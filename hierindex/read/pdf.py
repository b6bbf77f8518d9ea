"""PDF files: the text of their pages."""

import logging
import os
from typing import BinaryIO

from hierindex.read.text import HEAD, Reading, UnreadableError
from hierindex.record import PAGE_BREAK, PAGES


def read_pdf(file: BinaryIO) -> Reading:
    """Return the text of the pages, and how many there are."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    begins = file.read(1024)
    file.seek(max(0, file.seek(0, os.SEEK_END) - HEAD))
    if b"%PDF-" not in begins or b"%%EOF" not in file.read():  # pypdf would search the whole file
        raise UnreadableError("cannot be read as PDF")
    notes = logging.getLogger("pypdf")  # pypdf also logs what it repairs or raises
    level = notes.level
    notes.setLevel(logging.CRITICAL)
    try:
        pages = [page.extract_text().replace(PAGE_BREAK, " ") for page in PdfReader(file).pages]
    except (DependencyError, FileNotDecryptedError) as error:
        raise UnreadableError("is an encrypted PDF") from error
    except (PyPdfError, *MALFORMED) as error:
        raise UnreadableError("cannot be read as PDF") from error
    finally:
        notes.setLevel(level)
    if not "".join(pages).strip():
        raise UnreadableError("is a PDF without text")
    return Reading(PAGE_BREAK.join(pages), {PAGES: len(pages)})


MALFORMED = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError),
    *(TypeError, ValueError),
)
"""Exceptions of pypdf for malformed files."""
