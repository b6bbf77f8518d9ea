"""Reading of files and folders as documents.

Text and Markdown are read verbatim, with line breaks as `open()` reads them; HTML as the text of
its elements; PDF as the text of its pages, separated by form feeds. The offsets of citations count
characters of this text.
"""

import codecs
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from hierindex.errors import SourceError
from hierindex.progress import Progress, silent
from hierindex.record import PAGE_BREAK, PAGES

HEAD = 65_536  # bytes; a file is loaded only if they look like text
MAX_LINE = 1_000_000  # characters; a file with a longer line is data
MAX_DEPTH = 2048  # of HTML elements; lxml looks through all open ones at an end tag without start
MAX_TITLE = 1000  # characters; each chunk stores the title
FILE_NAME, TITLE = "file_name", "title"

Reader = Callable[[BinaryIO], tuple[str, dict[str, Any]]]
"""Returns the text and the metadata of an open file."""


@dataclass(frozen=True)
class Skipped:
    """A file that was not indexed, with the reason."""

    path: str
    reason: str


class UnreadableError(Exception):
    """The file cannot be read as a document; the message completes "The file ..."."""


def read_documents(
    *sources: str | Path, progress: Progress = silent
) -> tuple[list[Document], list[Skipped]]:
    """Read files and folders of text, Markdown, HTML and PDF, each file as one document.

    Parameters
    ----------
    *sources : str or Path
        Folders include their subfolders, but no hidden files and folders and no LanceDB
        tables. Links to folders are not followed.
    progress : Progress, optional
        Called after each file.

    Returns
    -------
    documents : list[Document]
        In the order of the sources and their paths. The id of a document is the path of its
        file relative to the source, with bytes that are not UTF-8 escaped.
    skipped : list[Skipped]
        The files that cannot be read as text.

    Raises
    ------
    SourceError
        If a source does not exist, two files have the same id, or no file can be read.
    """
    files: dict[str, Path] = {}
    for source in sources:
        if not str(source):
            raise SourceError("A source is an empty string; use '.' for the working directory.")
        try:
            Path(source).stat()
        except (OSError, ValueError):
            raise SourceError(f"The source {str(source)!r} cannot be found or read.") from None
        for document_id, path in _files(Path(source)):
            if document_id in files:
                raise SourceError(
                    f"{str(files[document_id])!r} and {str(path)!r} have the same document id "
                    f"{document_id!r}; index a common parent folder, or rename one."
                )
            files[document_id] = path
    documents, skipped = [], []
    for i, (document_id, path) in enumerate(files.items(), start=1):
        try:
            documents.append(_read(path, document_id))
        except UnreadableError as error:
            skipped.append(Skipped(document_id, str(error)))
        except OSError as error:
            skipped.append(Skipped(document_id, f"cannot be read ({error.strerror or error})"))
        progress("read", i, len(files))
    if not documents:
        names = ", ".join(repr(str(source)) for source in sources)
        why = f"{skipped[0].path} {skipped[0].reason}" if skipped else "there is no file"
        raise SourceError(f"Nothing to index in {names}: {why}.")
    return documents, skipped


class FileReader(BaseReader):
    """A LlamaIndex reader that reads a file into one document, like `read_documents`.

    Use as `SimpleDirectoryReader(folder, file_extractor={".pdf": FileReader()})`.
    """

    def load_data(
        self,
        file: str | Path,
        extra_info: Mapping[str, Any] | None = None,
        fs: Any = None,
    ) -> list[Document]:
        """Read one file.

        Parameters
        ----------
        file : str or Path
        extra_info : Mapping, optional
            Metadata to add; that of the file takes precedence.
        fs : fsspec.AbstractFileSystem, optional
            File system of the file; local by default.

        Raises
        ------
        SourceError
            If the file cannot be read as text.
        """
        document_id = _valid(str(file))
        try:
            if fs is None:
                document = _read(Path(file), document_id)
            else:
                with fs.open(str(file)) as opened:
                    document = _document(opened, document_id)
        except UnreadableError as error:
            raise SourceError(f"{document_id!r} {error}.") from error
        document.metadata = {**(extra_info or {}), **document.metadata}
        return [well_formed(document)]


def _files(source: Path) -> Iterator[tuple[str, Path]]:
    """Yield id and path of everything but readable folders, in the order of paths."""
    waiting = [source]
    while waiting:
        path = waiting.pop()
        inside = path.name if path == source else path.relative_to(source).as_posix()
        try:
            if path != source and path.is_symlink():
                raise NotADirectoryError
            entries = sorted(path.iterdir(), reverse=True)
        except OSError:
            yield _valid(inside), path
        else:
            waiting += [p for p in entries if p.name[0] != "." and p.suffix != ".lance"]


def _valid(name: str) -> str:
    r"""Return a file name as valid UTF-8, with invalid bytes escaped.

    >>> _valid("caf\udce9")
    'caf\\xe9'
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _read(path: Path, document_id: str) -> Document:
    path.stat()  # raises the reason why a path cannot be accessed
    if path.is_dir():
        link = path.is_symlink()
        raise UnreadableError("is a link to a folder" if link else "is a folder without permission")
    if not path.is_file():
        raise UnreadableError("is a pipe, a socket or a device")
    with path.open("rb") as file:
        return _document(file, document_id)


def _document(file: BinaryIO, document_id: str) -> Document:
    name = Path(document_id).name
    text, metadata = READERS.get(Path(name).suffix.lower(), _read_text)(file)
    if not text.strip():
        raise UnreadableError("is empty" if not text else "contains only white space")
    longest = max(map(len, text.splitlines()))
    if longest > MAX_LINE:
        raise UnreadableError(f"has a line of {longest:,} characters, more than {MAX_LINE:,}")
    metadata = {FILE_NAME: name, **metadata}
    document = Document(id_=document_id, text=text, metadata=metadata)
    document.excluded_embed_metadata_keys = list(metadata)
    document.excluded_llm_metadata_keys = [key for key in metadata if key != FILE_NAME]
    return well_formed(document)


def well_formed(document: Document) -> Document:
    """Return the document, or a copy without surrogates, which UTF-8 cannot encode.

    A pair of surrogates becomes its character, a lone surrogate U+FFFD.
    """
    values = json.dumps(document.to_dict(), ensure_ascii=False, default=str)
    try:
        values.encode()
    except UnicodeEncodeError:
        values = values.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return type(document).from_json(values)
    return document


def _read_text(file: BinaryIO) -> tuple[str, dict[str, Any]]:
    """Decode a file as UTF-8, or else in the detected encoding, which becomes metadata."""
    from charset_normalizer import from_bytes, is_binary
    from charset_normalizer.utils import any_specified_encoding

    data = file.read(HEAD)
    if b"\0" in data and not data.startswith(WITH_ZEROS):
        raise UnreadableError("is not text")
    data += file.read()
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
    return text.replace("\r\n", "\n").replace("\r", "\n"), metadata


WITH_ZEROS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
"""Byte order marks of texts with zero bytes; that of UTF-32-LE begins with that of UTF-16-LE."""


def _read_html(file: BinaryIO) -> tuple[str, dict[str, Any]]:
    """Return the text of the elements, with each block on separate lines, and the title."""
    from lxml import etree

    html, metadata = _read_text(file)
    found = _HtmlText()
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, target=found)
    data = html.encode("utf-8", "replace")
    for at in range(0, len(data) or 1, HEAD):  # an error of `found` surfaces after a part
        parser.feed(data[at : at + HEAD])
    parser.close()
    if found.title:
        metadata[TITLE] = found.title
    return "\n".join(line for line in found.lines if line.strip()), metadata


class _HtmlText:
    """Collects text while lxml parses.

    A tree of lxml would take quadratic time for an element's attributes.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.title = ""
        self._inline: list[str] = []
        self._title: list[str] = []
        self._open: Counter[str] = Counter()
        self._depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._end_line(tag)
        self._open[tag] += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError(f"has elements nested more than {MAX_DEPTH:,} deep")

    def data(self, text: str) -> None:
        if self._open["title"]:
            self._title.append(text)
        elif not any(self._open[tag] for tag in ("script", "style", "template")):
            self._inline.append(text)

    def end(self, tag: str) -> None:
        self._end_line(tag)
        self._open[tag] -= 1
        self._depth -= 1
        if tag == "title":
            self.title = self.title or "".join(self._title).strip()[:MAX_TITLE]
            self._title.clear()

    def close(self) -> None:
        """Do nothing; `html` has ended."""

    def _end_line(self, tag: str) -> None:
        if tag in BLOCKS:
            text = "".join(self._inline)
            self._inline.clear()
            flowing = (" ".join(line.split()) for line in text.splitlines())
            self.lines += [text.strip("\n")] if self._open["pre"] else flowing


BLOCKS = frozenset(
    "address article aside blockquote br caption dd div dl dt figcaption footer form h1 h2 h3 h4 "
    "h5 h6 header hr html li main nav ol p pre section summary table td th tr ul".split()
)


def _read_pdf(file: BinaryIO) -> tuple[str, dict[str, Any]]:
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
    return PAGE_BREAK.join(pages), {PAGES: len(pages)}


MALFORMED = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError),
    *(TypeError, ValueError),
)
"""Exceptions of pypdf for malformed files."""

READERS: dict[str, Reader] = {".html": _read_html, ".htm": _read_html, ".pdf": _read_pdf}
"""Readers by suffix; other files are read as text."""
