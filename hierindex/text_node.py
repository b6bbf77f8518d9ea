"""Conversion of nodes to LlamaIndex's `TextNode` and back.

LlamaIndex's metadata are one dictionary, which vector stores filter. It has two numbers for a
node's position in the tree, `hierindex_level` and `hierindex_level_max`, by which any store can
filter, and one JSON string, `hierindex`, for all other fields.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)

from hierindex.errors import InputError
from hierindex.node import (
    EMBED_HIDDEN,
    LLM_HIDDEN,
    PREFIX,
    RECORDED,
    Node,
    of_record,
    to_json,
)

DETAILS = "hierindex"
RECORD_KEYS = ("hierindex_level", "hierindex_level_max", DETAILS)
"""Metadata keys of hierindex."""

NODE_TYPES = {kind.class_name(): kind for kind in (TextNode, IndexNode, ImageNode)}
"""Types that nodes are restored to; nodes of other types become a `TextNode`."""
SIMPLE = "kind n_tokens whole_document title document_hash read_from".split()
"""Fields of a node that are scalars."""
DETAILED = (*SIMPLE, *RECORDED, "documents", "parents")
PLAIN = TextNode().to_dict()
APART = {"id_", "embedding", "metadata", "text", "relationships"}  # attributes of a `Node`
SOURCE, PARENT = NodeRelationship.SOURCE, NodeRelationship.PARENT
PREVIOUS, NEXT, CHILD = NodeRelationship.PREVIOUS, NodeRelationship.NEXT, NodeRelationship.CHILD


def from_text_node(node: BaseNode) -> Node:
    """Convert a LlamaIndex node to a node; its vector is None without an embedding.

    If the node does not list its documents, its document is taken from the SOURCE relationship.
    Without one, the node is its own document.
    """
    keys = record_keys(node.metadata)
    record: dict[str, Any] = json.loads(node.metadata[DETAILS]) if keys else {}
    level, level_max = (node.metadata[key] for key in RECORD_KEYS[:2]) if keys else (0, 0)
    fields = node.to_dict(exclude=APART)
    others = {key: value for key, value in fields.items() if PLAIN.get(key, ...) != value}
    if keys:
        for hidden in (EMBED_HIDDEN, LLM_HIDDEN):
            others[hidden] = [key for key in fields.get(hidden, ()) if key not in keys]
    source = node.source_node
    return Node(
        id=node.node_id,
        text=node.get_content(MetadataMode.NONE),
        metadata={key: value for key, value in node.metadata.items() if key not in keys},
        level=level,
        level_max=level_max,
        **{name: record[name] for name in SIMPLE if name in record},
        documents=tuple(record.get("documents") or [node.ref_doc_id or node.node_id]),
        parents=tuple((parent, weight) for parent, weight in record.get("parents", ()))
        or tuple((parent, 1.0) for parent in _linked(node, PARENT)),
        children=_linked(node, CHILD),
        previous="".join(_linked(node, PREVIOUS)),
        next="".join(_linked(node, NEXT)),
        **of_record(record),
        source={} if source is None else _fields(source),
        others=others,
        vector=None if node.embedding is None else np.array(node.embedding),
    )


def chunk_of(node: BaseNode) -> Node:
    """Convert a LlamaIndex node to a chunk over which a tree can be grown.

    Raises
    ------
    InputError
        If the node is not a text node, is a summary, or uses a metadata key of hierindex; the
        message names the node.
    """
    if not isinstance(node, TextNode | Document) or isinstance(node, ImageNode):
        raise InputError(
            f"A hierarchy needs text nodes, but node {node.node_id} is {type(node).__name__}; "
            "remove it."
        )
    check_keys(node)
    chunk = from_text_node(node)
    if chunk.level > 0:
        raise InputError(
            f"Node {node.node_id} is a summary of an earlier hierarchy; pass only chunks."
        )
    if isinstance(node, Document):
        chunk.others = {**chunk.others, "start_char_idx": 0}
    if node.ref_doc_id:  # may have changed since the chunk was made
        chunk.documents = (node.ref_doc_id,)
    else:
        source = RelatedNodeInfo(node_id=chunk.documents[0], node_type=ObjectType.DOCUMENT)
        chunk.source = _fields(source)
    return chunk


def to_text_node(node: Node) -> TextNode:
    """Convert a node to a LlamaIndex node, with its embedding if there is a vector.

    Its PARENT is the strongest parent. The other parents are in the JSON string `hierindex`.
    """
    others = dict(node.others)
    links = {
        SOURCE: node.source and RelatedNodeInfo.model_validate(node.source),
        PARENT: node.parents and RelatedNodeInfo(node_id=node.parents[0][0]),
        CHILD: [RelatedNodeInfo(node_id=child) for child in node.children],
        PREVIOUS: node.previous and RelatedNodeInfo(node_id=node.previous),
        NEXT: node.next and RelatedNodeInfo(node_id=node.next),
    }
    if node.maker is not None:
        for hidden in (EMBED_HIDDEN, LLM_HIDDEN):
            others[hidden] = [*others.get(hidden, ()), *RECORD_KEYS]
    return NODE_TYPES.get(others.get("class_name", ""), TextNode).from_dict(
        {
            **others,
            "id_": node.id,
            "text": node.text,
            "metadata": {**node.metadata, **metadata_of(node)},
            "relationships": {kind: link for kind, link in links.items() if link},
            "embedding": None if node.vector is None else node.vector.tolist(),
        }
    )


def check_keys(node: BaseNode) -> None:
    """Raise InputError if a node has a metadata key that is reserved for hierindex."""
    taken = {key for key in node.metadata if key == DETAILS or key.startswith(PREFIX)}
    if taken := taken - {*record_keys(node.metadata)}:
        raise InputError(
            f"Metadata key {min(taken)!r} of node {node.node_id} is reserved for hierindex; "
            "rename it."
        )


def record_keys(metadata: Mapping[str, Any]) -> Sequence[str]:
    """Return the metadata keys that hierindex added; empty if it did not make the node."""
    return RECORD_KEYS if {*RECORD_KEYS} <= metadata.keys() else ()


def metadata_of(node: Node) -> dict[str, Any]:
    """Return the metadata entries that store a node's position in the tree."""
    if node.maker is None:
        return {}
    details = to_json({name: getattr(node, name) for name in DETAILED})
    values = node.level, node.level_max, details
    return dict(zip(RECORD_KEYS, values, strict=True))


def _linked(node: BaseNode, kind: NodeRelationship) -> tuple[str, ...]:
    """Return the distinct ids of a node's links of a kind."""
    related = node.relationships.get(kind) or []
    infos = related if isinstance(related, list) else [related]
    return tuple(dict.fromkeys(info.node_id for info in infos))


def _fields(info: RelatedNodeInfo) -> dict[str, Any]:
    """Return a link's fields; its metadata need not be JSON until the node is stored."""
    kind = info.node_type
    return info.model_dump() | {"node_type": kind.value if isinstance(kind, ObjectType) else kind}
