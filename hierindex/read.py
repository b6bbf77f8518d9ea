"""Files and folders to documents.

A document's text is what its file says: of text and Markdown the characters as `open()`
reads them, of HTML the text of its elements, of PDF that of its pages with a form feed
between. Citations count characters of it.
"""

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from llama_index.core.schema import Document

from hierindex.errors import SourceError
from hierindex.progress import Progress, silent
from hierindex.record import PAGE_BREAK, PAGES

MAX_LINE = 1_000_000  # characters; what has a longer line is data, not text
UTF_8 = "utf-8"
FILE_NAME, TITLE = "file_name", "title"


@dataclass(frozen=True)
class Skipped:
    """A file that is no document of the index, and why."""

    path: str
    reason: str


class UnreadableError(Exception):
    """Why one file is passed over."""


def read_sources(
    sources: Sequence[str | Path], *, progress: Progress = silent
) -> tuple[list[Document], list[Skipped]]:
    """Documents of files and folders, in the order of the sources and of their paths.

    Parameters
    ----------
    sources : Sequence[str or Path]
        A folder is read with all its folders, hidden ones left out.

    Returns
    -------
    documents : list[Document]
        A document's id is its file's path relative to the folder it was found in.
    skipped : list[Skipped]
        Binary, empty and unreadable files.

    Raises
    ------
    SourceError
        If a source does not exist, if two files have the same id, or if no file is left.
    """
    for source in sources:
        if not Path(source).exists():
            raise SourceError(f"There is no file or folder {str(source)!r}.")
    files = [found for source in sources for found in _files(Path(source))]
    seen: dict[str, Path] = {}
    for document_id, path in files:
        if document_id in seen:
            raise SourceError(
                f"Two sources hold a document {document_id!r}: {seen[document_id]} and {path}; "
                "name a folder above both, or rename one."
            )
        seen[document_id] = path
    documents, skipped = [], []
    for i, (document_id, path) in enumerate(files, start=1):
        try:
            documents.append(_read(document_id, path))
        except (UnreadableError, OSError) as error:
            skipped.append(Skipped(document_id, str(error)))
        progress("read", i, len(files))
    if not documents:
        named = ", ".join(repr(str(source)) for source in sources)
        why = f"{skipped[0].path} {skipped[0].reason}" if skipped else "there is no file"
        raise SourceError(f"Nothing to index in {named}: {why}.")
    return documents, skipped


def _files(source: Path) -> Iterator[tuple[str, Path]]:
    if source.is_file():
        yield source.name, source
        return
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source)
        hidden = any(part.startswith(".") or part.endswith(".lance") for part in inside.parts)
        if path.is_file() and not hidden:
            yield inside.as_posix(), path


def _read(document_id: str, path: Path) -> Document:
    read = READERS.get(path.suffix.lower(), _read_text)
    document = read(path.read_bytes())
    if not document.text.strip():
        raise UnreadableError("is empty" if not document.text else "holds only blanks")
    longest = max(map(len, document.text.splitlines()))
    if longest > MAX_LINE:
        raise UnreadableError(f"has a line of {longest:,} characters, more than {MAX_LINE:,}")
    document.id_ = document_id
    document.metadata = {FILE_NAME: path.name, **document.metadata}
    document.excluded_embed_metadata_keys = list(document.metadata)
    document.excluded_llm_metadata_keys = [key for key in document.metadata if key != FILE_NAME]
    return document


def _read_text(data: bytes) -> Document:
    text, encoding = _decoded(data)
    if "\0" in text:
        raise UnreadableError("is not text")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Document(text=text, metadata={} if encoding == UTF_8 else {"encoding": encoding})


def _decoded(data: bytes) -> tuple[str, str]:
    """Text and encoding: UTF-8, or what a byte order mark or else the bytes themselves tell."""
    from charset_normalizer import from_bytes, is_binary

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        best = None if is_binary(data) else from_bytes(data).best()
        if best is None or (b"\0" in data and not best.bom):
            raise UnreadableError("is not text") from None
        if best.multi_byte_usage or best.coherence or best.bom:
            return str(best), best.encoding
        return data.decode("cp1252", errors="replace"), "cp1252"  # too short to tell; likeliest
    return text, UTF_8


def _read_html(data: bytes) -> Document:
    from bs4 import BeautifulSoup

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of text that looks like a path, of XML read as HTML
        soup = BeautifulSoup(data, "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    for element in soup(["script", "style", "template", "title"]):
        element.decompose()
    for element in soup(BLOCKS):
        element.insert_before("\n")
        element.insert_after("\n")
    lines = (" ".join(line.split()) for line in soup.get_text().splitlines())
    text = "\n".join(line for line in lines if line)
    return Document(text=text, metadata={TITLE: title} if title else {})


BLOCKS = re.compile(
    "^(address|article|aside|blockquote|br|caption|d[dlt]|div|figcaption|footer|form|h[1-6]|header|hr"
    "|li|main|nav|ol|p|pre|section|summary|table|t[dhr]|ul)$"
)


def _read_pdf(data: bytes) -> Document:
    from io import BytesIO

    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    notes = logging.getLogger("pypdf")  # of what it mends, or raises as well
    level = notes.level
    notes.setLevel(logging.CRITICAL)
    try:
        pages = [_whole(page.extract_text()) for page in PdfReader(BytesIO(data)).pages]
    except (PyPdfError, DependencyError, *MALFORMED) as error:
        raise UnreadableError(f"cannot be read as PDF ({error})") from error
    finally:
        notes.setLevel(level)
    if not "".join(pages).strip():
        raise UnreadableError("is a PDF without text")
    return Document(text=PAGE_BREAK.join(pages), metadata={PAGES: len(pages)})


def _whole(page: str) -> str:
    """A page's text without a form feed, and without the halves of UTF-16 that pypdf may leave."""
    text = page.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace(PAGE_BREAK, " ")


MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What pypdf stumbles over in a file whose objects are not what they should be."""

READERS: dict[str, Callable[[bytes], Document]] = {
    ".html": _read_html,
    ".htm": _read_html,
    ".pdf": _read_pdf,
}
"""By suffix; every other file is read as text."""
