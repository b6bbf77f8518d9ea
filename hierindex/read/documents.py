"""Files and folders as documents."""

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, BinaryIO, Self

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from hierindex.cache import Readings
from hierindex.core.identity import document_key, file_of, name_of
from hierindex.errors import SourceError
from hierindex.node import FILE_NAME, HEADINGS, LEFT_OUT, MODIFIED, PAGES, TITLE, Heading
from hierindex.progress import Progress, silent
from hierindex.read.book import read_epub
from hierindex.read.files import (
    File,
    files_of,
    is_link,
    nothing_to_index,
    quoted,
    valid_name,
)
from hierindex.read.html import read_html
from hierindex.read.mail import (
    ATTACHED,
    attachments,
    attachments_of_outlook,
    mails,
    read_calendar,
    read_mail,
    read_mailbox,
    read_outlook,
    read_web_archive,
    short_digest,
)
from hierindex.read.markdown import read_markdown, read_notebook
from hierindex.read.office import OLD, read_old
from hierindex.read.pdf import read_pdf
from hierindex.read.plain import read_plain, read_rst, read_unnamed
from hierindex.read.records import read_csv, read_json
from hierindex.read.remembered import Part, content_hash, named_by, opened, read_once
from hierindex.read.rtf import read_rtf
from hierindex.read.sheets import read_excel
from hierindex.read.slides import read_powerpoint
from hierindex.read.source import PYTHON, SUFFIXES, read_python, read_source
from hierindex.read.subtitles import read_subtitles
from hierindex.read.text import (
    HEAD,
    MAX_BYTES,
    Reading,
    UnreadableError,
    counted,
    is_binary_head,
)
from hierindex.read.word import read_word
from hierindex.text.characters import composed

MAX_LINE = 1_000_000  # characters; a file with a longer line is data
ATTEMPTS = 3  # to read a file that changes
MAX_DEPTH = 4  # of parts in parts, as of an attachment of an e-mail in a mailbox
MAX_ATTACHMENTS = 1000  # of an e-mail that are read
MAX_NAME = 100  # characters of the name of a part
NO_NAME = re.compile(r"[\x00-\x1f\x7f/\\#\ud800-\udfff]")  # what names of parts have not
SURROGATE = re.compile("[\ud800-\udfff]")
DELETED = "was deleted from the index; name the file as a source to add it again"

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

PARTS: dict[str, Callable[[BinaryIO], Iterator[tuple[str, bytes]]]] = {
    ".eml": attachments,
    ".mbox": mails,
    ".msg": attachments_of_outlook,
}
"""What yields the files in a file, with their names, by suffix."""

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
            Path(name_of(document.doc_id)).suffix[1:].lower() or "text",
            pages if isinstance(pages, int) else None,
            len(document.text.split()),
            [*map(str, left_out)] if isinstance(left_out, list) else [],
        )


def read_documents(
    *sources: str | Path, progress: Progress = silent, memory: Readings | None = None
) -> tuple[list[Document], list[Skipped]]:
    """Read files and folders, each file as one document, of mails and mailboxes as several.

    Text, Markdown, HTML, web archives, RTF, PDF, Word, EPUB, CSV, JSON, notebooks, e-mails,
    mailboxes, calendars and subtitles are read; with the extra `hierindex[office]` also PowerPoint,
    Excel and messages of Outlook.

    Parameters
    ----------
    *sources : str or Path
        Folders include their subfolders, but no hidden files and folders and no LanceDB
        tables. Links to folders are not followed, and of a file and links to it, or of several
        links to a file, one is read.
    progress : Progress, optional
        Called after each file.
    memory : Readings, optional
        Recalls what was read of files with the same contents.

    Returns
    -------
    documents : list[Document]
        In the order of the sources and their paths. The id of a document is the path of its
        file relative to the source, with bytes that are not UTF-8 escaped. The mails of a mailbox
        and the attachments of a mail that can be read are documents of their own, whose ids are
        that of the file, "#" and their name. Metadata are `file_name` (of an attachment, its
        own), `file_path`, `folder`, `last_modified_date` and `title`, the entries of Markdown's
        front matter, `author` and `date` of HTML, PDF, books and office files, `from`, `to`, `cc`
        and `date` of mails, and `headings`, each of them a list of its level, title, first
        character and, of HTML, anchor. `left_out` lists, in a few words each, what the file has
        that was not read.
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
    files: Mapping[str, File], *, progress: Progress = silent, memory: Readings | None = None
) -> tuple[list[Document], list[Skipped]]:
    """Read files by document id, as `read_documents` does; there may be nothing to read."""
    found = dict(each_file(files, progress=progress, memory=memory))
    each = [one for document_id in files for one in found[document_id]]
    return [d for d in each if isinstance(d, Document)], [s for s in each if isinstance(s, Skipped)]


def each_file(
    files: Mapping[str, File], *, progress: Progress = silent, memory: Readings | None = None
) -> Iterator[tuple[str, list[Document | Skipped]]]:
    """Read files one after the other, links last, and yield the documents of each with its id."""
    read = dict[str, str]()
    in_turn = sorted(files.items(), key=lambda file: is_link(file[1].path))
    for i, (document_id, file) in enumerate(in_turn, start=1):
        target = os.path.realpath(file.path)
        found: list[Document | Skipped]
        try:
            if document_key(document_id) in file.left_out:
                raise UnreadableError(DELETED)
            if target in read and is_link(file.path):
                raise UnreadableError(f"is a link to {quoted(read[target])}, which is read")
            found = _read(file, document_id, memory)
            read[target] = document_id
        except UnreadableError as error:
            found = [Skipped(document_id, str(error))]
        except OSError as error:
            reason = f"cannot be read ({error.strerror or error})"
            found = [Skipped(document_id, reason, is_unread=True)]
        if memory is not None:
            memory.recent()  # of what makes no document
        yield document_id, found
        progress("read", i, len(files))


class FileReader(BaseReader):
    """A LlamaIndex reader that reads a file into its documents, like `read_documents`.

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
                found = _read(File(Path(file), ""), document_id)
            else:
                with fs.open(str(file)) as remote:
                    found = _Documents().of(remote, document_id)
        except UnreadableError as error:
            raise SourceError(f"{document_id!r} {error}.") from error
        documents = [each for each in found if isinstance(each, Document)]
        if not documents:  # as of a mailbox of empty mails
            raise SourceError(f"{document_id!r} has no document that can be read.")
        for document in documents:
            document.metadata = {**(extra_info or {}), **document.metadata}
        return [*map(well_formed, documents)]


def _read(file: File, document_id: str, memory: Readings | None = None) -> list[Document | Skipped]:
    """Read a file, and read it again if it changed meanwhile."""
    path = file.path
    for _ in range(ATTEMPTS):
        found, refusal = path.stat(), None  # raises the reason why a path cannot be accessed
        _check_kind(path, found)
        with path.open("rb") as data:
            try:
                reading = _Documents(memory, file.left_out, _dated(found.st_mtime))
                documents = reading.of(data, document_id)
            except UnreadableError as error:
                refusal = error
        after = path.stat()
        if (after.st_size, after.st_mtime_ns) == (found.st_size, found.st_mtime_ns):
            if refusal:
                raise refusal
            return documents
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


@dataclass
class _Documents:
    """Reads the documents of a file: its own, and those of its parts.

    Attributes
    ----------
    memory : Readings or None
    left_out : Set[str]
        Keys of documents that are not to be read.
    more : Mapping[str, str]
        Metadata of all.
    room : int
        Characters that the texts of parts may have.
    """

    memory: Readings | None = None
    left_out: Set[str] = frozenset()
    more: Mapping[str, str] = field(default_factory=dict)
    room: int = MAX_BYTES

    def of(
        self, file: BinaryIO | Part, document_id: str, depth: int = 0
    ) -> list[Document | Skipped]:
        """Return the document of a file or a part, and those inside it."""
        if not depth and (other := file_of(document_id)) != document_id:
            raise UnreadableError(f"is named as a part of {quoted(other)} would be; rename it")
        suffix = Path(name_of(document_id)).suffix.lower()
        text, read, headings = self._reading(file, suffix)
        n_attached = read.pop(ATTACHED, 0) if suffix in PARTS else 0
        most = MAX_ATTACHMENTS if depth < MAX_DEPTH else 0
        parts = [*self._parts(file, suffix, text, n_attached)] if most else []
        used = self._recent()
        inside, refused = list[Document | Skipped](), list[Skipped]()
        for part in parts:
            part_id = f"{document_id}#{part.name}"
            try:
                if document_key(part_id) in self.left_out:
                    inside.append(Skipped(part_id, DELETED))
                else:
                    inside += self.of(part, part_id, depth + 1)
            except UnreadableError as error:
                refused.append(Skipped(part_id, str(error)))
                used |= self._recent()
        if not text.strip() and (inside or refused):  # a mailbox
            for first in [each for each in inside if isinstance(each, Document)][:1]:
                self._note(first, used)
            return [*inside, *refused]
        left_out = [f"{name_of(part.path)} {part.reason}" for part in refused]
        if n_attached > most:
            left_out.append(counted(n_attached - most, "attachment"))
        if left_out:
            read[LEFT_OUT] = [*read.get(LEFT_OUT, []), *left_out]
        document = _document(document_id, suffix, Reading(text, read, headings), **self.more)
        if depth and len(text) > self.room:
            raise UnreadableError("has more text than fits in the file with other parts")
        self.room -= len(text) if depth else 0
        self._note(document, used)
        return [document, *inside]

    def _reading(self, file: BinaryIO | Part, suffix: str) -> Reading:
        reader = READERS.get(suffix)
        if reader is None and not isinstance(file, Part):
            return read_unnamed(file)  # decoding is all, and the file may be large
        return read_once(reader or read_unnamed, suffix, file, self.memory)

    def _parts(
        self, file: BinaryIO | Part, suffix: str, text: str, n_attached: int
    ) -> Iterator[Part]:
        """Yield the files in a file: the mails of a mailbox, or the attachments of a mail."""
        if suffix not in PARTS or (text and not n_attached):
            return
        most = MAX_ATTACHMENTS if text else None  # of mails in a mailbox, all

        @cache
        def contents() -> dict[str, bytes]:
            if not isinstance(file, Part):
                file.seek(0)
            return _named_apart(islice(PARTS[suffix](opened(file)), most))

        def load(name: str) -> bytes:
            return contents()[name]

        def listed(_: object) -> Reading:
            named = contents().items()
            return Reading("", {name: sha256(data).hexdigest() for name, data in named})

        # The cache has no names of mails, which may be deleted from the index.
        memory = self.memory if text else None
        for name, content in read_once(listed, f"{suffix} parts", file, memory).metadata.items():
            yield Part(name, content, partial(load, name))

    def _note(self, document: Document, used: Set[str]) -> None:
        if self.memory is not None:
            self.memory.note(content_hash(document), used)

    def _recent(self) -> set[str]:
        return set() if self.memory is None else self.memory.recent()


def _named_apart(parts: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """Return parts by names that a path can end with; of equal names, each tells its content.

    >>> [*_named_apart([("a/b.txt", b"1"), ("a_b.txt", b"2"), ("..", b"")])]
    ['a_b (6b86b2).txt', 'a_b (d4735e).txt', '..']
    """
    named = list[tuple[str, str, bytes]]()
    for name, data in parts:
        path = Path(" ".join(NO_NAME.sub("_", name).split()))
        suffix = path.suffix[:MAX_NAME]
        named.append((path.stem[: MAX_NAME - len(suffix)] or "unnamed", suffix, data))
    n_same = Counter(stem + suffix for stem, suffix, _ in named)
    return {
        stem + (f" ({short_digest(data)})" if n_same[stem + suffix] > 1 else "") + suffix: data
        for stem, suffix, data in named
    }


def _document(document_id: str, suffix: str, reading: Reading, **more: Any) -> Document:
    text, headings = _composed(reading.text, reading.headings)
    read = _repaired(reading.metadata)
    if not text.strip():
        left_out = "; ".join(map(str, read.get(LEFT_OUT, ())))
        if left_out:
            raise UnreadableError(f"has no text, but {left_out}")
        raise UnreadableError("is empty" if not text else "contains only white space")
    if (longest := max(map(len, text.splitlines()))) > MAX_LINE:
        raise UnreadableError(
            f"has a line of {longest:,} characters, more than {MAX_LINE:,}; divide it into lines"
        )
    named = named_by(document_id)
    metadata = {**read, **named, **more}
    if headings:
        title = named[FILE_NAME] if suffix in NAMED else headings[0].title
        metadata.setdefault(TITLE, title)
        metadata[HEADINGS] = [list(heading) for heading in headings]
    document = Document(id_=document_id, text=text, metadata=metadata)
    document.excluded_embed_metadata_keys = list(metadata)
    document.excluded_llm_metadata_keys = [key for key in metadata if key != FILE_NAME]
    return document


def _composed(text: str, headings: Sequence[Heading]) -> tuple[str, Sequence[Heading]]:
    """Return a text as `_repaired` does, and the headings at their places in it."""
    if _repaired(text) == text:
        return text, headings
    starts = [0, *(heading.start for heading in headings), len(text)]
    parts = [_repaired(text[start:end]) for start, end in pairwise(starts)]
    places = [*accumulate(map(len, parts))][:-1]
    return "".join(parts), [
        heading._replace(title=_repaired(heading.title), start=place)
        for heading, place in zip(headings, places, strict=True)
    ]


def _repaired(value: Any) -> Any:
    """Return what a file says in its composed form, without surrogates and null characters."""
    if isinstance(value, str):
        return composed(_paired(value).replace("\0", ""))
    if isinstance(value, dict):
        return {_repaired(key): _repaired(each) for key, each in value.items()}
    return [*map(_repaired, value)] if isinstance(value, list | tuple) else value


def _paired(text: str) -> str:
    """Return a text that UTF-8 can encode.

    A pair of surrogates becomes its character, a lone surrogate U+FFFD.
    """
    if SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def well_formed(document: Document) -> Document:
    """Return the document, or a copy without surrogates, which UTF-8 cannot encode."""
    values = json.dumps(document.to_dict(), ensure_ascii=False, default=str)
    paired = _paired(values)
    return document if paired == values else type(document).from_json(paired)
