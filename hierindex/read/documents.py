"""Files and folders as documents."""

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, BinaryIO, Self

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from hierindex.cache.readings import ReadingCache
from hierindex.errors import SourceError
from hierindex.node import FILE_NAME, HEADINGS, LEFT_OUT, MODIFIED, PAGES, TITLE, Heading
from hierindex.progress import Progress, silent
from hierindex.read.book import read_epub
from hierindex.read.files import File, files_of, is_link, nothing_to_index, quoted, valid_name
from hierindex.read.html import is_html, read_html
from hierindex.read.mail import (
    read_calendar,
    read_mail,
    read_mailbox,
    read_outlook,
    read_web_archive,
)
from hierindex.read.markdown import read_markdown, read_notebook
from hierindex.read.office import OLD, read_old
from hierindex.read.pdf import read_pdf
from hierindex.read.plain import read_plain, read_rst
from hierindex.read.records import read_csv, read_json
from hierindex.read.remembered import content_hash, named_by, read_once
from hierindex.read.rtf import read_rtf, read_unnamed
from hierindex.read.sheets import read_excel
from hierindex.read.slides import read_powerpoint
from hierindex.read.source import PYTHON, SUFFIXES, read_python, read_source
from hierindex.read.subtitles import read_subtitles
from hierindex.read.text import HEAD, Reading, UnreadableError, is_binary_head
from hierindex.read.word import read_word
from hierindex.text.characters import composed

MAX_LINE = 1_000_000  # characters; a file with a longer line is data
ATTEMPTS = 3  # to read a file that changes

Reader = Callable[[BinaryIO], Reading]
"""Reads an open file."""

READERS: dict[str, Reader] = {
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xht"), read_html),
    **dict.fromkeys((".md", ".markdown"), read_markdown),
    **dict.fromkeys((".docx", ".docm"), read_word),
    **dict.fromkeys((".pptx", ".pptm"), read_powerpoint),
    **dict.fromkeys((".xlsx", ".xlsm"), read_excel),
    **dict.fromkeys((".csv", ".tsv"), read_csv),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), read_json),
    **dict.fromkeys(PYTHON, read_python),
    **dict.fromkeys(SUFFIXES, read_source),
    **dict.fromkeys((".srt", ".vtt"), read_subtitles),
    **{suffix: partial(read_old, suffix) for suffix in OLD},
    ".pdf": read_pdf,
    ".rst": read_rst,
    ".rtf": read_rtf,
    ".txt": read_plain,
    ".epub": read_epub,
    ".eml": read_mail,
    ".mbox": read_mailbox,
    ".ics": read_calendar,
    **dict.fromkeys((".mht", ".mhtml"), read_web_archive),
    ".msg": read_outlook,
    ".ipynb": read_notebook,
}
"""Readers by suffix; other files are read as text."""

NAMED = {
    *PYTHON,
    *SUFFIXES,
    ".html",
    ".htm",
    ".xhtml",
    ".xht",
    ".mbox",
    ".docx",
    ".docm",
    ".xlsx",
    ".xlsm",
    ".pdf",
}
"""Suffixes of files whose first heading is no title of the whole."""


@dataclass(frozen=True)
class Skipped:
    """A file that was not indexed, with the reason.

    `is_unread` says whether the file or folder could not be read at all, so that its content is
    unknown.
    """

    path: str
    reason: str
    is_unread: bool = False

    def to_json(self) -> dict[str, str]:
        """Return what the command line prints of it."""
        return {"path": self.path, "reason": self.reason}


@dataclass(frozen=True)
class FileContent:
    """How much was read of a file, and what was not.

    `kind` is the file's suffix, or "text". `pages` is None where there are none. `left_out` are
    short phrases on what the file has besides its text, such as "2 of 5 pages have no text".
    """

    path: str
    kind: str
    pages: int | None
    words: int
    left_out: list[str]

    @classmethod
    def of(cls, document: Document) -> Self:
        """Count what a document has."""
        pages, left_out = document.metadata.get(PAGES), document.metadata.get(LEFT_OUT)
        return cls(
            document.doc_id,
            Path(document.doc_id).suffix[1:].lower() or "text",
            pages if isinstance(pages, int) else None,
            len(document.text.split()),
            [*map(str, left_out)] if isinstance(left_out, list) else [],
        )


def read_documents(
    *sources: str | Path, progress: Progress = silent, memory: ReadingCache | None = None
) -> tuple[list[Document], list[Skipped]]:
    """Read files and folders, each file as one document.

    Text, Markdown, HTML, RTF, PDF, Word, EPUB, CSV, JSON, notebooks, e-mails, mailboxes, calendars
    and subtitles are read; with the extra `hierindex[office]` also PowerPoint, Excel and messages
    of Outlook.

    Parameters
    ----------
    *sources : str or Path
        Folders include their subfolders, but no hidden files and folders and no LanceDB
        tables. Links to folders are not followed, and of a file and links to it, or of several
        links to a file, one is read.
    progress : Progress, optional
        Called after each file.
    memory : ReadingCache, optional
        Recalls what was read of files with the same contents.

    Returns
    -------
    documents : list[Document]
        In the order of the sources and their paths. The id of a document is the path of its
        file relative to the source, with bytes that are not UTF-8 escaped. Metadata are its
        `file_name`, `file_path` (the id), `folder`, `last_modified_date` and `title`, the
        entries of Markdown's front matter, `author` and `date` of HTML, and its `headings`, each
        of them a list of its level, title, first character and, of HTML, anchor. `left_out`
        lists, in a few words each, what the file has that was not read.
    skipped : list[Skipped]
        The files that cannot be read as text, and links to files that are read.

    Raises
    ------
    SourceError
        If a source does not exist, two files have the same id, or no file can be read.
    """
    documents, skipped = read_files(files_of(sources), progress=progress, memory=memory)
    if not documents:
        raise nothing_to_index(sources, skipped)
    return documents, skipped


def read_files(
    files: Mapping[str, File], *, progress: Progress = silent, memory: ReadingCache | None = None
) -> tuple[list[Document], list[Skipped]]:
    """Read files by document id, as `read_documents` does; there may be nothing to read."""
    found = dict(each_file(files, progress=progress, memory=memory))
    each = [found[document_id] for document_id in files]
    return [d for d in each if isinstance(d, Document)], [s for s in each if isinstance(s, Skipped)]


def each_file(
    files: Mapping[str, File], *, progress: Progress = silent, memory: ReadingCache | None = None
) -> Iterator[tuple[str, Document | Skipped]]:
    """Read files one after the other, links last, and yield what each is with its document id."""
    read = dict[str, str]()
    in_turn = sorted(files.items(), key=lambda file: is_link(file[1].path))
    for i, (document_id, (path, _)) in enumerate(in_turn, start=1):
        target = os.path.realpath(path)
        try:
            if target in read and is_link(path):
                raise UnreadableError(f"is a link to {quoted(read[target])}, which is read")
            found: Document | Skipped = _read(path, document_id, memory)
            read[target] = document_id
        except UnreadableError as error:
            found = Skipped(document_id, str(error))
        except OSError as error:
            reason = f"cannot be read ({error.strerror or error})"
            found = Skipped(document_id, reason, is_unread=True)
        if memory is not None:
            memory.read_for(content_hash(found) if isinstance(found, Document) else None)
        yield document_id, found
        progress("read", i, len(files))


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
        document_id = valid_name(str(file))
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


def _read(path: Path, document_id: str, memory: ReadingCache | None = None) -> Document:
    """Read a file, and read it again if it changed meanwhile."""
    for _ in range(ATTEMPTS):
        found, refusal = path.stat(), None  # raises the reason why a path cannot be accessed
        _check_kind(path, found)
        with path.open("rb") as file:
            try:
                document = _document(file, document_id, memory, **_dated(found.st_mtime))
            except UnreadableError as error:
                refusal = error
        after = path.stat()
        if (after.st_size, after.st_mtime_ns) == (found.st_size, found.st_mtime_ns):
            if refusal:
                raise refusal
            return document
    raise OSError("it is being written")


def _check_kind(path: Path, found: os.stat_result) -> None:
    """Raise an error unless a path is that of a file with content."""
    if stat.S_ISDIR(found.st_mode):
        if path.is_symlink():
            raise UnreadableError("is a link to a folder")
        raise PermissionError("a folder without permission")
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableError("is a pipe, a socket or a device")
    if not found.st_size:  # also of files in /proc, which may wait for ever
        raise UnreadableError("is empty")


def is_data(path: Path) -> bool:
    """Return whether a file is skipped because its first bytes are not text."""
    if path.suffix.lower() in READERS or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return is_binary_head(file.read(HEAD))
    except OSError:  # as of a file without permission, which an update names
        return False


def _dated(seconds: float) -> dict[str, str]:
    """Return the day of a time as metadata, or nothing for years that dates cannot have."""
    try:
        return {MODIFIED: datetime.fromtimestamp(seconds, UTC).date().isoformat()}
    except (ValueError, OverflowError, OSError):
        return {}


def _document(
    file: BinaryIO, document_id: str, memory: ReadingCache | None = None, **more: Any
) -> Document:
    suffix = Path(document_id).suffix.lower()
    reader = READERS.get(suffix)
    if reader in (None, read_plain) and is_html(file):
        reader = read_html
    if reader is not None:
        text, read, headings = read_once(reader, suffix, file, memory)
    else:  # decoding is all, and the file may be large
        text, read, headings = read_unnamed(file)
    if not text.strip():
        raise UnreadableError("is empty" if not text else "contains only white space")
    if (longest := max(map(len, text.splitlines()))) > MAX_LINE:
        raise UnreadableError(
            f"has a line of {longest:,} characters, more than {MAX_LINE:,}; divide it into lines"
        )
    text, headings = _composed(text, headings)
    named = named_by(document_id)
    metadata = {**read, **named, **more}
    if headings:
        title = named[FILE_NAME] if suffix in NAMED else headings[0].title
        metadata.setdefault(TITLE, title)
        metadata[HEADINGS] = [list(heading) for heading in headings]
    document = Document(id_=document_id, text=text, metadata=metadata)
    document.excluded_embed_metadata_keys = list(metadata)
    document.excluded_llm_metadata_keys = [key for key in metadata if key != FILE_NAME]
    return well_formed(document)


def _composed(text: str, headings: Sequence[Heading]) -> tuple[str, Sequence[Heading]]:
    """Return a text in its composed form, and the headings at their places in it."""
    if composed(text) == text:
        return text, headings
    starts = [0, *(heading.start for heading in headings), len(text)]
    parts = [composed(text[start:end]) for start, end in pairwise(starts)]
    places = [*accumulate(map(len, parts))][:-1]
    return "".join(parts), [
        heading._replace(title=composed(heading.title), start=place)
        for heading, place in zip(headings, places, strict=True)
    ]


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
