"""What a program writes that uses hierindex, as README and the guides do; types are checked."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_type

from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from hierindex import (
    Answer,
    BuildReport,
    Citation,
    HierarchicalIndex,
    HierarchyRetriever,
    HierarchyStore,
    HierindexError,
    Progress,
    RaptorHierarchy,
    SemanticHierarchy,
    load_embed_model,
    read_documents,
    sentence_splitter,
)
from hierindex.errors import InputError, ModelError
from hierindex.evaluate import evaluate, retrieved
from hierindex.export import to_html, to_json, to_langchain_retriever, to_parquet
from hierindex.rules import Percentile
from hierindex.serve import serve
from hierindex.summarize import Resources, Rewrite, Rewriter, TwoStageSummarizer


class FirstWords:
    """A rewriter of the user's own."""

    name = "first-words"

    def to_dict(self) -> dict[str, Any]:
        return {"words": 20}

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        return [Rewrite(" ".join(text.split()[:20])) for text in texts]


def show(stage: str, done: int, total: int, cost: str = "", /) -> None:
    sys.stderr.write(f"{stage} {done}/{total} {cost}\n" if done < total else "")


def build(folder: Path, uri: str) -> HierarchicalIndex:
    rewriter: Rewriter = FirstWords()
    progress: Progress = show
    hierarchy = SemanticHierarchy(rule=Percentile(20), summarizer=TwoStageSummarizer(rewriter))
    index = HierarchicalIndex.build(folder, uri, hierarchy=hierarchy, progress=progress)
    assert_type(index, HierarchicalIndex)
    assert_type(index.last_build, BuildReport | None)
    return index


def run_pipeline(folder: str, uri: str) -> HierarchicalIndex:
    embed_model = load_embed_model()
    documents, skipped = read_documents(folder)
    assert not [each.reason for each in skipped]
    store = HierarchyStore(uri)
    hierarchy = RaptorHierarchy(embed_model=embed_model, store=store)
    splitter = sentence_splitter(embed_model)
    pipeline = IngestionPipeline(
        transformations=[splitter, embed_model, hierarchy], vector_store=store
    )
    pipeline.run(documents=documents)
    return HierarchicalIndex.open(uri, embed_model)


def ask(index: HierarchicalIndex, question: str) -> str:
    only = MetadataFilters(filters=[MetadataFilter(key="file_name", value="inspection.md")])
    try:
        answer = index.ask(question, filters=only)
    except ModelError as error:
        return f"Try again: {error}"
    except HierindexError as error:
        return str(error) if isinstance(error, InputError) else "It failed."
    assert_type(answer, Answer)
    assert_type(answer.answer, str)
    assert_type(answer.citations, list[Citation])
    return "\n".join(f"{each.document} {each.start}: {each.quote}" for each in answer.citations)


def retrieve(index: HierarchicalIndex, question: str) -> list[str]:
    retriever = index.as_retriever(mode="collapsed", token_budget=2000)
    assert_type(retriever, HierarchyRetriever)
    response = index.as_query_engine(level=1).query(question)
    return [str(response)] + [found.node.get_content() for found in retriever.retrieve(question)]


def send(index: HierarchicalIndex, folder: Path) -> str | None:
    assert_type(to_json(index, folder / "tree.json"), int)
    to_parquet(index, str(folder / "tree.parquet"))
    return to_html(index, folder / "tree.html").left_out


def ask_langchain(index: HierarchicalIndex, question: str) -> str:
    return to_langchain_retriever(index).invoke(question)[0].page_content


def compare(data: Path) -> float:
    report = evaluate(data, ways={"top": retrieved(level="top")}, budgets=[500])
    return max(row.mean for row in report.rows)


def served(index: HierarchicalIndex) -> bool:
    with serve(index, port=0) as server:
        assert_type(server.token, str | None)
        return server.url.startswith("http://")
