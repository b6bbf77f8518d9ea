"""Nodes as rows of an Arrow table, and back."""

import json
import math
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
from llama_index.core.schema import BaseNode, ImageNode, IndexNode, MetadataMode, TextNode

from hierindex.errors import InputError
from hierindex.record import GROUNDING, NodeRecord
from hierindex.store.digests import digests_of
from hierindex.store.filters import documents_of

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

NODE_FIELDS_APART = {"id_", "embedding", "metadata", "text"}  # they have columns of their own


def schema(n_dims: int, metadata: dict[str, str] | None = None) -> pa.Schema:
    """The table's schema; new metadata keys never change it.

    Parameters
    ----------
    n_dims : int
        Of the vectors.
    metadata : dict[str, str], optional
        Of the table as a whole: the report of the build that wrote it.
    """
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
            pa.field("documents", pa.list_(pa.string())),
            pa.field("parent_ids", pa.list_(pa.string())),
            pa.field("parent_weights", pa.list_(pa.float64())),
            pa.field("child_ids", pa.list_(pa.string())),
            pa.field("metadata", pa.string(), nullable=False),  # JSON
            pa.field("grounding", pa.float64(), nullable=False),  # -1 where metadata have none
            pa.field("digests", pa.list_(pa.string()), nullable=False),  # see `digests_of`
            pa.field("stale", pa.bool_(), nullable=False),  # a summary above or below it is gone
            pa.field("node", pa.string(), nullable=False),  # JSON: relationships, templates
            pa.field("vector", pa.list_(pa.float32(), n_dims)),
        ],
        metadata=metadata,
    )


def to_table(
    nodes: Sequence[BaseNode],
    metadata: dict[str, str] | None = None,
    stale: Collection[str] = (),
) -> pa.Table:
    """Rows of nodes; of several with one id, the last.

    Parameters
    ----------
    nodes : Sequence[BaseNode]
    metadata : dict[str, str], optional
        Of the table as a whole.
    stale : collection of str, optional
        Ids of the nodes that have lost a parent or a child.

    Raises
    ------
    InputError
        If there are none, if one has no embedding of finite numbers or one of another dimension
        than the first, or if its metadata are not JSON or its text not Unicode; names it.
    """
    if not nodes:
        raise InputError("There are no nodes to write.")
    n_dims = len(nodes[0].embedding or ())
    rows = {node.node_id: _row(node, n_dims, node.node_id in stale) for node in nodes}
    return pa.Table.from_pylist(list(rows.values()), schema=schema(n_dims, metadata))


def _row(node: BaseNode, n_dims: int, stale: bool) -> dict[str, Any]:
    vector = node.embedding
    if not vector or len(vector) != n_dims or not all(map(math.isfinite, vector)):
        raise InputError(
            f"Nodes must have embeddings of {n_dims or 'some'} finite numbers, node {node.node_id} "
            f"has {'none' if vector is None else len(vector)}."
        )
    record = NodeRecord.from_metadata(node.metadata)
    documents = documents_of(node, record)
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    try:
        metadata = json.dumps(node.metadata, ensure_ascii=False)
        (node.node_id + text + metadata).encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Metadata of node {node.node_id!r} must be JSON and its text Unicode: {error}."
        ) from error
    read_back = json.loads(metadata)  # where a tuple is a list
    grounding = read_back.get(GROUNDING)
    rest = {k: v for k, v in node.to_dict().items() if k not in NODE_FIELDS_APART}
    return {
        "id": node.node_id,
        "level": record.level,
        "level_max": record.level_max,
        "kind": record.kind,
        "whole_document": record.whole_document,
        "n_tokens": record.n_tokens,
        "text": text,
        "documents": documents,
        "parent_ids": [node_id for node_id, _ in record.parents],
        "parent_weights": [weight for _, weight in record.parents],
        "child_ids": [child.node_id for child in node.child_nodes or ()],
        "metadata": metadata,
        "grounding": grounding if isinstance(grounding, float) and 0 <= grounding <= 1 else -1.0,
        "digests": digests_of(read_back | {"documents": documents}),
        "stale": stale,
        "node": json.dumps(rest, ensure_ascii=False),
        "vector": vector,
    }


def to_nodes(table: pa.Table) -> list[TextNode]:
    """The nodes of rows; with embeddings where the table has the vectors."""
    return [_node(row) for row in table.to_pylist()]


def _node(row: dict[str, Any]) -> TextNode:
    rest = json.loads(row["node"])
    return NODE_TYPES.get(rest.get("class_name"), TextNode).from_dict(
        {
            **rest,
            "id_": row["id"],
            "text": row["text"],
            "metadata": json.loads(row["metadata"]),
            "embedding": row.get("vector"),
        }
    )


NODE_COLUMNS = ["id", "text", "metadata", "node"]
"""What `to_nodes` needs; add "vector" for embeddings."""
