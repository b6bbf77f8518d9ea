"""Nodes as rows of an Arrow table, and back.

Each fact stands in one column: links between nodes in `parent_ids`, `child_ids`,
`previous_id` and `next_id`, the user's metadata in `metadata`, a node's place in the tree in
`level` and the columns beside it. A node's relationships and its `NodeRecord` are made of them.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from hierindex.errors import FormatError, InputError
from hierindex.record import NodeRecord, as_metadata, record_keys
from hierindex.store.digests import digests_of

FORMAT = "2"
"""Of the table's columns and ids: a table of another format is not read."""

FORMAT_KEY = b"hierindex_format"
NAME_KEY = b"hierindex_table"  # a name of the table's own: one made anew counts its versions anew
REPORT_KEY = b"hierindex"

SCALARS = {
    "id": pa.string(),
    "level": pa.int32(),
    "level_max": pa.int32(),
    "kind": pa.string(),
    "whole_document": pa.string(),
}
"""Columns that filters reach without reading metadata."""

PRIMARY_KEY = {"lance-schema:unenforced-primary-key:position": "1"}
"""Marks the key column, so that concurrent upserts of one id make one row."""

NODE_TYPES = {kind.class_name(): kind for kind in (TextNode, IndexNode, ImageNode)}
"""What is read back as it was; any other node becomes a `TextNode`."""

FIELDS_APART = {"id_", "embedding", "metadata", "text", "relationships"}  # in columns of their own
MADE_BY = ("quotes", "method", "embed_model", "embed_settings", "summarizer")
"""Fields of a record that stand in the column `record`, as JSON."""

SOURCE, PARENT = NodeRelationship.SOURCE, NodeRelationship.PARENT
PREVIOUS, NEXT, CHILD = NodeRelationship.PREVIOUS, NodeRelationship.NEXT, NodeRelationship.CHILD
NO_DETAILS = RelatedNodeInfo(node_id="").model_dump(exclude={"node_id"})
LOST_PARENT, LOST_CHILD = "parent", "child"  # what a stale node has lost


def schema(n_dims: int) -> pa.Schema:
    """The table's schema; new metadata keys never change it.

    Parameters
    ----------
    n_dims : int
        Of the vectors.
    """
    texts = pa.list_(pa.string())
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False, metadata=PRIMARY_KEY),
            *(
                pa.field(name, kind, nullable=False)
                for name, kind in SCALARS.items()
                if name != "id"
            ),
            pa.field("n_tokens", pa.int32(), nullable=False),
            pa.field("text", pa.string(), nullable=False),
            pa.field("documents", texts),
            pa.field("parent_ids", texts),  # the strongest first
            pa.field("parent_weights", pa.list_(pa.float64())),
            pa.field("child_ids", texts),
            pa.field("previous_id", pa.string(), nullable=False),  # "" for none
            pa.field("next_id", pa.string(), nullable=False),
            pa.field("source", pa.string(), nullable=False),  # JSON of the document; "" for none
            pa.field("metadata", pa.string(), nullable=False),  # JSON
            pa.field("grounding", pa.float64(), nullable=False),  # -1 for none
            pa.field("digests", texts, nullable=False),  # see `digests_of`
            pa.field("stale", pa.string(), nullable=False),  # "parent" or "child" that is gone
            pa.field("record", pa.string(), nullable=False),  # JSON; "" for a node without
            pa.field("node", pa.string(), nullable=False),  # JSON of what is left of it
            pa.field("vector", pa.list_(pa.float32(), n_dims)),
        ]
    )


NODE_COLUMNS = [
    *(name for name in schema(1).names if name not in ("digests", "stale", "vector")),
]
"""What `to_nodes` needs; add "vector" for embeddings."""


def new_table(rows: pa.Table, report: Mapping[str, Any] | None = None) -> pa.Table:
    """Rows to make a table of, with its format, a name of its own and the report of its build."""
    told = {} if report is None else {REPORT_KEY: json.dumps(report, ensure_ascii=False)}
    return rows.replace_schema_metadata({FORMAT_KEY: FORMAT, NAME_KEY: uuid4().hex, **told})


def report_of(schema: pa.Schema) -> dict[str, Any]:
    """The report of the build that wrote a table; empty where a pipeline filled it."""
    report: dict[str, Any] = json.loads((schema.metadata or {}).get(REPORT_KEY, b"{}"))
    return report


def check_format(schema: pa.Schema, uri: str) -> None:
    """Refuse a table of another format.

    Raises
    ------
    FormatError
        If an older or newer version of hierindex wrote it; says how to mend it.
    InputError
        If it is none of hierindex's.
    """
    if not set(schema.names) >= OURS:
        raise InputError(
            f"{uri!r} holds a table that hierindex did not write; name another folder."
        )
    found = (schema.metadata or {}).get(FORMAT_KEY, b"1").decode()
    if found != FORMAT or schema.names != NAMES:
        raise FormatError(
            f"The index {uri!r} was written by another version of hierindex (format {found}, this "
            f"version reads format {FORMAT}); build it again."
        )


def check_dimension(schema: pa.Schema, n_dims: int, whose: str) -> None:
    """Refuse vectors of another dimension than the table's.

    Raises
    ------
    InputError
        Names both.
    """
    held = schema.field("vector").type.list_size
    if n_dims != held:
        raise InputError(
            f"The index holds vectors of {held} dimensions, {whose} {n_dims}; use the embedding "
            "model that it was built with, or another folder."
        )


NAMES = schema(1).names
OURS = {"id", "level", "level_max", "parent_ids", "child_ids"}  # columns of every version


def to_table(nodes: Sequence[BaseNode]) -> pa.Table:
    """Rows of nodes; of several with one id, the last.

    Parameters
    ----------
    nodes : Sequence[BaseNode]

    Raises
    ------
    InputError
        If there are none, if one has no embedding of finite numbers or one of another dimension
        than the first, or if its metadata are not JSON or its text not Unicode; names it.
    """
    if not nodes:
        raise InputError("There are no nodes to write.")
    n_dims = len(nodes[0].embedding or ())
    rows = {node.node_id: {**row_of(node), "vector": _vector(node, n_dims)} for node in nodes}
    return as_table(list(rows.values()))


def as_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows with all columns as a table; there is one at least."""
    return pa.Table.from_pylist(list(rows), schema=schema(len(rows[0]["vector"])))


def _vector(node: BaseNode, n_dims: int) -> list[float]:
    vector = node.embedding
    if not vector or len(vector) != n_dims or not all(map(math.isfinite, vector)):
        raise InputError(
            f"Nodes must have embeddings of {n_dims or 'some'} finite numbers, node {node.node_id} "
            f"has {'none' if vector is None else len(vector)}."
        )
    return vector


def row_of(node: BaseNode) -> dict[str, Any]:
    """A node's columns, without its vector.

    Raises
    ------
    InputError
        If its metadata are not JSON or its text not Unicode; names it.
    """
    record = NodeRecord.from_metadata(node.metadata)
    keys = record_keys(node.metadata)
    links = _links(node)
    parents = record.parents or tuple((node_id, 1.0) for node_id in links[PARENT])
    own = {k: v for k, v in node.metadata.items() if k not in keys}
    source = node.source_node
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    try:
        metadata = json.dumps(own, ensure_ascii=False)
        (node.node_id + text + metadata).encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Metadata of node {node.node_id!r} must be JSON and its text Unicode: {error}."
        ) from error
    documents = documents_of(node, record)
    rest = {k: v for k, v in node.to_dict().items() if k not in FIELDS_APART}
    values = {**(source.metadata if source else {}), **json.loads(metadata)}
    return {
        "id": node.node_id,
        "level": record.level,
        "level_max": record.level_max,
        "kind": record.kind,
        "whole_document": record.whole_document,
        "n_tokens": record.n_tokens,
        "text": text,
        "documents": documents,
        "parent_ids": [node_id for node_id, _ in parents],
        "parent_weights": [weight for _, weight in parents],
        "child_ids": list(links[CHILD]),
        "previous_id": next(iter(links[PREVIOUS]), ""),
        "next_id": next(iter(links[NEXT]), ""),
        "source": source.model_dump_json() if source else "",
        "metadata": metadata,
        "grounding": _share(record.grounding) if keys else -1.0,
        "digests": digests_of(node.node_id, values, documents),
        "stale": "",
        "record": _json({key: getattr(record, key) for key in MADE_BY}) if keys else "",
        "node": _json({**rest, **_detailed(links)}),
    }


def _share(grounding: Any) -> float:
    """A grounding as a column has it; -1 for none."""
    return grounding if isinstance(grounding, float) and 0 <= grounding <= 1 else -1.0


def documents_of(node: BaseNode, record: NodeRecord) -> list[str]:
    """Ids of the documents that a node stands on; a node without any is its own."""
    return list(record.documents) or [node.ref_doc_id or node.node_id]


def _links(node: BaseNode) -> dict[NodeRelationship, dict[str, RelatedNodeInfo]]:
    """What a node is linked to, by kind of link and by id."""
    links: dict[NodeRelationship, dict[str, RelatedNodeInfo]] = {}
    for kind in (PARENT, CHILD, PREVIOUS, NEXT):
        related = node.relationships.get(kind) or []
        each = related if isinstance(related, list) else [related]
        links[kind] = {info.node_id: info for info in each}
    return links


def _detailed(links: Mapping[NodeRelationship, Mapping[str, RelatedNodeInfo]]) -> dict[str, Any]:
    """What is told of linked nodes beside their ids, by kind of link and by id."""
    told = {
        kind.name: {
            node_id: info.model_dump(mode="json")
            for node_id, info in infos.items()
            if info.model_dump(exclude={"node_id"}) != NO_DETAILS
        }
        for kind, infos in links.items()
    }
    return {"linked": told} if any(told.values()) else {}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def to_nodes(rows: pa.Table | pa.RecordBatch) -> list[TextNode]:
    """The nodes of rows; with embeddings where they have vectors."""
    return list(map(node_of, rows.to_pylist()))


def node_of(row: Mapping[str, Any]) -> TextNode:
    """The node of a row, with relationships and record made of its columns."""
    rest = json.loads(row["node"])
    told: dict[str, dict[str, Any]] = rest.pop("linked", {})

    def related(kind: NodeRelationship, ids: Collection[str]) -> list[RelatedNodeInfo]:
        known = told.get(kind.name, {})
        return [RelatedNodeInfo(**known.get(node_id, {"node_id": node_id})) for node_id in ids]

    relationships: dict[NodeRelationship, Any] = {}
    if row["source"]:
        relationships[SOURCE] = RelatedNodeInfo.model_validate_json(row["source"])
    if row["parent_ids"]:
        relationships[PARENT] = related(PARENT, row["parent_ids"][:1])[0]
    if row["child_ids"]:
        relationships[CHILD] = related(CHILD, row["child_ids"])
    for kind, column in ((PREVIOUS, "previous_id"), (NEXT, "next_id")):
        if row[column]:
            relationships[kind] = related(kind, [row[column]])[0]
    return NODE_TYPES.get(rest.get("class_name"), TextNode).from_dict(
        {
            **rest,
            "id_": row["id"],
            "text": row["text"],
            "metadata": json.loads(row["metadata"]) | _record(row),
            "relationships": relationships,
            "embedding": row.get("vector"),
        }
    )


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata entries that carry a row's record."""
    if not row["record"]:
        return {}
    parents = zip(row["parent_ids"], row["parent_weights"], strict=True)
    grounding = row["grounding"] if row["grounding"] >= 0 else None
    return as_metadata(
        {**row, **json.loads(row["record"]), "parents": [*parents], "grounding": grounding}
    )
