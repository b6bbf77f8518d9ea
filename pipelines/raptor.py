"""Build a RAPTOR tree, which clusters similar chunks of all documents up to one root.

Usage: python pipelines/raptor.py FOLDER INDEX "QUESTION"
"""

import sys

from llama_index.core.ingestion import IngestionPipeline

from hierindex import (
    HierarchicalIndex,
    HierarchyStore,
    RaptorHierarchy,
    load_embed_model,
    read_documents,
    sentence_splitter,
)


def main(folder: str, uri: str, question: str) -> None:
    """Index a folder of texts; query the level below the root, then all levels together."""
    embed_model = load_embed_model()
    pipeline = IngestionPipeline(
        transformations=[
            sentence_splitter(embed_model, chunk_size=120),  # RAPTOR's leaves are short
            embed_model,
            RaptorHierarchy(embed_model=embed_model, seed=0),
        ],
        vector_store=HierarchyStore(uri),
    )
    documents, skipped = read_documents(folder)
    nodes = pipeline.run(documents=documents)
    print(f"{len(documents)} documents, {len(skipped)} files skipped, {len(nodes)} nodes")

    index = HierarchicalIndex.open(uri, embed_model)
    level = max(0, len(index.info()["levels"]) - 2)
    for where in ({"level": level}, {"mode": "collapsed", "token_budget": 2000}):
        print(f"\n{where}\n{index.as_query_engine(**where).query(question)}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:4])
