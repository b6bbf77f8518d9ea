"""The table's columns, and its format: what is written into the schema's metadata, and checked."""

from uuid import uuid4

import pyarrow as pa

from hierindex.errors import FormatError, InputError

FORMAT = "10"
"""Version of the table's columns and ids; tables of other formats are not read."""

FORMAT_KEY = b"hierindex_format"
NAME_KEY = b"hierindex_table"  # a random name, as a recreated table counts its versions anew

PRIMARY_KEY = {"lance-schema:unenforced-primary-key:position": "1"}
"""Marks the key column, so that concurrent upserts of one id make one row."""

LOST_PARENT, LOST_CHILD = "parent", "child"  # values of the column `stale`


def schema(n_dims: int) -> pa.Schema:
    """Return the table's schema, which new metadata keys never change.

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
            pa.field("stale", pa.string(), nullable=False),  # what it lost; "" for nothing
            pa.field("record", pa.string(), nullable=False),  # JSON; "" for none
            pa.field("node", pa.string(), nullable=False),  # JSON of the node's other fields
            pa.field("vector", pa.list_(pa.float32(), n_dims)),
        ]
    )


APART = {"text_hash", "words", "digests", "stale", "vector"}
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
OURS = {"id", "level", "level_max", "parent_ids", "child_ids"}  # columns of every version
