"""Conversion of nodes to rows and back: the columns and format of the table.

Each fact is stored in one column. Links are in `parent_ids`, `child_ids`, `previous_id` and
`next_id`, the user's metadata in `metadata`, and the position in the tree in `level` and the
columns next to it.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from hierindex.core.identity import hash_text
from hierindex.errors import FormatError, InputError
from hierindex.node import (
    FILE_NAME,
    MOST_DOCUMENTS,
    RECORDED,
    SECTION,
    TITLE,
    Node,
    Quote,
    of_record,
    quotes_of,
    to_json,
)
from hierindex.store.filters import row_digests, row_scalars
from hierindex.text.blocks import blocks_of
from hierindex.text.characters import searched

FORMAT = "14"
"""Version of the table's columns and ids; tables of other formats are not read."""

FORMAT_KEY = b"hierindex_format"
NAME_KEY = b"hierindex_table"  # a random name, as a recreated table counts its versions anew

PRIMARY_KEY = {"lance-schema:unenforced-primary-key:position": "1"}
"""Marks the key column, so that concurrent upserts of one id make one row."""

LOST_PARENT, LOST_CHILD = "parent", "child"  # values of the column `stale`

APART = {"text_hash", "words", "digests", "scalars", "stale", "vector"}
OURS = {"id", "level", "level_max", "parent_ids", "child_ids"}  # columns of every version
PEOPLE = "author", "authors", "from", "to", "cc"  # metadata keys
DATE = "date"  # metadata key, in ISO 8601
MONTHS = (  # in English, whatever the process's locale
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
AS_THEY_ARE = (
    "id text level level_max kind title n_tokens whole_document document_hash read_from".split()
)
"""Fields of a node that are stored in columns of the same names."""


def schema(n_dims: int) -> pa.Schema:
    """Return the table's schema, which does not depend on metadata keys.

    Parameters
    ----------
    n_dims : int
        Dimension of the vectors.
    """
    texts = pa.list_(pa.string())
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False, metadata=PRIMARY_KEY),
            pa.field("level", pa.int32(), nullable=False),
            pa.field("level_max", pa.int32(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("whole_document", pa.string(), nullable=False),  # "" for none
            pa.field("title", pa.string(), nullable=False),  # the node's, not its document's
            pa.field("n_tokens", pa.int32(), nullable=False),
            pa.field("text", pa.string(), nullable=False),
            pa.field("text_hash", pa.int64(), nullable=False),  # equal for copies
            pa.field("words", pa.string(), nullable=False),  # see `matched_words`
            pa.field("documents", texts),
            pa.field("document_hash", pa.string(), nullable=False),  # "" if unknown
            pa.field("read_from", pa.string(), nullable=False),  # the source; "" for none
            pa.field("parent_ids", texts),  # the strongest first
            pa.field("parent_weights", pa.list_(pa.float64())),
            pa.field("child_ids", texts),
            pa.field("previous_id", pa.string(), nullable=False),  # "" for none
            pa.field("next_id", pa.string(), nullable=False),
            pa.field("source", pa.string(), nullable=False),  # JSON of the document; "" for none
            pa.field("metadata", pa.string(), nullable=False),  # JSON
            pa.field("digests", texts, nullable=False),  # see `row_digests`
            pa.field("scalars", pa.json_(), nullable=False),  # see `row_scalars`
            pa.field("stale", pa.string(), nullable=False),  # what it lost; "" for nothing
            pa.field("record", pa.string(), nullable=False),  # JSON; "" for none
            pa.field("node", pa.string(), nullable=False),  # JSON of the node's other fields
            pa.field("vector", pa.list_(pa.float32(), n_dims)),
        ]
    )


NODE_COLUMNS = [name for name in schema(1).names if name not in APART]
"""Columns that `rows.to_nodes` needs; add "vector" for embeddings."""


def identity() -> dict[bytes, bytes]:
    """Return the metadata of a new table's schema: the format and a random name."""
    return {FORMAT_KEY: FORMAT.encode(), NAME_KEY: uuid4().hex.encode()}


def check_format(schema: pa.Schema, uri: str) -> None:
    """Raise an error if a table is not in the current format.

    Raises
    ------
    FormatError
        If another version of hierindex wrote it.
    InputError
        If hierindex did not write it.
    """
    if not set(schema.names) >= OURS:
        raise InputError(
            f"{uri!r} holds a table that hierindex did not write; name another folder."
        )
    found = (schema.metadata or {}).get(FORMAT_KEY, b"1").decode()
    if found != FORMAT or schema.names != NAMES:
        raise FormatError(
            f"The index {uri!r} was written by another version of hierindex (format {found}, this "
            f"version reads format {FORMAT}); build it again with --replace (in Python "
            "replace=True)."
        )


def check_dimension(schema: pa.Schema, n_dims: int, whose: str) -> None:
    """Raise InputError if vectors have another dimension than the table's."""
    held = schema.field("vector").type.list_size
    if n_dims != held:
        raise InputError(
            f"The index holds vectors of {held} dimensions, {whose} {n_dims}; use the embedding "
            "model that it was built with, or another folder."
        )


NAMES = schema(1).names


Row = dict[str, Any]
"""The values of a row by column."""


def to_table(nodes: Sequence[Node]) -> pa.Table:
    """Convert nodes to rows; if several nodes have the same id, the last one is kept.

    Raises
    ------
    InputError
        If a node cannot be written, see `row_of` and `as_table`.
    """
    return as_table(list({node.id: row_of(node) for node in nodes}.values()))


def as_table(rows: Sequence[Row]) -> pa.Table:
    """Convert rows to a table.

    Raises
    ------
    InputError
        If there are no rows, or a vector is missing, not finite or of another dimension than the
        first one.
    """
    if not rows:
        raise InputError("There are no nodes to write.")
    vectors = [() if row["vector"] is None else row["vector"] for row in rows]
    n_dims = len(vectors[0])
    for row, vector in zip(rows, vectors, strict=True):
        if not 0 < len(vector) == n_dims or not np.isfinite(vector).all():
            raise InputError(
                f"Nodes must have embeddings of {n_dims or 'one or more'} finite numbers, node "
                f"{row['id']} has {len(vector)}."
            )
    return pa.Table.from_pylist(list(rows), schema(n_dims))


def row_of(node: Node) -> Row:
    """Return the row of a node.

    Raises
    ------
    InputError
        If the node's metadata are not JSON or its text is not Unicode.
    """
    documents = list(node.documents)
    try:
        metadata = json.dumps(node.metadata, ensure_ascii=False)
        source = to_json(node.source) if node.source else ""
        others = to_json(node.others)
        "".join([node.id, node.text, metadata, source, others, *documents]).encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Metadata of node {node.id!r} must be JSON and its text Unicode: {error}."
        ) from error
    values = {**(json.loads(source).get("metadata", {}) if source else {}), **json.loads(metadata)}
    facts = {name: getattr(node, name) for name in RECORDED}
    record = "" if node.maker is None else to_json(facts)
    return {
        **{name: getattr(node, name) for name in AS_THEY_ARE},
        "documents": documents,
        "parent_ids": [node_id for node_id, _ in node.parents],
        "parent_weights": [weight for _, weight in node.parents],
        "child_ids": list(node.children),
        "previous_id": node.previous,
        "next_id": node.next,
        "source": source,
        "metadata": metadata,
        "stale": "",
        "record": record,
        "node": others,
        "vector": node.vector,
        "text_hash": hash_text(node.text),
        "words": searched(matched_words(values, node.text)),
        "digests": row_digests(values, documents),
        "scalars": row_scalars(values),
    }


def to_nodes(rows: pa.Table | pa.RecordBatch) -> list[Node]:
    """Convert rows to nodes, with vectors if the rows have them."""
    return list(map(node_of, rows.to_pylist()))


def node_of(row: Mapping[str, Any]) -> Node:
    """Convert a row to a node, with its vector if the row has one."""
    vector = row.get("vector")
    return Node(
        **{name: row[name] for name in AS_THEY_ARE},
        metadata=json.loads(row["metadata"]),
        documents=tuple(row["documents"]),
        parents=tuple(zip(row["parent_ids"], row["parent_weights"], strict=True)),
        children=tuple(row["child_ids"]),
        previous=row["previous_id"],
        next=row["next_id"],
        **of_record(json.loads(row["record"]) if row["record"] else {}),
        source=json.loads(row["source"]) if row["source"] else {},
        others=json.loads(row["node"]),
        vector=None if vector is None else np.asarray(vector, np.float32),
    )


def quotes_in(record: str) -> tuple[Quote, ...]:
    """Return the quotes of a node from its column `record`."""
    return quotes_of(json.loads(record)["quotes"]) if record else ()


def matched_words(metadata: Mapping[str, Any], text: str) -> str:
    r"""Return the text that a question's words are matched with: names, people, dates and text.

    Names are titles, file names and section; people are authors, senders and recipients.

    >>> matched_words({"title": "The bridge", "from": "Ada", "date": "1901-02-03"}, "It is closed.")
    'The bridge\nAda\n1901-02-03\n3 February 1901\nIt is closed.'
    """
    dates = [each for day in _strings(metadata, [DATE]) for each in (day, _in_words(day))]
    parts = [*names_in(metadata), *_strings(metadata, PEOPLE), *filter(None, dates), text]
    return "\n".join(dict.fromkeys(parts))


def names_in(metadata: Mapping[str, Any]) -> list[str]:
    """Return titles, file names and section.

    >>> names_in({"title": "The bridge", "file_name": ["a.md", "b.md"]})
    ['The bridge', 'a.md', 'b.md']
    """
    return [*dict.fromkeys(_strings(metadata, (TITLE, FILE_NAME, SECTION)))]


def _strings(metadata: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    values = [metadata.get(key) for key in keys]
    each = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return [one for one in each if isinstance(one, str)]


def _in_words(date: str) -> str:
    """Return an ISO 8601 date in the usual English form, or ""."""
    try:
        day = datetime.fromisoformat(date)
    except ValueError:
        return ""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def describe(node: Node) -> dict[str, Any]:
    """Return a node's text, position in the tree, links and sources as JSON values; no vector.

    `documents` has the first 1,000 ids, and `more_documents` is the number of the others. `blocks`
    are the parts of the text with their kinds, see `Block`. `sentences` are the bounds of the
    sentences of a summary that a model wrote, each "verbatim", "supported" or "unsupported".
    """
    named = list(node.documents[:MOST_DOCUMENTS])
    return {
        "id": node.id,
        "title": node.title,
        "level": node.level,
        "level_max": node.level_max,
        "kind": node.kind,
        "grounding": None if node.grounding is None else node.grounding.to_json(),
        "n_tokens": node.n_tokens,
        "documents": named,
        "more_documents": len(node.documents) - len(named),
        "parents": [{"id": parent, "weight": weight} for parent, weight in node.parents],
        "children": list(node.children),
        "citations": [span.to_json() for span in node.citations],
        "metadata": json_metadata(node),
        "text": node.text,
        "sentences": [] if node.grounding is None else [*map(_checked, node.quotes)],
        "blocks": [block._asdict() for block in blocks_of(node)],
    }


def _checked(quote: Quote) -> dict[str, Any]:
    rewritten = "supported" if quote.sources else "unsupported"
    return {"at": quote.at, "to": quote.to, "is": "verbatim" if quote.verbatim else rewritten}


def json_metadata(node: Node) -> dict[str, Any]:
    """Return a node's metadata as JSON values; numbers that JSON cannot express become None."""
    values: dict[str, Any] = json.loads(json.dumps(node.metadata), parse_constant=lambda _: None)
    return values
