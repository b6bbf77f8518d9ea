"""Conversion of rows of the table to nodes; see `hierindex.store.rows` for what a row has."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from llama_index.core.schema import (
    ImageNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from hierindex.record import MORE_DOCUMENTS, NodeRecord, Quote, as_metadata, quotes_of
from hierindex.store.rows import CHILD, LINKS, NEXT, PARENT, PREVIOUS, SOURCE

NODE_TYPES = {kind.class_name(): kind for kind in (TextNode, IndexNode, ImageNode)}
"""Types that nodes are restored to; nodes of other types become a `TextNode`."""

EMBEDDED = "id", "text", "metadata", "node"
"""Columns that `embedded_text` needs: a record is never embedded."""
RECORD_COLUMNS = (
    *("level", "level_max", "kind", "n_tokens", "whole_document", "title"),
    *("document_hash", "read_from"),
)
"""Columns that are fields of a record."""


def to_nodes(rows: pa.Table | pa.RecordBatch) -> list[TextNode]:
    """Convert rows to nodes, with embeddings if the rows have vectors."""
    return list(map(node_of, rows.to_pylist()))


def embedded_text(row: Mapping[str, Any]) -> str:
    """Return the text of a row's node as it was embedded, given the columns `EMBEDDED`."""
    rest, metadata = json.loads(row["node"]), json.loads(row["metadata"])
    node = _kind_of(rest).from_dict(
        {**rest, "id_": row["id"], "text": row["text"], "metadata": metadata}
    )
    return node.get_content(MetadataMode.EMBED)


def node_of(row: Mapping[str, Any]) -> TextNode:
    """Convert a row to a node, with its vector if the row has one."""
    return _node(row, json.loads(row["metadata"]) | _record(row), LINKS, row.get("vector"))


def bare_node(row: Mapping[str, Any]) -> TextNode:
    """Convert a row to a node without its record, vector, parent and children."""
    return _node(row, json.loads(row["metadata"]), (PREVIOUS, NEXT))


def record_of(row: Mapping[str, Any]) -> NodeRecord:
    """Return the record of a row, with all documents."""
    made_by = json.loads(row["record"]) if row["record"] else {}
    return NodeRecord(
        **{column: row[column] for column in RECORD_COLUMNS},
        **made_by | {"quotes": quotes_of(made_by.get("quotes", ()))},
        documents=tuple(row["documents"]),
        parents=tuple(zip(row["parent_ids"], row["parent_weights"], strict=True)),
        source_similarity=_similarity(row),
    )


def _node(
    row: Mapping[str, Any],
    metadata: Mapping[str, Any],
    kinds: Sequence[NodeRelationship],
    vector: Sequence[float] | None = None,
) -> TextNode:
    """Convert a row to a node with links of some kinds."""
    rest = json.loads(row["node"])
    details: dict[str, dict[str, Any]] = rest.pop("linked", {})
    relationships: dict[NodeRelationship, Any] = {}
    if row["source"]:
        relationships[SOURCE] = RelatedNodeInfo.model_validate_json(row["source"])
    for kind in kinds:
        known, ids = details.get(kind.name, {}), _linked_ids(row, kind)
        infos = [RelatedNodeInfo(**known.get(node_id, {"node_id": node_id})) for node_id in ids]
        if infos:
            relationships[kind] = infos if kind is CHILD else infos[0]
    return _kind_of(rest).from_dict(
        {
            **rest,
            "id_": row["id"],
            "text": row["text"],
            "metadata": metadata,
            "relationships": relationships,
            "embedding": vector,
        }
    )


def _linked_ids(row: Mapping[str, Any], kind: NodeRelationship) -> Sequence[str]:
    """Return the ids of all children of a row, or of its first link of another kind."""
    if kind is CHILD:
        return row["child_ids"] or ()
    if kind is PARENT:
        return (row["parent_ids"] or ())[:1]
    node_id = row["previous_id" if kind is PREVIOUS else "next_id"]
    return [node_id] if node_id else ()


def _kind_of(rest: Mapping[str, Any]) -> type[TextNode]:
    return NODE_TYPES.get(rest["class_name"], TextNode)


def quotes_in(record: str) -> tuple[Quote, ...]:
    """Return the quotes of a node from its column `record`."""
    return quotes_of(json.loads(record)["quotes"]) if record else ()


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata entries of a row's record."""
    if not row["record"]:
        return {}
    parents = zip(row["parent_ids"], row["parent_weights"], strict=True)
    return as_metadata(
        {
            **row,
            **json.loads(row["record"]),
            "parents": [*parents],
            "source_similarity": _similarity(row),
            MORE_DOCUMENTS: 0,
        }
    )


def _similarity(row: Mapping[str, Any]) -> float | None:
    similarity: float = row["source_similarity"]
    return similarity if similarity >= 0 else None
