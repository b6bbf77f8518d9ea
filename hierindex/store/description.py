"""Nodes and indexes described as plain JSON values."""

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from hierindex.models.record import Usage
from hierindex.node import LEFT_OUT, MOST_DOCUMENTS, Node, Quote
from hierindex.store.prefilter import ROOTS, STALE
from hierindex.store.snapshot import Snapshot
from hierindex.text.blocks import blocks_of


def describe(node: Node) -> dict[str, Any]:
    """Return a node's text, place in the tree, links and sources as JSON values; no vector.

    `documents` names the first 1,000, and `more_documents` is the number of the others; `blocks`
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
    """Return a node's metadata as JSON values, with None for numbers that JSON lacks."""
    values: dict[str, Any] = json.loads(json.dumps(node.metadata), parse_constant=lambda _: None)
    return values


def overview(snapshot: Snapshot) -> dict[str, Any]:
    """Return the numbers of documents, nodes and tokens, the roots, models and usage.

    `titles` are those of the roots, in the same order; `precision` is that of the embedding model,
    None if it has no choice of it; `read_in_part` tells of files what was not read.

    A node that passed up is counted at each level that it belongs to.
    """
    maker = snapshot.maker()
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
        "read_in_part": _read_in_part(snapshot),
        "levels": [
            {"level": level, "nodes": nodes[level], "tokens": tokens[level]}
            for level in sorted(nodes)
        ],
        "roots": roots["id"],
        "titles": roots["title"],
        "stale": snapshot.count(STALE),
        "method": maker.method,
        "embed_model": maker.embed_model,
        "precision": json.loads(maker.embed_settings or "{}").get("precision"),
        "summarizer": maker.summarizer,
        "generation": snapshot.generation,
        "usage": snapshot.report().get("usage", asdict(Usage())),
    }


def _read_in_part(snapshot: Snapshot) -> list[dict[str, Any]]:
    if not snapshot.has_key(LEFT_OUT):
        return []
    rows = snapshot.select("documents", "metadata", where=snapshot.of_each_document).to_pylist()
    found = {row["documents"][0]: json.loads(row["metadata"]).get(LEFT_OUT) for row in rows}
    partly = sorted((path, said) for path, said in found.items() if isinstance(said, list))
    return [{"path": path, "left_out": [*map(str, said)]} for path, said in partly]


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
