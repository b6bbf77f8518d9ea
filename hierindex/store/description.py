"""Nodes and indexes described as plain JSON values."""

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode

from hierindex.llm.record import Usage
from hierindex.record import NodeRecord, user_metadata
from hierindex.store.prefilter import ROOTS, STALE
from hierindex.store.rows import documents_of
from hierindex.store.snapshot import Snapshot


def describe(node: BaseNode) -> dict[str, Any]:
    """Return a node's text, place in the tree, links and sources as JSON values; no vector.

    `documents` names the first 1,000, and `more_documents` is the number of the others.
    """
    record = NodeRecord.from_metadata(node.metadata)
    return {
        "id": node.node_id,
        "title": record.title,
        "level": record.level,
        "level_max": record.level_max,
        "kind": record.kind,
        "source_similarity": record.source_similarity,
        "n_tokens": record.n_tokens,
        "documents": documents_of(node, record),
        "more_documents": record.more_documents,
        "parents": [{"id": parent, "weight": weight} for parent, weight in record.parents],
        "children": [child.node_id for child in node.child_nodes or ()],
        "citations": [span.to_json() for span in record.citations],
        "metadata": user_metadata(node.metadata),
        "text": node.get_content(MetadataMode.NONE),
    }


def overview(snapshot: Snapshot) -> dict[str, Any]:
    """Return the numbers of documents, nodes and tokens, the roots, models and usage.

    `titles` are those of the roots, in the same order; `precision` is that of the embedding model,
    None if it has no choice of it.

    A node that passed up is counted at each level that it belongs to.
    """
    record = snapshot.record()
    roots = snapshot.select("id", "title", where=ROOTS).to_pydict()
    nodes, tokens = Counter[int](), Counter[int]()
    rows = snapshot.select("level", "level_max", "n_tokens")
    alike = rows.group_by(["level", "level_max"]).aggregate(
        [("n_tokens", "count"), ("n_tokens", "sum")]
    )
    for each in alike.to_pylist():
        for level in range(each["level"], each["level_max"] + 1):
            nodes[level] += each["n_tokens_count"]
            tokens[level] += each["n_tokens_sum"]
    return {
        "documents": snapshot.n_documents(),
        "levels": [
            {"level": level, "nodes": nodes[level], "tokens": tokens[level]}
            for level in sorted(nodes)
        ],
        "roots": roots["id"],
        "titles": roots["title"],
        "stale": snapshot.count(STALE),
        "method": record.method,
        "embed_model": record.embed_model,
        "precision": json.loads(record.embed_settings or "{}").get("precision"),
        "summarizer": record.summarizer,
        "generation": snapshot.generation,
        "usage": snapshot.report().get("usage", asdict(Usage())),
    }


def generation_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return the number, time and size of a generation, what wrote it and what that changed.

    The keys are `generation`; `time`, when it was published; `documents`, `levels` and `nodes`,
    how many it has; `what`, such as "build" or "add"; and `changes`, numbers by kind of change.
    """
    details = snapshot.details()
    return {
        "generation": snapshot.generation,
        "time": details["time"],
        "documents": snapshot.n_documents(),
        "levels": 1 + snapshot.highest_level() if snapshot.n_rows() else 0,
        "nodes": snapshot.n_rows(),
        "what": details["what"],
        "changes": details["changes"],
    }
