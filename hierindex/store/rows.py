"""Conversion of nodes to rows of the table.

Each fact is stored in one column: links in `parent_ids`, `child_ids`, `previous_id` and
`next_id`, the user's metadata in `metadata`, the place in the tree in `level` and the columns
next to it. `hierindex.store.nodes` rebuilds a node's relationships and its `NodeRecord` from these
columns.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from numpy.typing import NDArray

from hierindex.errors import InputError
from hierindex.record import (
    DETAILS,
    FILE_NAME,
    NO_RECORD,
    SECTION,
    TITLE,
    NodeRecord,
    fields_in,
    record_keys,
    to_json,
)
from hierindex.store.filters import PREFIX
from hierindex.store.hashed_metadata import hash_text, row_digests
from hierindex.store.schema import schema

if TYPE_CHECKING:
    from hierindex.store.snapshot import Snapshot

Row = dict[str, Any]
"""The values of a row by column."""
Links = Mapping[NodeRelationship, Mapping[str, RelatedNodeInfo]]
"""Links by relationship and id."""

FIELDS_APART = {"id_", "embedding", "metadata", "text", "relationships"}  # stored in other columns
NOTHING: Mapping[str, Sequence[str]] = {}
MADE_BY = ("quotes", "method", "embed_model", "embed_settings", "summarizer")
"""Fields of a record that the column `record` stores as JSON."""

SOURCE, PARENT = NodeRelationship.SOURCE, NodeRelationship.PARENT
PREVIOUS, NEXT, CHILD = NodeRelationship.PREVIOUS, NodeRelationship.NEXT, NodeRelationship.CHILD
LINKS = PARENT, CHILD, PREVIOUS, NEXT
TEMPLATES = {"text_template": ["metadata_str", "content"], "metadata_template": ["key", "value"]}
"""Templates of a node, and what they are formatted with."""


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
        If a node cannot be written, see `row_of` and `as_table`.
    """
    rows = {node.node_id: row_of(node, documents.get(node.node_id)) for node in nodes}
    return as_table(list(rows.values()))


def as_table(rows: Sequence[Row]) -> pa.Table:
    """Convert rows to a table.

    Raises
    ------
    InputError
        If there are no rows, or a vector is missing, not finite or of another dimension than the
        first one.
    """
    X = _vectors(rows)
    columns = schema(X.shape[1])
    vectors = pa.FixedSizeListArray.from_arrays(X.ravel(), type=columns.field("vector").type)
    others = pa.Table.from_pylist(list(rows), schema=columns.remove(len(columns) - 1))
    return others.append_column(columns.field("vector"), vectors)


def _vectors(rows: Sequence[Row]) -> NDArray[np.float32]:
    """Return the vectors of rows, (n_rows, n_dims)."""
    if not rows:
        raise InputError("There are no nodes to write.")
    first = rows[0]["vector"]
    n_dims = 0 if first is None else len(first)
    for row in rows:
        vector = row["vector"]
        length = "none" if vector is None else len(vector)
        if length != n_dims or not n_dims or not np.isfinite(np.asarray(vector, np.float64)).all():
            raise InputError(
                f"Nodes must have embeddings of {n_dims or 'some'} finite numbers, node "
                f"{row['id']} has {length}."
            )
    return np.array([row["vector"] for row in rows], np.float32)


def row_of(node: BaseNode, documents: Sequence[str] | None = None) -> Row:
    """Return the row of a node, whose place in the tree is in its metadata and relationships.

    Its documents are those that its record names, if they are not given.

    Raises
    ------
    InputError
        If its metadata are not JSON or have a key of ours, its text is not Unicode, or a template
        cannot be formatted.
    """
    check_node(node)
    record = NO_RECORD | fields_in(node.metadata)
    keys = record_keys(node.metadata)
    links = _links(node)
    record["parents"] = record["parents"] or [(node_id, 1.0) for node_id in links[PARENT]]
    record["documents"] = documents or record["documents"]
    metadata = {k: v for k, v in node.metadata.items() if k not in keys}
    row = _row(node, metadata, record, links[CHILD], links, node.embedding)
    return row if keys else row | {"source_similarity": -1.0, "record": ""}


def check_node(node: BaseNode) -> None:
    """Raise InputError if a node has a reserved metadata key or an invalid template."""
    taken = {key for key in node.metadata if key == DETAILS or key.startswith(PREFIX)}
    if taken := taken - {*record_keys(node.metadata)}:
        raise InputError(
            f"Metadata key {min(taken)!r} of node {node.node_id} is reserved for hierindex; "
            "rename it."
        )
    for name, fields in TEMPLATES.items():
        template = getattr(node, name, "")
        try:
            template.format(**dict.fromkeys(fields, "text"))
        except (ValueError, LookupError, AttributeError) as error:
            raise InputError(
                f"{name} of node {node.node_id!r} cannot be formatted, got {template!r}; use only "
                f"{{{'} and {'.join(fields)}}}, and double all other braces."
            ) from error


def placed_row(
    node: TextNode, record: NodeRecord, children: Sequence[str], vector: NDArray[np.floating]
) -> Row:
    """Return the row of a node whose record, children and vector are given.

    Parameters
    ----------
    node : TextNode
    record : NodeRecord
    children : Sequence[str]
        Ids.
    vector : (n_dims,)

    Raises
    ------
    InputError
        If its metadata are not JSON or its text is not Unicode.
    """
    links = {**_links(node), PARENT: {}, CHILD: {}}
    return _row(node, node.metadata, vars(record), children, links, vector)


def _row(
    node: BaseNode,
    user_entries: Mapping[str, Any],
    record: Mapping[str, Any],
    children: Collection[str],
    links: Links,
    vector: Any,
) -> Row:
    """Return a row, given the user's metadata and the fields of a record."""
    source_node = node.source_node
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    documents = list(record["documents"]) or _own_document(node)
    try:
        metadata = json.dumps(user_entries, ensure_ascii=False)
        source = source_node.model_dump_json() if source_node else ""
        rest = to_json({**node.to_dict(exclude=FIELDS_APART), **_detailed(links)})
        "".join([node.node_id, text, metadata, source, rest, *documents]).encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Metadata of node {node.node_id!r} must be JSON and its text Unicode: {error}."
        ) from error
    values = {**(source_node.metadata if source_node else {}), **json.loads(metadata)}
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
        **parent_columns(record["parents"]),
        "child_ids": list(children),
        "previous_id": next(iter(links[PREVIOUS]), ""),
        "next_id": next(iter(links[NEXT]), ""),
        "source": source,
        "metadata": metadata,
        "source_similarity": _share(record["source_similarity"]),
        "digests": row_digests(node.node_id, values, documents),
        "stale": "",
        "record": to_json({key: record[key] for key in MADE_BY}),
        "node": rest,
        "vector": vector,
    }


def parent_columns(parents: Sequence[tuple[str, float]]) -> Row:
    """Return the columns of a node's parents, given their ids with weights."""
    return {
        "parent_ids": [node_id for node_id, _ in parents],
        "parent_weights": [weight for _, weight in parents],
    }


def matched_words(metadata: Mapping[str, Any], text: str) -> str:
    r"""Return what a question's words are matched with: titles, file names, section and text.

    >>> matched_words({"title": "The bridge", "file_name": ["a.md", "b.md"]}, "It was closed.")
    'The bridge\na.md\nb.md\nIt was closed.'
    """
    values = [metadata.get(key, ()) for key in (TITLE, FILE_NAME, SECTION)]
    names = [name for value in values for name in (value if isinstance(value, list) else [value])]
    return "\n".join(dict.fromkeys([*(name for name in names if isinstance(name, str)), text]))


def _share(similarity: Any) -> float:
    """Return the value of the column `source_similarity`; -1 for none."""
    return similarity if isinstance(similarity, float) and 0 <= similarity <= 1 else -1.0


def documents_of(node: BaseNode, record: NodeRecord) -> list[str]:
    """Return the ids of a node's source documents, or the node's own id if it has none."""
    return list(record.documents) or _own_document(node)


def all_documents(
    nodes: Sequence[BaseNode], snapshot: "Callable[[], Snapshot]"
) -> dict[str, list[str]]:
    """Return, by id, all documents of the nodes that do not name them, see `NodeRecord`.

    They are those of a node's children, in order, or of the same node in the snapshot.

    Parameters
    ----------
    nodes : Sequence[BaseNode]
    snapshot : callable
        Returns that of the index before it is written, which may have children of the nodes.

    Raises
    ------
    InputError
        If children are unknown.
    """
    records = {node.node_id: NodeRecord.from_metadata(node.metadata) for node in nodes}
    partly = [node for node in nodes if records[node.node_id].more_documents]
    if not partly:
        return {}
    partly.sort(key=lambda node: records[node.node_id].level)
    children = {node.node_id: [info.node_id for info in node.child_nodes or ()] for node in partly}
    whole = [node for node in nodes if node.node_id not in children]
    held = snapshot().columns(
        "id", "documents", node_ids={*children, *chain.from_iterable(children.values())}
    )
    known = dict(zip(held["id"], held["documents"], strict=True))
    known |= {node.node_id: documents_of(node, records[node.node_id]) for node in whole}
    for node_id, below in children.items():
        n_named = len(records[node_id].documents)
        number = n_named + records[node_id].more_documents
        found = [*dict.fromkeys(d for child in below for d in known.get(child, ()))]
        if len(found) == number:
            known[node_id] = found
        elif len(known.get(node_id, ())) != number:
            raise InputError(
                f"Node {node_id!r} names only {n_named:,} of its {number:,} documents; write its "
                "children with it or before it."
            )
    return {node_id: known[node_id] for node_id in children}


def _own_document(node: BaseNode) -> list[str]:
    return [node.ref_doc_id or node.node_id]


def _links(node: BaseNode) -> Links:
    """Return a node's links by relationship and id."""
    links: dict[NodeRelationship, Mapping[str, RelatedNodeInfo]] = {}
    for kind in LINKS:
        related = node.relationships.get(kind) or []
        each = related if isinstance(related, list) else [related]
        links[kind] = {info.node_id: info for info in each}
    return links


def _detailed(links: Links) -> dict[str, Any]:
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
