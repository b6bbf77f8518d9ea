"""Results of reading and splitting, recalled from the cache by digests of their input."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hierindex.cache import Readings
from hierindex.core.identity import digest, file_of, name_of
from hierindex.node import FILE_NAME, HEADINGS, MODIFIED, TITLE, headings_in
from hierindex.read.text import MAX_BYTES, Reading, UnreadableError

if TYPE_CHECKING:
    from llama_index.core.schema import Document

LIBRARIES = (
    "hierindex chardetng-py llama-index-core lxml "
    "markdown-it-py olefile openpyxl pypdfium2 python-oxmsg python-pptx pyyaml "
    "sentencex"
).split()
"""Packages whose versions may change how files are read and split."""
FILE_PATH = "file_path"  # LlamaIndex's
FOLDER = "folder"
SHOWN = {  # fields of a document that determine how its chunks show metadata
    "excluded_embed_metadata_keys",
    "excluded_llm_metadata_keys",
    "metadata_separator",
    "metadata_template",
    "text_template",
}


def read_once(
    read: Callable[[BinaryIO], Reading], suffix: str, file: BinaryIO, memory: Readings | None
) -> Reading:
    """Read a file, or recall the result if the same reader has read the same bytes before.

    Parameters
    ----------
    read : callable
    suffix : str
        Suffix of the file's name, which identifies the reader.
    file : BinaryIO
    memory : Readings or None
    """
    if memory is None:
        return read(file)
    size = file.seek(0, SEEK_END)
    file.seek(0)
    if size > MAX_BYTES:  # readers look at its beginning first
        return read(file)
    data = file.read()  # once, so that what is read is what is hashed
    key = digest("reading", _made_by(), suffix, sha256(data).hexdigest())
    match memory.recall(key):
        case [str(text), dict(metadata), list(headings)]:
            return Reading(text, metadata, headings_in({HEADINGS: headings}))
        case str(reason):
            raise UnreadableError(reason)
    try:
        reading = read(BytesIO(data))
    except UnreadableError as error:
        memory.keep(key, str(error))
        raise
    memory.keep(key, reading)
    return reading


def split_once(
    split: Callable[[], Sequence[str]], text: str, settings: str, memory: Readings | None
) -> Sequence[str]:
    """Split a text, or recall the result if the same text was split before.

    The result is not cached if a chunk is not a part of the text.

    Parameters
    ----------
    split : callable
        Returns the chunks.
    text : str
    settings : str
        Everything else that determines the chunks.
    memory : Readings or None
    """
    if memory is None:
        return split()
    key = digest("places", _made_by(), settings, text)
    if places := memory.recall(key):
        return [text[start:end] for start, end in places]
    chunks = split()
    places, end = list[tuple[int, int]](), 0
    for chunk in chunks:
        if (start := text.find(chunk, end)) < 0:
            return chunks
        end = start + len(chunk)
        places.append((start, end))
    memory.keep(key, places)
    return chunks


@cache
def _made_by() -> str:
    """Return an identifier of the code that reads and splits."""
    # The sources tell versions of an editable install apart.
    package = Path(__file__).parents[1]
    files = sorted(path for room in ("read", "text") for path in (package / room).glob("*.py"))
    return digest(*map(_version, LIBRARIES), *(path.read_text("utf-8") for path in files))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # of an extra
        return ""


def named_by(document_id: str) -> dict[str, str]:
    """Return the metadata that follow from a document's id."""
    file = file_of(document_id)
    folder = Path(file).parent.as_posix()
    return {FILE_NAME: name_of(document_id), FILE_PATH: file, FOLDER: folder}


def content_hash(document: "Document") -> str:
    """Return a digest of a document's text and metadata; renaming the file does not change it.

    It covers everything that determines the document's chunks, except the id and the date of the
    file's last modification.
    """
    named = named_by(document.doc_id)
    named[TITLE] = named[FILE_NAME]  # of files without a title of their own
    metadata = document.metadata.items()
    covered = {k: v for k, v in metadata if k != MODIFIED and named.get(k) != v}
    shown = document.model_dump(include=SHOWN)
    return digest("document", document.text, json.dumps([covered, shown], default=str))
