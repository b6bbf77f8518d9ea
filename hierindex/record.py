"""A node's place in the tree and a document's headings, as stored in their metadata.

A LlamaIndex node has one metadata dictionary, which vector stores filter. A `NodeRecord` is stored
there as the plain numbers `hierindex_level`, `hierindex_level_max` and
`hierindex_source_similarity`, by which any store can filter, and one JSON string, `hierindex`, for
the rest.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import takewhile
from typing import Any, NamedTuple, Self

LEVEL = "level"
LEVEL_MAX = "level_max"
SOURCE_SIMILARITY = "source_similarity"
WHOLE_DOCUMENT = "whole_document"
MORE_DOCUMENTS = "more_documents"
DETAILS = "hierindex"
FILE_NAME = "file_name"  # metadata key of a document's file name, as LlamaIndex's
TITLE = "title"  # metadata key of a document's title
MODIFIED = "last_modified_date"  # metadata key of the day when a document's file was changed
SECTION = "section"  # metadata key of the titles above a chunk, joined by `TITLES_BETWEEN`
SECTIONS = "sections"  # metadata key of the sections under a summary, if there are several
TITLES_BETWEEN = " › "
PAGE = "page"  # metadata key of a chunk's first page
PAGE_LABEL = "page_label"  # printed label; LlamaIndex's PDF readers return a document per page
PAGES = "pages"  # metadata key of a document's number of pages
PAGE_LABELS = "page_labels"  # metadata key of a document's printed page numbers, by page
PAGE_BREAK = "\f"  # begins the next page of a text
RECORD_KEYS = ("hierindex_level", "hierindex_level_max", "hierindex_source_similarity", DETAILS)
"""Metadata keys of a record."""

NUMBERS = (LEVEL, LEVEL_MAX, SOURCE_SIMILARITY)
MOST_DOCUMENTS = 1_000  # that metadata name
HEADINGS = "headings"  # metadata key of a document's headings, see `Heading`


def page_in(metadata: Mapping[str, Any]) -> tuple[int | None, str]:
    """Return the page that metadata name, and its label if that is not a number.

    >>> page_in({"page_label": "7"}), page_in({"page_label": "xii"})
    ((7, ''), (None, 'xii'))
    """
    page, label = metadata.get(PAGE), str(metadata.get(PAGE_LABEL, ""))
    if isinstance(page, int):
        return page, ""
    return (int(label), "") if label.isdecimal() else (None, label)


class Span(NamedTuple):
    """A passage of a source document.

    `start` and `end` (exclusive) count characters of the document's text as read. `page` counts
    from 1, or is the page's label if that is a number, and is None if the document has no pages.
    `section` are the titles above the passage, the outermost first, joined by " › ".
    `page_label` is the page's printed label if it is not the page's number, and `anchor` the
    nearest anchor of an HTML page at or before the passage. A passage that crosses pages or
    sections has the page, section and anchor of its start.
    """

    document: str
    start: int
    end: int
    page: int | None = None
    section: str = ""
    page_label: str = ""
    anchor: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return `{document, start, end}` and what is known of the rest; `section` as titles.

        >>> Span("a.md", 3, 9, section="Results › Timing").to_json()
        {'document': 'a.md', 'start': 3, 'end': 9, 'section': ['Results', 'Timing']}
        """
        span: dict[str, Any] = {"document": self.document, "start": self.start, "end": self.end}
        if self.page is not None:
            span["page"] = self.page
        if self.page_label:
            span["page_label"] = self.page_label
        if self.section:
            span["section"] = titles_of(self.section)
        if self.anchor:
            span["anchor"] = self.anchor
        return span


def titles_of(section: str) -> list[str]:
    """Return the titles of a section's path, the outermost first."""
    return section.split(TITLES_BETWEEN) if section else []


def shared_section(sections: Iterable[str]) -> str:
    """Return the longest path of titles with which all sections begin; empty if there is none.

    >>> shared_section(["Results › Timing", "Results › Memory › Peak"])
    'Results'
    """
    paths = map(titles_of, sections)
    levels = takewhile(lambda titles: len({*titles}) == 1, zip(*paths, strict=False))
    return TITLES_BETWEEN.join(titles[0] for titles in levels)


class Quote(NamedTuple):
    """A part `text[at:to]` of a node's text and its source.

    If it is verbatim, `source` has the same characters, and so have `beside`, which are the places
    of copies in a retrieved node. If it was rewritten, `source` is the sentence most similar to it,
    and `beside` are those nearly as similar. `source` is None for a chunk whose position in its
    document is unknown.
    """

    at: int
    to: int
    source: Span | None
    verbatim: bool = True
    beside: tuple[Span, ...] = ()

    @property
    def sources(self) -> tuple[Span, ...]:
        """All sources of the text, the best first."""
        return (*([] if self.source is None else [self.source]), *self.beside)

    def part(self, at: int, to: int) -> "Quote":
        """Return the quote of `text[at:to]`, a part of this one, and of verbatim sources."""
        if not self.verbatim:
            return self._replace(at=at, to=to)

        def part_of(span: Span) -> Span:
            start = span.start + at - self.at
            return Span(span.document, start, start + to - at, *span[3:])  # _replace is slower

        source = None if self.source is None else part_of(self.source)
        return Quote(at, to, source, beside=tuple(map(part_of, self.beside)))


@dataclass(frozen=True)
class NodeRecord:
    """A node's place in the tree.

    `parents` pairs ids with weights that sum to 1, the strongest first; it is empty for a root.
    `n_tokens` is the length of the embedded text in the embedding model's tokens.
    `source_similarity` is the share of sentences that are similar to the sources: 1 for verbatim
    text, None if it was not measured. `whole_document` is the document whose chunks are exactly
    those under the node, if no higher node has the same; else empty. `title` is a heading or a
    short phrase that names the node among its siblings, unlike `title` in the metadata, which is
    the document's.
    Metadata name the first 1,000 documents, and `more_documents` is the number of the others.
    `document_hash` is a digest of a chunk's document, and `read_from` its source's absolute path.
    `embed_settings` is JSON of the settings that distinguish embedding models of one name; it is
    empty if the model reveals neither name nor settings.
    """

    level: int = 0
    level_max: int = 0
    kind: str = "chunk"
    documents: tuple[str, ...] = ()
    parents: tuple[tuple[str, float], ...] = ()
    quotes: tuple[Quote, ...] = ()
    n_tokens: int = 0
    method: str = ""
    embed_model: str = ""
    embed_settings: str = ""
    summarizer: str = ""
    source_similarity: float | None = 1.0
    whole_document: str = ""
    title: str = ""
    document_hash: str = ""
    read_from: str = ""
    more_documents: int = 0

    @property
    def citations(self) -> list[Span]:
        """The distinct sources of the node's text, in the order of the text."""
        return list(dict.fromkeys(source for q in self.quotes for source in q.sources))

    @property
    def start(self) -> int:
        """Smallest start of the node's sources in their documents; -1 if unknown."""
        return min((span.start for span in self.citations), default=-1)

    def to_metadata(self) -> dict[str, Any]:
        """Return the metadata entries that store this record."""
        return as_metadata(vars(self))

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Self:
        """Return the record in a node's metadata, or the default record if there is none.

        >>> record = NodeRecord(level=1, level_max=2, parents=(("ab", 1.0),))
        >>> NodeRecord.from_metadata(record.to_metadata()) == record
        True
        """
        record = fields_in(metadata)
        if not record:
            return cls()
        record["documents"] = tuple(record["documents"])
        record["parents"] = tuple((node_id, weight) for node_id, weight in record["parents"])
        record["quotes"] = quotes_of(record["quotes"])
        return cls(**record)


def fields_in(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record stored in a node's metadata as a dict, or {} if there is none."""
    if not record_keys(metadata):
        return {}
    details: dict[str, Any] = json.loads(metadata[DETAILS])
    return details | {
        key: metadata.get(own) for key, own in zip(NUMBERS, RECORD_KEYS, strict=False)
    }


def quotes_of(lists: Iterable[Sequence[Any]]) -> tuple[Quote, ...]:
    """Return quotes from their JSON lists."""
    return tuple(
        Quote(
            at,
            to,
            None if source is None else Span(*source),
            verbatim,
            *(tuple(Span(*span) for span in spans) for spans in beside),
        )
        for at, to, source, verbatim, *beside in lists
    )


# Compact JSON; `json.dumps` would make an encoder at each call.
to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
NO_RECORD = vars(NodeRecord())
"""The fields of the default record."""
DETAIL_FIELDS = [f.name for f in fields(NodeRecord) if f.name not in (*NUMBERS, MORE_DOCUMENTS)]
"""Fields of a record in the metadata entry `hierindex`, in order."""


def as_metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata entries that store a record, given its fields by name.

    Tuples may be given as lists; the entries are the same.
    """
    details = {key: record[key] for key in DETAIL_FIELDS}
    named = record["documents"][:MOST_DOCUMENTS]
    if more := record[MORE_DOCUMENTS] + len(record["documents"]) - len(named):
        details |= {"documents": named, MORE_DOCUMENTS: more}
    values = (*(record[key] for key in NUMBERS), to_json(details))
    entries = zip(RECORD_KEYS, values, strict=True)
    return {key: value for key, value in entries if value is not None}


def level_in(metadata: Mapping[str, Any]) -> int:
    """Return the level of the record in a node's metadata; 0 if there is none."""
    return metadata[RECORD_KEYS[0]] if record_keys(metadata) else 0


def record_keys(metadata: Mapping[str, Any]) -> Sequence[str]:
    """Return the metadata keys that store a record; empty if there is no record."""
    return RECORD_KEYS if {DETAILS, RECORD_KEYS[0]} <= metadata.keys() else ()


def user_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata entries that are not hierindex's, as JSON values.

    >>> user_metadata(NodeRecord().to_metadata() | {"author": "Ada", "price": float("nan")})
    {'author': 'Ada', 'price': None}
    """
    keys = record_keys(metadata)
    text = json.dumps({key: value for key, value in metadata.items() if key not in keys})
    entries: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
    return entries


class Heading(NamedTuple):
    """A heading of a document; `level` counts from 1, `start` is its first character's offset.

    `anchor` is the nearest anchor of an HTML page at or before the heading. A document's metadata
    holds headings in the order of the text, as lists.
    """

    level: int
    title: str
    start: int
    anchor: str = ""


def headings_in(metadata: Mapping[str, Any]) -> list[Heading]:
    """Return the headings that a reader wrote into a document's metadata.

    >>> [heading.title for heading in headings_in({"headings": [[1, "Aims", 0]]})]
    ['Aims']
    """
    entries = metadata.get(HEADINGS)
    if isinstance(entries, list | tuple) and all(map(_is_heading, entries)):
        return [Heading(*entry) for entry in entries]
    return []


def _is_heading(entry: Any) -> bool:
    match entry:
        case [int(), str(), int()] | [int(), str(), int(), str()]:
            return True
    return False


def for_chunks(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document's metadata without the lists of its headings and page labels."""
    lists = {HEADINGS} if headings_in(metadata) else set()
    if PAGES in metadata:
        lists.add(PAGE_LABELS)
    return {key: value for key, value in metadata.items() if key not in lists}
