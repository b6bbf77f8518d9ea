"""Conversion of nodes to rows of the table and back.

Each fact is stored in one column: links in `parent_ids`, `child_ids`, `previous_id` and
`next_id`, the user's metadata in `metadata`, the place in the tree in `level` and the columns
next to it. A node's relationships and its `NodeRecord` are rebuilt from these columns.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
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
from numpy.typing import NDArray

from hierindex.errors import InputError
from hierindex.record import (
    FILE_NAME,
    MORE_DOCUMENTS,
    SECTION,
    TITLE,
    NodeRecord,
    Quote,
    as_metadata,
    fields_in,
    quotes_of,
    record_keys,
    to_json,
)
from hierindex.store.hashed_metadata import hash_text, row_digests
from hierindex.store.schema import schema

NODE_TYPES = {kind.class_name(): kind for kind in (TextNode, IndexNode, ImageNode)}
"""Types that nodes are restored to; nodes of other types become a `TextNode`."""

FIELDS_APART = {"id_", "embedding", "metadata", "text", "relationships"}  # stored in other columns
NO_RECORD = vars(NodeRecord())
NOTHING: Mapping[str, Sequence[str]] = {}
EMBEDDED = "id", "text", "metadata", "node"
"""Columns that `embedded_text` needs: a record is never embedded."""
MADE_BY = ("quotes", "method", "embed_model", "embed_settings", "summarizer")
"""Fields of a record that the column `record` stores as JSON."""

SOURCE, PARENT = NodeRelationship.SOURCE, NodeRelationship.PARENT
PREVIOUS, NEXT, CHILD = NodeRelationship.PREVIOUS, NodeRelationship.NEXT, NodeRelationship.CHILD


def to_table(
    nodes: Sequence[BaseNode], documents: Mapping[str, Sequence[str]] = NOTHING
) -> pa.Table:
    """Convert nodes to rows; of several nodes with one id, the last is kept.

    Parameters
    ----------
    nodes : Sequence[BaseNode]
    documents : Mapping[str, Sequence[str]]
        See `all_documents`.

    Raises
    ------
    InputError
        If there are no nodes, or a node's embedding is missing, not finite or of another dimension
        than the first one's, or its metadata are not JSON, or its text is not Unicode.
    """
    if not nodes:
        raise InputError("There are no nodes to write.")
    n_dims = len(nodes[0].embedding or ())
    rows = {
        node.node_id: {
            **row_of(node, documents.get(node.node_id)),
            "vector": _vector(node, n_dims),
        }
        for node in nodes
    }
    return as_table(list(rows.values()))


def as_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Convert one or more complete rows to a table."""
    X = np.array([row["vector"] for row in rows], dtype=np.float32)  # (n_rows, n_dims)
    columns = schema(X.shape[1])
    vectors = pa.FixedSizeListArray.from_arrays(X.ravel(), type=columns.field("vector").type)
    others = pa.Table.from_pylist(list(rows), schema=columns.remove(len(columns) - 1))
    return others.append_column(columns.field("vector"), vectors)


def _vector(node: BaseNode, n_dims: int) -> NDArray[np.float32]:
    vector = node.embedding
    x = np.array(vector or (), dtype=np.float64)
    if not vector or len(x) != n_dims or not np.isfinite(x).all():
        raise InputError(
            f"Nodes must have embeddings of {n_dims or 'some'} finite numbers, node {node.node_id} "
            f"has {'none' if vector is None else len(vector)}."
        )
    return x.astype(np.float32)


def row_of(node: BaseNode, documents: Sequence[str] | None = None) -> dict[str, Any]:
    """Return a node's columns, without its vector.

    Its documents are those that its record names, if they are not given.

    Raises
    ------
    InputError
        If its metadata are not JSON or its text is not Unicode.
    """
    record = NO_RECORD | fields_in(node.metadata)
    keys = record_keys(node.metadata)
    links = _links(node)
    parents = record["parents"] or [(node_id, 1.0) for node_id in links[PARENT]]
    user_entries = {k: v for k, v in node.metadata.items() if k not in keys}
    source = node.source_node
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    try:
        metadata = json.dumps(user_entries, ensure_ascii=False)
        (node.node_id + text + metadata).encode()
    except (TypeError, ValueError) as error:
        raise not_json(node, error) from error
    documents = list(documents or record["documents"]) or _own_document(node)
    rest = node.to_dict(exclude=FIELDS_APART)
    values = {**(source.metadata if source else {}), **json.loads(metadata)}
    return {
        "id": node.node_id,
        "level": record["level"],
        "level_max": record["level_max"],
        "kind": record["kind"],
        "whole_document": record["whole_document"],
        "title": record["title"],
        "n_tokens": record["n_tokens"],
        "text": text,
        "text_hash": hash_text(text),
        "words": matched_words(values, text),
        "documents": documents,
        "document_hash": record["document_hash"],
        "read_from": record["read_from"],
        "parent_ids": [node_id for node_id, _ in parents],
        "parent_weights": [weight for _, weight in parents],
        "child_ids": list(links[CHILD]),
        "previous_id": next(iter(links[PREVIOUS]), ""),
        "next_id": next(iter(links[NEXT]), ""),
        "source": source.model_dump_json() if source else "",
        "metadata": metadata,
        "grounding": _share(record["grounding"]) if keys else -1.0,
        "digests": row_digests(node.node_id, values, documents),
        "stale": "",
        "record": to_json({key: record[key] for key in MADE_BY}) if keys else "",
        "node": to_json({**rest, **_detailed(links)}),
    }


def not_json(node: BaseNode, error: Exception) -> InputError:
    """Return the error of a node that cannot be written as JSON."""
    return InputError(
        f"Metadata of node {node.node_id!r} must be JSON and its text Unicode: {error}."
    )


def matched_words(metadata: Mapping[str, Any], text: str) -> str:
    r"""Return what a question's words are matched with: titles, file names, section and text.

    >>> matched_words({"title": "The bridge", "file_name": ["a.md", "b.md"]}, "It was closed.")
    'The bridge\na.md\nb.md\nIt was closed.'
    """
    values = [metadata.get(key, ()) for key in (TITLE, FILE_NAME, SECTION)]
    names = [name for value in values for name in (value if isinstance(value, list) else [value])]
    return "\n".join(dict.fromkeys([*(name for name in names if isinstance(name, str)), text]))


def _share(grounding: Any) -> float:
    """Return the value of the column `grounding`; -1 for none."""
    return grounding if isinstance(grounding, float) and 0 <= grounding <= 1 else -1.0


def documents_of(node: BaseNode, record: NodeRecord) -> list[str]:
    """Return the ids of a node's source documents, or the node's own id if it has none."""
    return list(record.documents) or _own_document(node)


def _own_document(node: BaseNode) -> list[str]:
    return [node.ref_doc_id or node.node_id]


def _links(node: BaseNode) -> dict[NodeRelationship, dict[str, RelatedNodeInfo]]:
    """Return a node's links by relationship and id."""
    links: dict[NodeRelationship, dict[str, RelatedNodeInfo]] = {}
    for kind in (PARENT, CHILD, PREVIOUS, NEXT):
        related = node.relationships.get(kind) or []
        each = related if isinstance(related, list) else [related]
        links[kind] = {info.node_id: info for info in each}
    return links


def _detailed(links: Mapping[NodeRelationship, Mapping[str, RelatedNodeInfo]]) -> dict[str, Any]:
    """Return what links carry besides ids, by relationship and id."""
    details = {
        kind.name: {
            node_id: info.model_dump(mode="json")
            for node_id, info in infos.items()
            if info != RelatedNodeInfo(node_id=node_id)
        }
        for kind, infos in links.items()
    }
    return {"linked": details} if any(details.values()) else {}


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
    """Convert a row to a node."""
    rest = json.loads(row["node"])
    details: dict[str, dict[str, Any]] = rest.pop("linked", {})

    def related(kind: NodeRelationship, ids: Collection[str]) -> list[RelatedNodeInfo]:
        known = details.get(kind.name, {})
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
    return _kind_of(rest).from_dict(
        {
            **rest,
            "id_": row["id"],
            "text": row["text"],
            "metadata": json.loads(row["metadata"]) | _record(row),
            "relationships": relationships,
            "embedding": row.get("vector"),
        }
    )


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
    grounding = row["grounding"] if row["grounding"] >= 0 else None
    return as_metadata(
        {
            **row,
            **json.loads(row["record"]),
            "parents": [*parents],
            "grounding": grounding,
            MORE_DOCUMENTS: 0,
        }
    )
