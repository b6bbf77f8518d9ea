"""A node's place in the tree and a document's headings, as stored in their metadata.

A LlamaIndex node has one metadata dictionary, which vector stores filter. A `NodeRecord` is stored
there as the plain numbers `hierindex_level`, `hierindex_level_max` and
`hierindex_source_similarity`, by which any store can filter, and one JSON string, `hierindex`, for
the rest.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from hierindex.node import *  # noqa: F403
from hierindex.node import Quote, Span, quotes_of

LEVEL = "level"
LEVEL_MAX = "level_max"
SOURCE_SIMILARITY = "source_similarity"
WHOLE_DOCUMENT = "whole_document"
MORE_DOCUMENTS = "more_documents"
DETAILS = "hierindex"
RECORD_KEYS = ("hierindex_level", "hierindex_level_max", "hierindex_source_similarity", DETAILS)
"""Metadata keys of a record."""

NUMBERS = (LEVEL, LEVEL_MAX, SOURCE_SIMILARITY)
MOST_DOCUMENTS = 1_000  # that metadata name


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
