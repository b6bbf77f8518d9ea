"""Index a summary of each chunk: search the summaries, then read the chunks.

Usage: python pipelines/chunk_summaries.py FOLDER INDEX "QUESTION" [MODEL BASE_URL]

With MODEL at an OpenAI-compatible BASE_URL, summaries also say which questions chunks answer.
"""

import os
import sys

from llama_index.core import Document
from llama_index.core.ingestion import IngestionPipeline

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyStore,
    load_embed_model,
    read_documents,
    sentence_splitter,
)
from hierindex.summarize import LLMRewriter, TwoStageSummarizer


def main(folder: str, uri: str, question: str, model: str = "", address: str = "") -> None:
    """Summarise each chunk, find the nearest summaries, and print their chunks."""
    embed_model, summarizer = load_embed_model(), None
    if model:
        from llama_index.llms.openai_like import OpenAILike  # of hierindex[llm]

        key = os.environ.get("HIERINDEX_LLM_API_KEY", "none")
        llm = OpenAILike(model=model, api_base=address, api_key=key, is_chat_model=True)
        summarizer = TwoStageSummarizer(LLMRewriter(llm, prompt="questions"), extract_tokens=None)
    alone = [  # as documents, so that each chunk has a summary
        Document(id_=f"{chunk.ref_doc_id}#{i}", text=chunk.get_content())
        for i, chunk in enumerate(sentence_splitter(embed_model)(read_documents(folder)[0]))
    ]
    store = HierarchyStore(uri)
    hierarchy = DocumentHierarchy(  # with the store, so that a second run reuses the summaries
        embed_model=embed_model,
        summarizer=summarizer,
        summary_tokens=80,
        group_documents=False,
        store=store,
    )
    IngestionPipeline(transformations=[embed_model, hierarchy], vector_store=store).run(nodes=alone)

    index = HierarchicalIndex.open(uri, embed_model)
    for found in index.as_retriever(level=1, top_k=3).retrieve(question):
        (chunk,) = (index.node(child.node_id) for child in found.node.child_nodes or ())
        print(f"{found.get_score():.3f} {found.node.get_content()}\n\n{chunk.get_content()}\n")


if __name__ == "__main__":
    if len(sys.argv) not in (4, 6):
        sys.exit(__doc__)
    main(*sys.argv[1:])
