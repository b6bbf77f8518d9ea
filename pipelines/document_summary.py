"""A document-summary index: one summary for each document, found by its summary, read in full.

Usage: python pipelines/document_summary.py FOLDER INDEX "QUESTION"
"""

import sys

from llama_index.core import SimpleDirectoryReader
from llama_index.core.ingestion import IngestionPipeline

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyStore,
    NodeRecord,
    load_embed_model,
    sentence_splitter,
)


def main(folder: str, uri: str, question: str) -> None:
    """Find the document whose summary is nearest to the question, then answer from its chunks."""
    embed_model = load_embed_model()
    pipeline = IngestionPipeline(
        transformations=[
            sentence_splitter(embed_model),
            embed_model,
            DocumentHierarchy(embed_model=embed_model, group_documents=False),
        ],
        vector_store=HierarchyStore(uri),
    )
    documents = SimpleDirectoryReader(folder, recursive=True, filename_as_id=True).load_data()
    pipeline.run(documents=documents)

    index = HierarchicalIndex.open(uri, embed_model)
    best = index.as_retriever(level=1, top_k=1).retrieve(question)[0]
    (document,) = NodeRecord.from_metadata(best.node.metadata).documents
    print(f"{document}: {best.node.get_content()}\n")
    print(index.as_query_engine(mode="document", n_documents=1).query(question))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:4])
