"""The overview of an index that `info` prints."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from hierindex.llm.usage import Usage
from hierindex.store.snapshot import Snapshot


async def overview(snapshot: Snapshot) -> dict[str, Any]:
    """Return the numbers of documents, nodes and tokens, the roots, models and usage.

    `titles` are those of the roots, in the same order.

    A node that passed up is counted at each level that it belongs to.
    """
    record = await snapshot.record()
    roots = await snapshot.roots()
    columns = await snapshot.columns(
        "id", "title", "level", "level_max", "n_tokens", "documents", "stale"
    )
    title_of = dict(zip(columns["id"], columns["title"], strict=True))
    nodes, tokens = Counter[int](), Counter[int]()
    spans = zip(columns["level"], columns["level_max"], columns["n_tokens"], strict=True)
    for lowest, highest, n_tokens in spans:
        for level in range(lowest, highest + 1):
            nodes[level] += 1
            tokens[level] += n_tokens
    return {
        "documents": len({document for d in columns["documents"] for document in d}),
        "levels": [
            {"level": level, "nodes": nodes[level], "tokens": tokens[level]}
            for level in sorted(nodes)
        ],
        "roots": [*roots],
        "titles": [title_of[root] for root in roots],
        "stale": sum(map(bool, columns["stale"])),
        "method": record.method,
        "embed_model": record.embed_model,
        "summarizer": record.summarizer,
        "generation": snapshot.version,
        "usage": snapshot.report().get("usage", asdict(Usage())),
    }
