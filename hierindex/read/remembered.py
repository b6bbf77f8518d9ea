"""Results of reading, recalled from the cache by digests of the files."""

import json
from collections.abc import Callable
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
from hierindex.read.text import MAX_BYTES, Reading

if TYPE_CHECKING:
    from llama_index.core.schema import Document

LIBRARIES = (
    "hierindex chardetng-py lxml markdown-it-py openpyxl pypdfium2 python-oxmsg python-pptx pyyaml"
).split()
"""Packages whose versions may change how files are read."""
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
) -> tuple[Reading, str]:
    """Read a file, or recall the result if the same reader has read the same bytes before.

    Parameters
    ----------
    read : callable
    suffix : str
        Suffix of the file's name, which identifies the reader.
    file : BinaryIO
    memory : Readings or None

    Returns
    -------
    reading : Reading
    key : str
        Key of the reading in the cache; "" if it is not cached.
    """
    if memory is None or file.seek(0, SEEK_END) > MAX_BYTES:  # readers look at its beginning first
        file.seek(0)
        return read(file), ""
    file.seek(0)
    data = file.read()  # once, so that what is read is what is hashed
    key = digest("reading", _made_by(), suffix, sha256(data).hexdigest())
    if found := memory.recall(key):
        text, metadata, headings = found
        return Reading(text, metadata, headings_in({HEADINGS: headings})), key
    reading = read(BytesIO(data))
    memory.keep(key, reading)
    return reading, key


@cache
def _made_by() -> str:
    """Return an identifier of the code that reads."""
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
