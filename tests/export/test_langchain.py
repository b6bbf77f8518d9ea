"""LangChain's documents and its retriever, alone and in a chain."""

import asyncio
import json
import sys

import pytest
from fakes import HashingEmbedding
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

import hierindex
from hierindex import (
    InputError,
    LevelError,
    to_langchain_documents,
    to_langchain_retriever,
    to_tree,
)

QUESTION = "Who met a willow, a compass and a violin, the candle of a1?"


def test_documents_are_the_nodes(any_index) -> None:
    nodes = to_tree(any_index)["nodes"]
    documents = to_langchain_documents(any_index)
    assert [document.id for document in documents] == [node["id"] for node in nodes]
    for document, node in zip(documents, nodes, strict=True):
        user = node.pop("metadata")
        assert document.page_content == node.pop("text")
        own = {"node_title" if k == "title" else k: v for k, v in node.items() if k != "id"}
        assert document.metadata == {**user, **own}
        assert document.metadata["author"]
        assert json.loads(json.dumps(document.metadata)) == document.metadata
        assert Document.model_validate_json(document.model_dump_json()) == document


def test_a_level_is_a_cut(any_index) -> None:
    for level in any_index.info()["levels"]:
        documents = to_langchain_documents(any_index, level["level"])
        assert len(documents) == level["nodes"]
        for document in documents:
            assert document.metadata["level"] <= level["level"] <= document.metadata["level_max"]
    with pytest.raises(LevelError, match="has levels 0 to"):
        to_langchain_documents(any_index, 9)


def test_retriever_finds_what_ours_finds(any_index) -> None:
    retriever = to_langchain_retriever(any_index, level=1, top_k=3)
    found = any_index.as_retriever(level=1, top_k=3).retrieve(QUESTION)
    for documents in (retriever.invoke(QUESTION), asyncio.run(retriever.ainvoke(QUESTION))):
        assert [document.id for document in documents] == [node.node.node_id for node in found]
        assert [document.metadata["score"] for document in documents] == [n.score for n in found]
        assert [document.metadata["path"] for document in documents] == [n.path for n in found]


def test_async_is_async(index, monkeypatch) -> None:
    """No thread waits: only the embedding model's async method is asked."""

    def refuse(*args):
        raise AssertionError

    monkeypatch.setattr(HashingEmbedding, "get_agg_embedding_from_queries", refuse)
    retriever = to_langchain_retriever(index)

    async def both():
        return await asyncio.gather(retriever.ainvoke(QUESTION), retriever.ainvoke("the harbour"))

    assert all(asyncio.run(both()))


def test_many_questions_at_once(any_index) -> None:
    retriever = to_langchain_retriever(any_index, mode="traversal", top_k=2)
    questions = [QUESTION, "the harbour of d1", "the granite of b3"]
    one_by_one = [retriever.invoke(question) for question in questions]
    assert retriever.batch(questions) == one_by_one
    assert asyncio.run(retriever.abatch(questions)) == one_by_one


def test_chain(any_index) -> None:
    prompts = []

    def note(prompt):
        prompts.append(prompt.to_string())
        return prompt

    def cited(documents: list[Document]) -> str:
        return "\n".join(
            f"{document.page_content} [{document.metadata['citations'][0]['document']}]"
            for document in documents
        )

    model = FakeListChatModel(responses=["It was the one of a1."])
    chain = (
        {
            "context": to_langchain_retriever(any_index, top_k=2) | cited,
            "question": RunnablePassthrough(),
        }
        | ChatPromptTemplate.from_template("{context}\n\n{question}")
        | RunnableLambda(note)
        | model
        | StrOutputParser()
    )
    assert chain.invoke(QUESTION) == "It was the one of a1."
    assert asyncio.run(chain.ainvoke(QUESTION)) == "It was the one of a1."
    assert prompts[0] == prompts[1]
    assert "a1 met" in prompts[0]
    assert "[a.txt]" in prompts[0]
    assert "hierindex" not in prompts[0]


def test_options_are_those_of_our_retriever(index) -> None:
    with pytest.raises(InputError, match="top_k must be"):
        to_langchain_retriever(index, top_k=0)


def test_without_langchain_one_sentence_says_what_to_install(index, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.callbacks", None)
    monkeypatch.delitem(sys.modules, "hierindex.export.langchain_retriever", raising=False)
    for export in (to_langchain_documents, to_langchain_retriever):
        with pytest.raises(InputError, match=r"pip install 'hierindex\[langchain\]'"):
            export(index)
    assert all(hasattr(hierindex, name) for name in hierindex.__all__)


def test_nothing_to_export(nothing) -> None:
    with pytest.raises(InputError, match=r"holds no index|is empty"):
        to_langchain_documents(nothing)
