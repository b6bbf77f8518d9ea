"""Nodes (chunks and summaries), and the spans of documents that their texts quote."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from hierindex.unsafe import beginning

if TYPE_CHECKING:
    import numpy as np
    from llama_index.core.schema import BaseNode, NodeWithScore
    from numpy.typing import NDArray

FILE_NAME = "file_name"  # metadata key of a document's file name, as LlamaIndex's
TITLE = "title"  # metadata key of a document's title
MODIFIED = "last_modified_date"  # metadata key of the day when a document's file was changed
SECTION = "section"  # metadata key of the titles above a chunk, joined by `TITLES_BETWEEN`
SECTIONS = "sections"  # metadata key of the sections under a summary, if there are several
TITLES_BETWEEN = " › "
TITLES_SPAN = " \N{EN DASH} "  # between the first and the last of several titles
PAGE = "page"  # metadata key of a chunk's first page
PAGE_LABEL = "page_label"  # printed label; LlamaIndex's PDF readers return a document per page
PAGES = "pages"  # metadata key of a document's number of pages
PAGE_LABELS = "page_labels"  # metadata key of a document's printed page numbers, by page
PAGE_BREAK = "\f"  # begins the next page of a text
MAX_FAULTS = 20  # reasons kept of a build
SHOWN = 60  # characters of a text in a repr
MOST_DOCUMENTS = 1_000  # listed in a description
PREFIX = "hierindex_"  # of our metadata keys; every other one is the user's
LEFT_OUT = "left_out"  # metadata key of what a file has that was not read, as short phrases
FURNITURE = "in menus, headers and footers"  # end of such a phrase
HEADINGS = "headings"  # metadata key of a document's headings, see `Heading`
EMBED_HIDDEN, LLM_HIDDEN = "excluded_embed_metadata_keys", "excluded_llm_metadata_keys"
"""LlamaIndex's names for the metadata keys that are neither embedded nor shown to an LLM."""


to_json: Callable[[Any], str] = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=asdict
).encode
"""Return compact JSON of values and dataclasses."""


def page_in(metadata: Mapping[str, Any]) -> tuple[int | None, str]:
    """Return the page in a node's metadata, and its label if the label is not a number.

    >>> page_in({"page_label": "7"}), page_in({"page_label": "xii"})
    ((7, ''), (None, 'xii'))
    """
    page, label = metadata.get(PAGE), str(metadata.get(PAGE_LABEL, ""))
    if isinstance(page, int):
        return page, ""
    return (int(label), "") if label.isdecimal() else (None, label)


class Span(NamedTuple):
    """A passage of a source document.

    If the passage crosses pages or sections, page, section and anchor are those of its start.

    Attributes
    ----------
    document : str
        Id of the document.
    start, end : int
        Character offsets in the document's text as it was read; `end` is exclusive.
    page : int or None
        Page number, counted from 1, or the printed number if only that is known; None if neither is
        known.
    section : str
        Titles above the passage, the outermost first, joined by " › "; "" for none.
    page_label : str
        Printed label of the page, such as "xii", if it differs from `page`; else "".
    anchor : str
        Last anchor of an HTML page at or before the start; "" for none.
    """

    document: str
    start: int
    end: int
    page: int | None = None
    section: str = ""
    page_label: str = ""
    anchor: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return a dict of `document`, `start`, `end` and the fields that are not empty.

        `section` becomes a list of titles.

        >>> Span("a.md", 3, 9, section="Results › Timing").to_json()
        {'document': 'a.md', 'start': 3, 'end': 9, 'section': ['Results', 'Timing']}
        """
        span = {"document": self.document, "start": self.start, "end": self.end}
        others = {
            "page": self.page,
            "page_label": self.page_label,
            "section": titles_of(self.section),
            "anchor": self.anchor,
        }
        return span | {key: value for key, value in others.items() if value not in (None, "", [])}


def place_of(citation: Mapping[str, Any], title: str | None = None) -> str:
    """Format the position of a citation; a title replaces its document and anchor.

    >>> place_of({"document": "a.md", "section": ["Results", "Timing"], "page": 4})
    'a.md › Results › Timing, page 4'
    >>> place_of({"document": "a.md", "section": ["Results", "Timing"]}, "Results")
    'Results › Timing'
    """
    anchor = f"#{citation['anchor']}" if "anchor" in citation else ""
    head = f"{citation['document']}{anchor}" if title is None else title
    titles = [head, *citation.get("section", ())]
    if titles[1:2] == [head]:  # a document's title is often its first heading
        del titles[1]
    place = TITLES_BETWEEN.join(titles)
    page, label = citation.get("page"), citation.get("page_label")
    if page is None and label is None:
        return place
    number = f"{label} ({page})" if page and label else page or label
    return f"{place}, page {number}"


def titles_of(section: str) -> list[str]:
    """Return the titles of a section's path, the outermost first."""
    return section.split(TITLES_BETWEEN) if section else []


def shared_section(sections: Iterable[str]) -> str:
    """Return the longest path of titles with which all sections begin, or "".

    >>> shared_section(["Results › Timing", "Results › Memory › Peak"])
    'Results'
    """
    paths = map(titles_of, sections)
    levels = takewhile(lambda titles: len({*titles}) == 1, zip(*paths, strict=False))
    return TITLES_BETWEEN.join(titles[0] for titles in levels)


class Quote(NamedTuple):
    """A part `text[at:to]` of a node's text, with its source in a document.

    Attributes
    ----------
    at, to : int
        Character offsets in the node's text; `to` is exclusive.
    source : Span or None
        If `verbatim`, the position of the same characters in the document; otherwise the most
        similar sentence of the sources. None if no source supports the part, or if its position
        is unknown.
    verbatim : bool
        Whether the part is copied from its source word for word; False if a model wrote it.
    also : tuple of Span
        Further sources: copies of a verbatim part, or sentences that are nearly as similar.
    """

    at: int
    to: int
    source: Span | None
    verbatim: bool = True
    also: tuple[Span, ...] = ()

    @property
    def sources(self) -> tuple[Span, ...]:
        """All sources of the text, the best first."""
        return (*([] if self.source is None else [self.source]), *self.also)

    def part(self, at: int, to: int) -> "Quote":
        """Return this quote cut to `text[at:to]`; if verbatim, its sources are cut to match."""
        if not self.verbatim:
            return self._replace(at=at, to=to)

        def part_of(span: Span) -> Span:
            start = span.start + at - self.at
            return Span(span.document, start, start + to - at, *span[3:])  # _replace is slower

        source = None if self.source is None else part_of(self.source)
        return Quote(at, to, source, also=tuple(map(part_of, self.also)))


@dataclass(frozen=True)
class Grounding:
    """How many of the sentences that a model wrote are supported by their sources.

    Attributes
    ----------
    supported : int
        Supported as first written.
    corrected : int
        Supported after the model rewrote them.
    replaced : int
        Not supported, and replaced by the most similar source sentence.
    dropped : int
        Not supported, and removed.
    unsupported : int
        Not supported, but kept.
    faults : tuple of str
        Reasons why sentences were not supported at first, at most 20.
    """

    supported: int = 0
    corrected: int = 0
    replaced: int = 0
    dropped: int = 0
    unsupported: int = 0
    faults: tuple[str, ...] = ()

    def __add__(self, other: "Grounding") -> "Grounding":
        """Sum the counts; keep the first `MAX_FAULTS` faults in alphabetical order."""
        ours, theirs = asdict(self), asdict(other)
        faults = sorted({*ours.pop("faults"), *theirs.pop("faults")})[:MAX_FAULTS]
        counts = {outcome: n + theirs[outcome] for outcome, n in ours.items()}
        return Grounding(**counts, faults=tuple(faults))

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dict for `json.dumps`; `from_json` restores them."""
        return {**asdict(self), "faults": [*self.faults]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> "Grounding | None":
        """Restore a `Grounding` from the dict that `to_json` returns; None stays None."""
        return None if data is None else cls(**{**data, "faults": tuple(data["faults"])})


class Maker(NamedTuple):
    """The settings and models that grew a tree; all fields are empty for a chunk outside any tree.

    `embed_settings` is JSON of the settings that distinguish embedding models of the same name. It
    is empty if the model has neither name nor settings.
    """

    method: str = ""
    embed_model: str = ""
    embed_settings: str = ""
    summarizer: str = ""


@dataclass(slots=True)
class Node:
    """A chunk or a summary, with its position in the tree.

    Attributes
    ----------
    id, text : str
    metadata : dict
        The user's metadata: JSON values by key.
    level, level_max : int
        The node belongs to all levels from `level` to `level_max`; `level` is 0 for chunks.
    kind : str
        "chunk", or how a summary was written: "extractive", "abstractive", or "extractive_fallback"
        if a model failed and an extract stands in for its summary.
    title : str
        A heading or a short phrase that distinguishes the node from its siblings. The title in
        `metadata` is the document's title.
    documents : tuple of str
        Ids of the documents that the text is from.
    parents : tuple of (str, float)
        Ids with weights that sum to 1, the highest first; empty for a root.
    children : tuple of str
        Ids.
    previous, next : str
        Ids of the previous and the next chunk; "" for none.
    quotes : tuple of Quote
        The parts of the text with their sources.
    n_tokens : int
        Length of the embedded text in the embedding model's tokens.
    grounding : Grounding, optional
        For a summary written by a model, how many of its sentences are supported; else None.
    whole_document : str
        Id of the document whose chunks are exactly those under the node; "" if there is none, or if
        a higher node has the same chunks.
    n_chunks : int
        Number of chunks under the node; a chunk under several of its children counts several times.
    titles : tuple of str
        Titles of the documents, for a summary of several; a sample if there are many.
    written_title : str
        The title that a language model wrote with the summary, or "".
    document_hash, read_from : str
        For a chunk: digest of its document, and absolute path of the document's source; else "".
    maker : Maker, optional
        The settings used to make the node; None if hierindex did not make it.
    source : dict
        LlamaIndex's SOURCE relationship to the document, as JSON values; empty for none.
    others : dict
        Other fields of LlamaIndex's node, as JSON values, except those at their defaults.
    vector : (n_dims,) floats, optional
    """

    id: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    level: int = 0
    level_max: int = 0
    kind: str = "chunk"
    title: str = ""
    documents: tuple[str, ...] = ()
    parents: tuple[tuple[str, float], ...] = ()
    children: tuple[str, ...] = ()
    previous: str = ""
    next: str = ""
    quotes: tuple[Quote, ...] = ()
    n_tokens: int = 0
    grounding: Grounding | None = None
    whole_document: str = ""
    n_chunks: int = 1
    titles: tuple[str, ...] = ()
    written_title: str = ""
    document_hash: str = ""
    read_from: str = ""
    maker: Maker | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)
    vector: "NDArray[np.floating] | None" = field(default=None, compare=False)

    @classmethod
    def of(cls, found: "BaseNode | NodeWithScore") -> "Node":
        """Convert a LlamaIndex node, with or without a score, to a `Node`."""
        from hierindex.text_node import from_text_node

        node: Any = getattr(found, "node", found)
        return from_text_node(node)

    @property
    def citations(self) -> list[Span]:
        """The distinct sources of the text, in the order of the text."""
        return list(dict.fromkeys(source for q in self.quotes for source in q.sources))

    @property
    def start(self) -> int:
        """Smallest `start` of the node's citations; -1 if none."""
        return min((span.start for span in self.citations), default=-1)

    @property
    def section(self) -> str:
        """Titles above the chunk, the outermost first, joined by " › "; "" for none."""
        section = self.metadata.get(SECTION)
        return section if isinstance(section, str) else ""

    @property
    def document_title(self) -> str:
        """Title of the node's document, or its id if it has no title; "" for several documents."""
        if len(self.documents) != 1:
            return ""
        return self._given_title or self.documents[0]

    @property
    def document_name(self) -> str:
        """Title of the node's document, or else its file name without folder or suffix.

        Empty if the node has several documents, or if neither is known.
        """
        if len(self.documents) != 1:
            return ""
        title = self._given_title
        return title if title and title != self.metadata.get(FILE_NAME) else self.file_stem

    @property
    def file_stem(self) -> str:
        """Name of the node's file without folder or suffix; empty if unknown."""
        return PurePath(str(self.metadata.get(FILE_NAME) or "")).stem

    @property
    def _given_title(self) -> str:
        title = self.metadata.get(TITLE)
        return " ".join(title.split()) if isinstance(title, str) else ""

    @property
    def place(self) -> str:
        """Title of the document, then any section and page that contain all of the node's text.

        For a summary of several documents, their number.
        """
        spans = self.citations
        if not (spans and self.document_title):
            return self.document_title or f"{len(self.documents):,} documents"
        pages = {(span.page, span.page_label) for span in spans}
        page, label = pages.pop() if len(pages) == 1 else (None, "")
        section = shared_section(span.section for span in spans)
        whole = Span(self.documents[0], 0, 0, page, section, label)
        return place_of(whole.to_json(), self.document_title)

    def __repr__(self) -> str:
        """Return the id, the level, the place and the beginning of the text."""
        text = beginning(self.text, SHOWN)
        return f"Node({self.id[:12]!r}, level={self.level}, {self.place!r}, {text!r})"

    @property
    def embedded_text(self) -> str:
        """The text to embed, with metadata."""
        return self._with_metadata(EMBED_HIDDEN)

    @property
    def llm_text(self) -> str:
        """The text, with the metadata that a language model reads."""
        return self._with_metadata(LLM_HIDDEN)

    def _with_metadata(self, hidden: str) -> str:
        """Return the same text as LlamaIndex's `TextNode.get_content`."""
        others = self.others
        each = others.get("metadata_template", "{key}: {value}")
        shown = others.get("metadata_separator", "\n").join(
            each.format(key=key, value=str(value))
            for key, value in self.metadata.items()
            if key not in others.get(hidden, ())
        )
        if not (shown := shown.strip()):
            return self.text
        template: str = others.get("text_template", "{metadata_str}\n\n{content}")
        return template.format(content=self.text, metadata_str=shown).strip()


RECORDED = "quotes maker n_chunks titles written_title grounding".split()
"""Fields of a node that are stored as JSON."""


def of_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields `RECORDED` from their JSON values; none if there are no values."""
    if not record:
        return {}
    return {
        "quotes": quotes_of(record["quotes"]),
        "maker": Maker(*record["maker"]),
        "n_chunks": record["n_chunks"],
        "titles": tuple(record["titles"]),
        "written_title": record["written_title"],
        "grounding": Grounding.from_json(record["grounding"]),
    }


def quotes_of(lists: Iterable[Sequence[Any]]) -> tuple[Quote, ...]:
    """Return quotes from their JSON lists."""
    return tuple(
        Quote(at, to, source and Span(*source), verbatim, tuple(Span(*span) for span in beside))
        for at, to, source, verbatim, beside in lists
    )


class Found(NamedTuple):
    """A node that was found, with its score."""

    node: Node
    score: float


class Heading(NamedTuple):
    """A heading of a document; `level` counts from 1, `start` is its first character's offset.

    `anchor` is the nearest anchor of an HTML page at or before the heading. A document's metadata
    holds its headings as lists, in the order of the text.
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
    """Return a document's metadata for its chunks, without the headings and page labels."""
    lists = {HEADINGS} if headings_in(metadata) else set()
    if PAGES in metadata:
        lists.add(PAGE_LABELS)
    return {key: value for key, value in metadata.items() if key not in lists}
