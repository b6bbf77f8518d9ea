"""What a node knows of its place: its levels, its parents and the sources it stands on.

A LlamaIndex node has one metadata dictionary, which vector stores filter, print and
return. `NodeRecord` is what hierindex keeps there: `hierindex_level`, `hierindex_level_max` and
`hierindex_grounding` as plain numbers, so that any store can filter by them, and everything else
as one JSON string under `hierindex`, so that a store that takes only scalars can hold it.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

LEVEL = "level"
LEVEL_MAX = "level_max"
GROUNDING = "grounding"
WHOLE_DOCUMENT = "whole_document"
DETAILS = "hierindex"
PAGE = "page"  # metadata key of a chunk's first page
PAGE_LABEL = "page_label"  # that of a document which is one page, as LlamaIndex's PDF readers give
PAGES = "pages"  # of a document: how many
PAGE_BREAK = "\f"  # in a text, begins the next page
RECORD_KEYS = ("hierindex_level", "hierindex_level_max", "hierindex_grounding", DETAILS)
"""Metadata keys of a record."""

OLD_KEYS = (LEVEL, LEVEL_MAX, GROUNDING, DETAILS)
"""Those that versions up to 0.1 wrote in their place."""

DETAIL_FIELDS = (
    "kind",
    "documents",
    "parents",
    "quotes",
    "n_tokens",
    "method",
    "embed_model",
    "embed_settings",
    "summarizer",
    WHOLE_DOCUMENT,
)
"""Fields of a record that its metadata entry `hierindex` holds, in their order there."""


class Span(NamedTuple):
    """A stretch of a source document.

    `start` and `end` count characters of the document's text as read; `page` counts
    from 1, or is the page's label where that is a number, and is None where the document
    has no pages.
    """

    document: str
    start: int
    end: int
    page: int | None = None

    def to_json(self) -> dict[str, Any]:
        """`{document, start, end}`, and `page` where there is one.

        >>> Span("a.txt", 3, 9).to_json()
        {'document': 'a.txt', 'start': 3, 'end': 9}
        """
        span = {"document": self.document, "start": self.start, "end": self.end}
        return span if self.page is None else {**span, "page": self.page}


class Quote(NamedTuple):
    """A stretch `text[at:to]` of a node's text and the source it stands on.

    Where the text is verbatim, both stretches hold the same characters. Where it was
    rewritten, `source` is the sentence that supports it best, and `beside` are those that
    support it nearly as well. `source` is None for a chunk whose place in its document is not
    known.
    """

    at: int
    to: int
    source: Span | None
    verbatim: bool = True
    beside: tuple[Span, ...] = ()

    @property
    def sources(self) -> tuple[Span, ...]:
        """All that the text stands on, the best first."""
        return (*([] if self.source is None else [self.source]), *self.beside)

    def part(self, at: int, to: int) -> "Quote":
        """The quote of `text[at:to]`, a part of this one; if verbatim, of just that source."""
        source = self.source
        if source is not None and self.verbatim:
            start = source.start + at - self.at
            source = source._replace(start=start, end=start + to - at)
        return self._replace(at=at, to=to, source=source)


@dataclass(frozen=True)
class NodeRecord:
    """A node's place in the tree.

    `parents` pairs ids with weights that sum to 1, strongest first; it is empty for a
    root. `n_tokens` counts the embedding model's tokens of the embedded text. `grounding` is
    the share of its sentences that its sources support, 1 for verbatim text, and None where
    that was not looked at. `whole_document` is the document all of whose chunks it holds, of
    the highest such node; else empty. `embed_settings` has the settings that tell
    embedding models of one name apart, as JSON; it is empty where a model does not tell its name
    nor any setting.
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
    grounding: float | None = 1.0
    whole_document: str = ""

    @property
    def citations(self) -> list[Span]:
        """The distinct sources of the node's text, in the order of the text."""
        return list(dict.fromkeys(source for q in self.quotes for source in q.sources))

    @property
    def start(self) -> int:
        """Where its sources begin in their documents; -1 where that is not known."""
        return min((span.start for span in self.citations), default=-1)

    def to_metadata(self) -> dict[str, Any]:
        """The metadata entries that carry this record."""
        return as_metadata(vars(self))

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Self:
        """The record in a node's metadata; the default record where there is none.

        >>> record = NodeRecord(level=1, level_max=2, parents=(("ab", 1.0),))
        >>> NodeRecord.from_metadata(record.to_metadata()) == record
        True
        """
        if DETAILS not in metadata:
            return cls()
        level, level_max, grounding, _ = record_keys(metadata)
        if level == LEVEL:
            warnings.warn(
                f"Metadata keys {LEVEL!r}, {LEVEL_MAX!r} and {GROUNDING!r} of hierindex are now "
                f"{', '.join(map(repr, RECORD_KEYS[:3]))}; build the nodes again.",
                DeprecationWarning,
                stacklevel=2,
            )
        details = json.loads(metadata[DETAILS])
        details["documents"] = tuple(details["documents"])
        details["parents"] = tuple((node_id, weight) for node_id, weight in details["parents"])
        details["quotes"] = tuple(
            Quote(
                at,
                to,
                None if source is None else Span(*source),
                verbatim,
                *(tuple(Span(*span) for span in spans) for spans in beside),
            )
            for at, to, source, verbatim, *beside in details["quotes"]
        )
        return cls(
            level=metadata[level],
            level_max=metadata[level_max],
            grounding=metadata.get(grounding),
            **details,
        )


def as_metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata entries that carry a record, from its fields by name.

    Fields may have the values that JSON has for theirs, lists for tuples; the entries are the same.
    """
    details = {key: fields[key] for key in DETAIL_FIELDS}
    text = json.dumps(details, ensure_ascii=False, separators=(",", ":"))
    values = (fields[LEVEL], fields[LEVEL_MAX], fields[GROUNDING], text)
    entries = zip(RECORD_KEYS, values, strict=True)
    return {key: value for key, value in entries if value is not None}


def record_keys(metadata: Mapping[str, Any]) -> Sequence[str]:
    """The keys under which a node's metadata carries a record; none where there is no record."""
    if DETAILS not in metadata:
        return ()
    return RECORD_KEYS if RECORD_KEYS[0] in metadata else OLD_KEYS


def user_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a node's metadata that are not hierindex's, as JSON has them.

    >>> user_metadata(NodeRecord().to_metadata() | {"author": "Ada", "price": float("nan")})
    {'author': 'Ada', 'price': None}
    """
    own = record_keys(metadata)
    kept = {key: value for key, value in metadata.items() if key not in own}
    entries: dict[str, Any] = json.loads(json.dumps(kept), parse_constant=lambda _: None)
    return entries
