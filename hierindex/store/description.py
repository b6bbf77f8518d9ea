"""Nodes described as plain JSON values."""

from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode

from hierindex.record import NodeRecord, user_metadata
from hierindex.store.rows import documents_of


def describe(node: BaseNode) -> dict[str, Any]:
    """Return a node's text, place in the tree, links and sources as JSON values; no vector."""
    record = NodeRecord.from_metadata(node.metadata)
    return {
        "id": node.node_id,
        "title": record.title,
        "level": record.level,
        "level_max": record.level_max,
        "kind": record.kind,
        "grounding": record.grounding,
        "n_tokens": record.n_tokens,
        "documents": documents_of(node, record),
        "parents": [{"id": parent, "weight": weight} for parent, weight in record.parents],
        "children": [child.node_id for child in node.child_nodes or ()],
        "citations": [span.to_json() for span in record.citations],
        "metadata": user_metadata(node.metadata),
        "text": node.get_content(MetadataMode.NONE),
    }
