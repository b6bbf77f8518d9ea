"""Compare the ways to query one tree: the nodes they find, their levels and the time.

Usage: python pipelines/ways_to_ask.py FOLDER INDEX "QUESTION"
"""

import sys
import time
from typing import Any

from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from hierindex import HierarchicalIndex, Node, RetrievedNode

SUMMARIES = MetadataFilters(filters=[MetadataFilter(key="hierindex_kind", value="extractive")])
WAYS: dict[str, dict[str, Any]] = {
    "the chunks in context, or an outline": {},
    "all levels": {"mode": "collapsed"},
    "all levels, by words": {"mode": "collapsed", "by": "text"},
    "all levels, by both": {"mode": "collapsed", "by": "hybrid"},
    "the chunks": {"level": 0},
    "two levels": {"level": [0, 1]},
    "from the top down": {"mode": "traversal", "beam": 3},
    "from the top down to level 1": {"mode": "traversal", "level": 1},
    "the best chunks of two documents": {"mode": "document", "n_documents": 2},
    "one whole document": {"mode": "document", "n_documents": 1, "whole_documents": True},
    "summaries alone": {"mode": "collapsed", "filters": SUMMARIES},
    "in 500 tokens": {"token_budget": 500},
}


def main(folder: str, uri: str, question: str) -> None:
    """Build or update an index and query it in each way."""
    index = HierarchicalIndex.build(folder, uri)
    for way, options in WAYS.items():
        retriever = index.as_retriever(**{"top_k": 5} | options)
        start = time.perf_counter()
        found = retriever.retrieve(question)
        print(f"\n{way}: {len(found)} nodes, {1000 * (time.perf_counter() - start):.0f} ms")
        for each in found[:5]:
            record = Node.of(each.node)
            place = record.citations[0]
            text = " ".join(each.node.get_content().split())[:240]
            print(
                f"  {each.score:6.3f}  level {record.level}  {place.document} {place.start}  {text}"
            )
        if found and isinstance(found[0], RetrievedNode) and found[0].why:
            print(f"  {found[0].why}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
