"""Readers for file suffixes, and the documents in a file: its own and those of its parts."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from io import BytesIO
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, BinaryIO

from llama_index.core.schema import Document

from hierindex.cache import Readings
from hierindex.core.identity import document_key, file_of, name_of
from hierindex.node import FILE_NAME, HEADINGS, LEFT_OUT, TITLE, Heading
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
from hierindex.read.files import Skipped, quoted
from hierindex.read.remembered import content_hash, named_by, read_once
from hierindex.read.text import Reading, UnreadableError, counted
from hierindex.text.characters import SURROGATE, composed

MAX_LINE = 1_000_000  # characters; a file with a longer line is data
MAX_DEPTH = 4  # of parts in parts, as of an attachment of an e-mail in a mailbox
MAX_NAME = 100  # characters of the name of a part
NO_NAME = re.compile(r"[\x00-\x1f\x7f/\\#\ud800-\udfff]")  # what names of parts have not
DELETED = "was deleted from the index; name the file as a source to add it again"

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
    **dict.fromkeys((".mht", ".mhtml"), mail.read_web_archive),
    ".pdf": pdf.read_pdf,
    ".rst": plain.read_rst,
    ".rtf": rtf.read_rtf,
    ".txt": plain.read_plain,
    ".epub": office.read_epub,
    ".eml": mail.read_mail,
    ".mbox": mail.read_mailbox,
    ".ics": mail.read_calendar,
    ".msg": mail.read_outlook,
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
            raise UnreadableError(f"has a name like a part of {quoted(other)}; rename it")
        suffix, key = Path(name_of(document_id)).suffix.lower(), ""
        if reader := READERS.get(suffix):
            (text, read, headings), key = read_once(reader, suffix, file, self.memory)
        else:  # decoding is all, and the file may be large
            text, read, headings = plain.read_unnamed(file)
        n_attached = read.pop(mail.ATTACHED, 0) if suffix in PARTS else 0
        parts = dict[str, bytes]()
        if suffix in PARTS and (n_attached or not text) and depth < MAX_DEPTH:
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
        if not text.strip() and (inside or refused):  # a mailbox
            return [*inside, *refused]
        left_out = [f"{name_of(part.path)} {part.reason}" for part in refused]
        if n_attached and not parts:
            left_out.append(counted(n_attached, "attachment"))
        if left_out:
            read[LEFT_OUT] = [*read.get(LEFT_OUT, []), *left_out]
        document = _document(document_id, suffix, Reading(text, read, headings), **self.more)
        if key and self.memory is not None:
            self.memory.note(content_hash(document), key)
        return [document, *inside]


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
        stem + (f" ({mail.short_digest(data)})" if n_same[stem + suffix] > 1 else "") + suffix: data
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
    """Return a text as from `_repaired`, and the headings at their offsets in it."""
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
    """Return a text in its composed form, without surrogates and null characters."""
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
    """Return the document, or a copy without surrogates, which cannot be encoded in UTF-8."""
    values = json.dumps(document.to_dict(), ensure_ascii=False, default=str)
    paired = _paired(values)
    return document if paired == values else type(document).from_json(paired)
