"""Reading of files and folders as documents."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import gmtime, strftime
from typing import Any, Self

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from hierindex.cache import Readings
from hierindex.core.identity import document_key, name_of
from hierindex.errors import SourceError
from hierindex.node import LEFT_OUT, MODIFIED, PAGES
from hierindex.progress import Progress, silent
from hierindex.read.files import (
    File,
    Skipped,
    files_of,
    is_link,
    nothing_to_index,
    quoted,
    valid_name,
)
from hierindex.read.readers import DELETED, Documents
from hierindex.read.text import UnreadableError

ATTEMPTS = 3  # to read a file that changes


@dataclass(frozen=True)
class FileContent:
    """How much of a file was read, and which parts were left out.

    `path` is the document id, and `kind` the file's suffix without dot, or "text". `pages` is None
    for files without pages. `left_out` has short phrases on parts that were not read, such as "2 of
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
    e-mails, mailboxes, calendars and subtitles are read; with the extra `hierindex[office]` also
    PowerPoint, Excel and Outlook messages.

    Parameters
    ----------
    *sources : str or Path
        Folders include their subfolders, but no hidden files and folders and no LanceDB
        tables. Links to folders are not followed. A file that is reached by several links is read
        once.
    progress : Progress, optional
        Called after each file.
    memory : Readings, optional
        Cache of the texts of files, by their content.

    Returns
    -------
    documents : list[Document]
        In the order of the sources and their paths. The id of a document is the path of its
        file relative to the source, with bytes that are not UTF-8 escaped. Mails of a mailbox and
        readable attachments are separate documents; their id is the id of the file, "#" and their
        name.

        The metadata are `file_name` (for an attachment, its own name), `file_path`, `folder`,
        `last_modified_date` and `title`; the front matter of Markdown; `author` and `date` of HTML,
        PDF, books and office files; `from`, `to`, `cc` and `date` of mails; `headings`, a list of
        [level, title, character offset], for HTML also an anchor; and `left_out`, short phrases on
        parts that were not read.
    skipped : list[Skipped]
        Files that cannot be read as text, and links to files that are read anyway.

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
    """Read files, given by document id, like `read_documents`; `files` may be empty."""
    found = dict(each_file(files, progress=progress, memory=memory))
    each = [one for document_id in files for one in found[document_id]]
    return [d for d in each if isinstance(d, Document)], [s for s in each if isinstance(s, Skipped)]


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
            Metadata to add; the file's own metadata take precedence.
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
    """Read a file, and read it again if it changed meanwhile."""
    for _ in range(ATTEMPTS):
        found, refusal = file.path.stat(), None  # raises the reason why there is no access
        _check_kind(file.path, found)
        day = strftime("%Y-%m-%d", gmtime(found.st_mtime))
        reader = Documents(memory, file.left_out, {MODIFIED: day})
        with file.path.open("rb") as data:
            try:
                documents = reader.of(data, document_id)
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
