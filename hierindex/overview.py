"""The overview of an index that `info` prints."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from hierindex.llm.usage import Usage
from hierindex.store.snapshot import Snapshot


async def overview(snapshot: Snapshot) -> dict[str, Any]:
    """Return the numbers of documents, nodes and tokens, the roots, models and usage.

    A node that passed up is counted at each level that it belongs to.
    """
    record = await snapshot.record()
    columns = await snapshot.columns(
        "id", "level", "level_max", "n_tokens", "documents", "parent_ids", "stale"
    )
    nodes, tokens = Counter[int](), Counter[int]()
    spans = zip(columns["level"], columns["level_max"], columns["n_tokens"], strict=True)
    for lowest, highest, n_tokens in spans:
        for level in range(lowest, highest + 1):
            nodes[level] += 1
            tokens[level] += n_tokens
    links = zip(columns["id"], columns["parent_ids"], strict=True)
    return {
        "documents": len({document for d in columns["documents"] for document in d}),
        "levels": [
            {"level": level, "nodes": nodes[level], "tokens": tokens[level]}
            for level in sorted(nodes)
        ],
        "roots": [node_id for node_id, parents in links if not parents],
        "stale": sum(map(bool, columns["stale"])),
        "method": record.method,
        "embed_model": record.embed_model,
        "summarizer": record.summarizer,
        "generation": snapshot.version,
        "usage": snapshot.report().get("usage", asdict(Usage())),
    }
