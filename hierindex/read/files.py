"""The files of the sources, by document id."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hierindex.core.identity import file_of
from hierindex.errors import InputError, SourceError, shown

TEXT = re.compile(r"\n|(\S+\s+){4}|.{256}")  # a line break, five words, or longer than a file name
TEXT_HINT = "; pass a text as llama_index.core.Document(text=...), or save it as a file"
MOST_NAMED = 10  # skipped files in an error

is_link: Callable[[Path], bool] = (
    os.path.islink
)  # False for a path that is too long; reading it raises the reason

ESCAPED = re.compile(rb"\\x([89a-f][0-9a-f])")  # see `valid_name`


@dataclass(frozen=True)
class Skipped:
    """A file that was not indexed, with the reason.

    `path` is the document id of the file. `is_unread` is True if the file or folder could not be
    opened, so that its content is unknown.
    """

    path: str
    reason: str
    is_unread: bool = False

    def to_json(self) -> dict[str, str]:
        """Return a dict with the path and the reason."""
        return {"path": self.path, "reason": self.reason}


class File(NamedTuple):
    """A file with the absolute path of the source in which it was found.

    `left_out` holds the keys of documents not to read, see `document_key`.
    """

    path: Path
    source: str
    left_out: Set[str] = frozenset()


def files_of(sources: Iterable[str | Path]) -> dict[str, File]:
    """Return the files of sources by document id, in the order of the sources and their paths.

    Raises
    ------
    SourceError
        If a source does not exist, or two files have the same id.
    """
    files: dict[str, File] = {}
    for source in sources:
        check_source(source)
        name = source_name(source)
        for document_id, path in _files(Path(source)):
            if document_id in files:
                raise SourceError(
                    f"{str(files[document_id].path)!r} and {str(path)!r} have the same document id "
                    f"{document_id!r}; index a common parent folder, or rename one."
                )
            files[document_id] = File(path, name)
    return files


def source_name(source: str | Path) -> str:
    """Return the absolute path of a source, the name under which an index stores it."""
    return valid_name(os.path.normpath(Path(source).absolute()))


def source_path(name: str) -> Path:
    """Return the path of a source from the name under which an index stores it."""
    data = ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), name.encode())
    path = Path(os.fsdecode(data))
    return path if os.path.lexists(path) else Path(name)


def file_in(source: str, document: str) -> Path | None:
    """Return the file that a document, or the mailbox or e-mail around it, was read from.

    None if it no longer exists, or is outside its source.
    """
    top = source_path(source).resolve()
    path = top if top.is_file() else source_path(f"{source}/{file_of(document)}").resolve()
    return path if path.is_file() and path.is_relative_to(top) else None


def check_source(source: str | Path) -> None:
    """Raise SourceError if a file or folder does not exist, InputError if it is not a path."""
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"A source must be a path or a Document, got {type(source).__name__}.")
    if not (name := str(source)):
        raise SourceError("A source is an empty string; use '.' for the working directory.")
    try:
        Path(source).stat()
    except (OSError, ValueError):
        hint = TEXT_HINT if TEXT.search(name) else ""
        raise SourceError(f"The source {shown(name)} cannot be found or read{hint}.") from None


def check_sources(sources: Sequence[str | Path]) -> None:
    """Raise SourceError if a source does not exist, or no source has a file; reads no file."""
    for source in sources:
        check_source(source)
    if not any(True for source in sources for _ in _files(Path(source))):
        raise nothing_to_index(sources)


def nothing_to_index(sources: Sequence[str | Path], skipped: Sequence[Skipped] = ()) -> SourceError:
    """Return the error for sources from which no document could be read."""
    names = ", ".join(repr(str(source)) for source in sources)
    nothing = f"Nothing to index in {names}" if names else "Nothing to index"
    if not skipped:
        return SourceError(f"{nothing}: there is no {'file' if names else 'document with text'}.")
    reasons = [f"{quoted(each.path)} {each.reason}" for each in skipped[:MOST_NAMED]]
    if len(skipped) > MOST_NAMED:
        reasons.append(f"and {len(skipped) - MOST_NAMED:,} more")
    return SourceError(f"{nothing}: {'; '.join(reasons)}.")


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
            yield valid_name(inside), path
        else:
            waiting += [path for path in entries if not is_hidden(path.name)]


def is_hidden(name: str) -> bool:
    """Return whether files and folders of this name are skipped, like hidden files and backups."""
    return name.startswith(".") or name.endswith((".lance", "~"))


def valid_name(name: str) -> str:
    r"""Return a file name as valid UTF-8, with invalid bytes escaped.

    >>> valid_name("caf\udce9")
    'caf\\xe9'
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def quoted(name: str) -> str:
    r"""Return a file name, as a Python string if it contains unprintable characters.

    >>> print(quoted("the plan.txt"), quoted("the\nplan.txt"))
    the plan.txt 'the\nplan.txt'
    """
    return name if name.isprintable() else repr(name)
