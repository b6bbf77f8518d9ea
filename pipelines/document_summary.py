"""Build a document-summary index: search the summaries, then answer from the chunks.

Usage: python pipelines/document_summary.py FOLDER INDEX "QUESTION" [MODEL BASE_URL]

With MODEL at an OpenAI-compatible BASE_URL (and its key in HIERINDEX_LLM_API_KEY), summaries state
what their document is about and which questions it answers, and the model answers from all chunks
of the best document.
"""

import os
import sys
from typing import Any

from llama_index.core.ingestion import IngestionPipeline

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyStore,
    Node,
    load_embed_model,
    read_documents,
    sentence_splitter,
)
from hierindex.summarize import LLMRewriter, TwoStageSummarizer


def main(folder: str, uri: str, question: str, model: str = "", address: str = "") -> None:
    """Find the document whose summary is nearest to the question, then answer from its chunks."""
    embed_model, store, summarizer = load_embed_model(), HierarchyStore(uri), None
    answering: dict[str, Any] = {}  # extractive: the sentences nearest to the question
    if model:
        from llama_index.llms.openai_like import OpenAILike  # of hierindex[llm]

        key = os.environ.get("HIERINDEX_LLM_API_KEY", "none")
        llm = OpenAILike(model=model, api_base=address, api_key=key, is_chat_model=True)
        summarizer = TwoStageSummarizer(LLMRewriter(llm, prompt="questions"))
        answering = {"llm": llm, "response_mode": "tree_summarize"}
        answering |= {"whole_documents": True, "token_budget": None}
    hierarchy = DocumentHierarchy(
        embed_model=embed_model, summarizer=summarizer, group_documents=False, store=store
    )
    IngestionPipeline(
        transformations=[sentence_splitter(embed_model), embed_model, hierarchy],
        vector_store=store,
    ).run(documents=read_documents(folder)[0])

    index = HierarchicalIndex.open(uri, embed_model)
    best = index.as_retriever(level=1, top_k=1).retrieve(question)[0]
    (document,) = Node.of(best.node).documents
    print(f"{document}: {best.node.get_content()}\n")
    print(index.as_query_engine(mode="document", n_documents=1, **answering).query(question))


if __name__ == "__main__":
    if len(sys.argv) not in (4, 6):
        sys.exit(__doc__)
    main(*sys.argv[1:])
