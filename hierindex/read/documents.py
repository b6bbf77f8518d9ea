"""Reading of files and folders as documents, with attachments and other parts of files."""

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import distributions
from io import BytesIO
from itertools import accumulate, pairwise
from pathlib import Path
from time import gmtime, strftime
from typing import Any, BinaryIO, Self

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from hierindex.cache import Readings
from hierindex.core.identity import digest, document_key, file_of, name_of
from hierindex.errors import SourceError
from hierindex.node import FILE_NAME, HEADINGS, LEFT_OUT, MODIFIED, PAGES, TITLE, headings_in
from hierindex.progress import Progress, silent
from hierindex.read import (
    html,
    mail,
    markdown,
    office,
    pdf,
    plain,
    records,
    rtf,
    sheets,
    slides,
    word,
)
from hierindex.read.files import (
    File,
    Skipped,
    files_of,
    is_link,
    nothing_to_index,
    quoted,
    valid_name,
)
from hierindex.read.text import MAX_BYTES, Reading, UnreadableError
from hierindex.text.characters import paired, repaired

ATTEMPTS = 2  # to read a file that changes
MAX_LINE = 1_000_000  # characters; a file with a longer line is data
MAX_DEPTH = 4  # of parts in parts, as of an attachment of an e-mail in a mailbox
MAX_NAME = 100  # characters of the name of a part
NO_NAME = re.compile(r"[\x00-\x1f\x7f/\\#\ud800-\udfff]")  # characters replaced in a part's name
DELETED = "was deleted from the index; name the file as a source to add it again"
LIBRARIES = (
    "hierindex chardetng-py lxml markdown-it-py openpyxl pypdfium2 python-oxmsg python-pptx pyyaml"
).split()
"""Packages whose versions may change how files are read."""
SHOWN = {  # fields of a document that determine how its chunks show metadata
    "excluded_embed_metadata_keys",
    "excluded_llm_metadata_keys",
    "metadata_separator",
    "metadata_template",
    "text_template",
}

READERS: dict[str, Callable[[BinaryIO], Reading]] = {
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xht"), html.read_html),
    **dict.fromkeys((".md", ".markdown"), markdown.read_markdown),
    **dict.fromkeys((".docx", ".docm"), word.read_word),
    **dict.fromkeys((".pptx", ".pptm"), slides.read_powerpoint),
    **dict.fromkeys((".xlsx", ".xlsm"), sheets.read_excel),
    **dict.fromkeys((".csv", ".tsv"), records.read_csv),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), records.read_json),
    **dict.fromkeys(plain.PYTHON, plain.read_python),
    **dict.fromkeys(plain.SUFFIXES, plain.read_source),
    **dict.fromkeys((".srt", ".vtt"), plain.read_subtitles),
    **dict.fromkeys((".eml", ".msg"), mail.read_mail),
    **dict.fromkeys((".mht", ".mhtml"), mail.read_web_archive),
    ".pdf": pdf.read_pdf,
    ".rst": plain.read_rst,
    ".rtf": rtf.read_rtf,
    ".txt": plain.read_plain,
    ".epub": office.read_epub,
    ".mbox": mail.read_mailbox,
    ".ics": mail.read_calendar,
    ".ipynb": markdown.read_notebook,
}
"""Readers by suffix; other files are read as text."""

PARTS: dict[str, Callable[[BinaryIO], Iterator[tuple[str, bytes]]]] = {
    ".eml": mail.attachments,
    ".mbox": mail.mails,
    ".msg": mail.attachments,
}
"""Functions that yield the files in a file, with their names, by suffix."""

NAMED = {*plain.PYTHON, *plain.SUFFIXES}
NAMED |= {*".html .htm .xhtml .xht .mbox .docx .docm .xlsx .xlsm .pdf".split()}
"""Suffixes of files whose first heading is no title of the whole."""


@dataclass(frozen=True)
class FileContent:
    """How much of a file was read, and which parts were left out.

    `path` is the document id, and `kind` the file's suffix without dot, or "text". `pages` is None
    for files without pages. `left_out` has short notes on parts that were not read, such as "2 of
    5 pages have no text".
    """

    path: str
    kind: str
    pages: int | None
    words: int
    left_out: list[str]

    @classmethod
    def of(cls, document: Document) -> Self:
        """Count the pages and words of a document."""
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
    """Read files and folders: one document per file, several for e-mails and mailboxes.

    Text, source code, Markdown, HTML, web archives, RTF, PDF, Word, EPUB, CSV, JSON, notebooks,
    e-mails, mailboxes, calendars and subtitles are read. The extra `hierindex[office]` adds
    PowerPoint, Excel and Outlook messages.

    Parameters
    ----------
    *sources : str or Path
        Folders are read recursively; hidden files and folders, backups ("~") and LanceDB tables are
        skipped. Links to folders are not followed. A file that is reached by several links is read
        once.
    progress : Progress, optional
        Called after each file.
    memory : Readings, optional
        Cache of file texts, keyed by file content.

    Returns
    -------
    documents : list[Document]
        In the order of the sources, and within a source sorted by path. The id of a document is the
        path of its file relative to the source, or the file's name if the source is a file, with
        invalid UTF-8 bytes escaped. Each e-mail of a mailbox and each readable attachment is a
        document of its own, with the id "file id#name".

        The metadata has `file_name` (for an attachment, its own name), `file_path`, `folder`,
        `last_modified_date` and `title`; the front matter of Markdown; `author` and `date` of HTML,
        PDF, books and office files; `from`, `to`, `cc` and `date` of e-mails; `headings`, a list of
        [level, title, character offset], with an anchor as the fourth item for HTML; and
        `left_out`, short notes on parts that were not read.
    skipped : list[Skipped]
        Files that cannot be read as text, and links to files already read.

    Raises
    ------
    SourceError
        If a source does not exist, two files have the same id, or no file can be read.
    """
    files = files_of(sources)
    found = dict(each_file(files, progress=progress, memory=memory))
    each = [one for document_id in files for one in found[document_id]]
    documents = [one for one in each if isinstance(one, Document)]
    skipped = [one for one in each if isinstance(one, Skipped)]
    if not documents:
        raise nothing_to_index(sources, skipped)
    return documents, skipped


def each_file(
    files: Mapping[str, File], *, progress: Progress = silent, memory: Readings | None = None
) -> Iterator[tuple[str, list[Document | Skipped]]]:
    """Read files one by one, links last; yield the id and the documents of each."""
    read = dict[str, str]()
    in_turn = sorted(files.items(), key=lambda file: is_link(file[1].path))
    for i, (document_id, file) in enumerate(in_turn):
        progress("read", i, len(files))
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
        yield document_id, found
    progress("read", len(files), len(files))


class FileReader(BaseReader):
    """A LlamaIndex reader that reads a file into documents, like `read_documents`.

    Use it as in `SimpleDirectoryReader(folder, file_extractor={".pdf": FileReader()})`.
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
            Metadata to add; the file's own metadata takes precedence.
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
                    found = Documents().of(remote, document_id)
        except UnreadableError as error:
            raise SourceError(f"{document_id!r} {error}.") from error
        documents = [each for each in found if isinstance(each, Document)]
        if not documents:  # as of a mailbox of empty mails
            raise SourceError(f"{document_id!r} has no document that can be read.")
        for document in documents:
            document.metadata = {**(extra_info or {}), **document.metadata}
        return documents


def _read(file: File, document_id: str, memory: Readings | None = None) -> list[Document | Skipped]:
    """Read a file, and once again if it changed meanwhile."""
    for _ in range(ATTEMPTS):
        found, refusal = file.path.stat(), None  # raises the reason why there is no access
        _check_kind(file.path, found)
        day = strftime("%Y-%m-%d", gmtime(found.st_mtime))
        with file.path.open("rb") as data:
            try:
                documents = Documents(memory, file.left_out, {MODIFIED: day}).of(data, document_id)
            except UnreadableError as error:
                refusal = error
        after = file.path.stat()
        if (after.st_size, after.st_mtime_ns) == (found.st_size, found.st_mtime_ns):
            if refusal:
                raise refusal
            return documents
    raise OSError("it is being written")


def _check_kind(path: Path, found: os.stat_result) -> None:
    """Raise an error unless a path is a file with content."""
    if stat.S_ISDIR(found.st_mode):
        if path.is_symlink():
            raise UnreadableError("is a link to a folder")
        raise PermissionError("a folder without permission")
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableError("is a pipe, a socket or a device")
    if not found.st_size:  # also of files in /proc, which may wait for ever
        raise UnreadableError("is empty")


@dataclass
class Documents:
    """Reads the documents in a file: its own and those of its parts.

    Attributes
    ----------
    memory : Readings or None
    left_out : Set[str]
        Keys of documents not to read.
    more : Mapping[str, str]
        Metadata to add to all documents.
    """

    memory: Readings | None = None
    left_out: Set[str] = frozenset()
    more: Mapping[str, str] = field(default_factory=dict)

    def of(self, file: BinaryIO, document_id: str, depth: int = 0) -> list[Document | Skipped]:
        """Return the document of a file or a part, and the documents inside it."""
        if not depth and (other := file_of(document_id)) != document_id:
            raise UnreadableError(f"is named like a part of {quoted(other)}; rename it")
        suffix = Path(name_of(document_id)).suffix.lower()
        reading, key = self._read(file, suffix)
        n_attached = reading.metadata.pop(mail.ATTACHED, 0) if suffix in PARTS else 0
        parts = dict[str, bytes]()
        if suffix in PARTS and (n_attached or not reading.text) and depth < MAX_DEPTH:
            file.seek(0)
            parts = _named_apart(PARTS[suffix](file))
        inside, refused = list[Document | Skipped](), list[Skipped]()
        for name, data in parts.items():
            part_id = f"{document_id}#{name}"
            try:
                if document_key(part_id) in self.left_out:
                    inside.append(Skipped(part_id, DELETED))
                else:
                    inside += self.of(BytesIO(data), part_id, depth + 1)
            except UnreadableError as error:
                refused.append(Skipped(part_id, str(error)))
        if not reading.text.strip() and (inside or refused):  # a mailbox
            return [*inside, *refused]
        unread = [f"{name_of(part.path)} {part.reason}" for part in refused]
        reading.leaving_out({"attachment": 0 if parts else n_attached}, unread)
        document = _document(document_id, suffix, reading, **self.more)
        if key and self.memory is not None:
            self.memory.note(content_hash(document), key)
        return [document, *inside]

    def _read(self, file: BinaryIO, suffix: str) -> tuple[Reading, str]:
        """Read a file, or recall the result if the same reader has read the same bytes before.

        Also return the key of the reading in the cache; "" if it is not cached.
        """
        reader = READERS.get(suffix, plain.read_unnamed)
        if self.memory is None or suffix not in READERS or file.seek(0, os.SEEK_END) > MAX_BYTES:
            file.seek(0)
            return reader(file), ""
        file.seek(0)
        data = file.read()  # once, so that what is read is what is hashed
        key = digest("reading", _made_by(), suffix, sha256(data).hexdigest())
        if found := self.memory.recall(key):
            text, metadata, headings = found
            return Reading(text, metadata, headings_in({HEADINGS: headings})), key
        reading = reader(BytesIO(data))
        self.memory.keep(key, reading)
        return reading, key


def _named_apart(parts: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """Return parts by names that can end a path; parts of the same name get digests of contents.

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
        stem + (f" ({mail.short_digest(data)})" if n_same[stem + suffix] > 1 else "") + suffix: data
        for stem, suffix, data in named
    }


def _document(document_id: str, suffix: str, reading: Reading, **more: str) -> Document:
    starts = [0, *(heading.start for heading in reading.headings), len(reading.text)]
    parts = [repaired(reading.text[start:end]) for start, end in pairwise(starts)]
    text, read = "".join(parts), repaired(reading.metadata)
    headings = [
        heading._replace(title=repaired(heading.title), start=start)
        for heading, start in zip(reading.headings, accumulate(map(len, parts)), strict=False)
    ]
    if not text.strip():
        left_out = "; ".join(map(str, read.get(LEFT_OUT, ())))
        if left_out:
            raise UnreadableError(f"has no text, but {left_out}")
        raise UnreadableError("is empty" if not text else "contains only white space")
    if (longest := max(map(len, text.splitlines()))) > MAX_LINE:
        raise UnreadableError(
            f"has a line of {longest:,} characters, more than {MAX_LINE:,}; divide it into lines"
        )
    named = _named_by(document_id)
    metadata = {**read, **named, **more}
    if headings:
        first, *others = headings
        is_one_of_several = (
            suffix == ".txt"
            and text[: first.start].strip()
            and any(heading.level <= first.level for heading in others)
        )
        is_title = suffix not in NAMED and not is_one_of_several
        metadata.setdefault(TITLE, first.title if is_title else named[FILE_NAME])
        metadata[HEADINGS] = [list(heading) for heading in headings]
    document = Document(id_=document_id, text=text, metadata=metadata)
    document.excluded_embed_metadata_keys = list(metadata)
    document.excluded_llm_metadata_keys = [key for key in metadata if key != FILE_NAME]
    return document


@cache
def _made_by() -> str:
    """Return an identifier of the code that reads."""
    # The sources tell versions of an editable install apart.
    package = Path(__file__).parents[1]
    files = sorted([*package.glob("read/*.py"), *package.glob("text/*.*")])
    versions = [f"{n} {found.version}" for n in LIBRARIES for found in distributions(name=n)]
    return digest(" ".join(versions), *(path.read_text("utf-8") for path in files))


def _named_by(document_id: str) -> dict[str, str]:
    """Return the metadata that follow from a document's id."""
    file = file_of(document_id)
    folder = Path(file).parent.as_posix()
    return {FILE_NAME: name_of(document_id), "file_path": file, "folder": folder}


def content_hash(document: Document) -> str:
    """Return a digest of a document's text and metadata; renaming the file does not change it.

    It covers everything that determines the document's chunks, except the id and the date of the
    file's last modification.
    """
    named = _named_by(document.doc_id)
    named[TITLE] = named[FILE_NAME]  # of files without a title of their own
    metadata = document.metadata.items()
    covered = {k: v for k, v in metadata if k != MODIFIED and named.get(k) != v}
    shown = document.model_dump(include=SHOWN)
    return digest("document", document.text, json.dumps([covered, shown], default=str))


def well_formed(document: Document) -> Document:
    """Return the document, or a copy without surrogates, which cannot be encoded in UTF-8."""
    values = json.dumps(document.to_dict(), ensure_ascii=False, default=str)
    whole = paired(values)
    return document if whole == values else type(document).from_json(whole)
