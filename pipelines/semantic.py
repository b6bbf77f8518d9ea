"""Build a tree that groups consecutive chunks of similar meaning.

Usage: python pipelines/semantic.py FOLDER INDEX "QUESTION" [LEVEL]
"""

import sys

from llama_index.core.ingestion import IngestionPipeline

from hierindex import (
    HierarchicalIndex,
    HierarchyStore,
    SemanticHierarchy,
    load_embed_model,
    read_documents,
    sentence_splitter,
)
from hierindex.rules import Optimal


def main(folder: str, uri: str, question: str, level: str = "1") -> None:
    """Index a folder of texts and query one level."""
    embed_model = load_embed_model()
    pipeline = IngestionPipeline(
        transformations=[
            sentence_splitter(embed_model),
            embed_model,
            SemanticHierarchy(embed_model=embed_model, rule=Optimal(rows=5)),
        ],
        vector_store=HierarchyStore(uri),
    )
    documents, skipped = read_documents(folder)
    nodes = pipeline.run(documents=documents)
    print(f"{len(documents)} documents, {len(skipped)} files skipped, {len(nodes)} nodes")

    index = HierarchicalIndex.open(uri, embed_model)
    print(index.as_query_engine(level=int(level), top_k=5).query(question))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:5])
