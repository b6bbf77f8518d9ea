"""LangChain's documents and its retriever, alone and in a chain."""

import asyncio
import json
import sys

import pytest
from fakes import HashingEmbedding
from indexes import built
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from llama_index.core.schema import Document as LlamaIndexDocument
from pydantic import ValidationError

import hierindex.export
from hierindex.errors import InputError, LevelError
from hierindex.export import to_langchain_documents, to_langchain_retriever, to_tree

QUESTION = "Who met a willow, a compass and a violin, the candle of a1?"


def test_documents_are_the_nodes(soft) -> None:
    nodes = to_tree(soft)["nodes"]
    documents = to_langchain_documents(soft)
    assert [document.id for document in documents] == [node["id"] for node in nodes]
    for document, node in zip(documents, nodes, strict=True):
        user, _ = node.pop("metadata"), node.pop("blocks")
        assert document.page_content == node.pop("text")
        own = {f"hierindex_{key}": value for key, value in node.items() if key != "id"}
        assert document.metadata == {**user, **own}
        assert document.metadata["author"]
        assert json.loads(json.dumps(document.metadata)) == document.metadata
        assert Document.model_validate_json(document.model_dump_json()) == document


def test_a_level_is_a_cut(soft) -> None:
    for level in soft.info()["levels"]:
        documents = to_langchain_documents(soft, level["level"])
        assert len(documents) == level["nodes"]
        for document in documents:
            low, high = (document.metadata[f"hierindex_{key}"] for key in ("level", "level_max"))
            assert low <= level["level"] <= high
    with pytest.raises(LevelError, match="has levels 0 to"):
        to_langchain_documents(soft, 9)


def test_retriever_finds_what_ours_finds(soft) -> None:
    retriever = to_langchain_retriever(soft, level=1, top_k=3)
    found = soft.as_retriever(level=1, top_k=3).retrieve(QUESTION)
    for documents in (retriever.invoke(QUESTION), asyncio.run(retriever.ainvoke(QUESTION))):
        assert [document.id for document in documents] == [node.node.node_id for node in found]
        told = [document.metadata for document in documents]
        assert [each["hierindex_score"] for each in told] == [n.score for n in found]
        assert [each["hierindex_path"] for each in told] == [n.path for n in found]


def test_a_users_key_is_not_replaced_by_ours(tmp_path) -> None:
    own = dict.fromkeys(("level", "kind", "documents", "score", "path", "title"), "mine")
    document = LlamaIndexDocument(text="Ada met a kettle.", metadata=own, doc_id="a")
    (found,) = to_langchain_retriever(built(document, tmp_path)).invoke("a kettle")
    assert found.metadata.items() >= own.items()


def test_k_and_filter_of_a_question_and_of_the_retriever(soft) -> None:
    retriever = to_langchain_retriever(soft, level=0, top_k=3)
    ours, kind = retriever.retriever, type(retriever)
    (author, *_) = {d.metadata["author"] for d in to_langchain_documents(soft, 0)}
    assert len(retriever.invoke(QUESTION, k=1)) == 1
    assert len(kind(retriever=ours, k=2).invoke(QUESTION)) == 2
    own = kind(retriever=ours, k=9, filter={"author": author})
    for documents in (
        retriever.invoke(QUESTION, k=9, filter={"author": [author, "Nobody"]}),
        asyncio.run(retriever.ainvoke(QUESTION, k=9, filter={"author": author})),
        own.invoke(QUESTION),
    ):
        assert {document.metadata["author"] for document in documents} == {author}
    assert own.invoke(QUESTION, filter={"author": "Nobody"}) == []  # both filters hold
    assert len(retriever.invoke(QUESTION)) == 3


def test_what_is_not_an_option_is_refused_by_name(soft) -> None:
    retriever = to_langchain_retriever(soft)
    with pytest.raises(TypeError, match="search_kwargs"):
        retriever.invoke(QUESTION, search_kwargs={"k": 1})
    with pytest.raises(ValidationError, match="search_kwargs"):
        type(retriever)(retriever=retriever.retriever, search_kwargs={"k": 1})
    with pytest.raises(InputError, match="top_k must be an integer of at least 1, got 0"):
        retriever.invoke(QUESTION, k=0)
    with pytest.raises(ValidationError, match="Ada"):
        retriever.invoke(QUESTION, filter={"author": {"$ne": "Ada"}})
    with pytest.raises(InputError, match="No chunk has the key 'autor'; the nearest is author"):
        retriever.invoke(QUESTION, filter={"autor": "Ada"})


def test_async_is_async(index, monkeypatch) -> None:
    """No thread waits: only the embedding model's async method is asked."""

    def refuse(*args):
        raise AssertionError

    monkeypatch.setattr(HashingEmbedding, "get_agg_embedding_from_queries", refuse)
    retriever = to_langchain_retriever(index)

    async def both():
        return await asyncio.gather(retriever.ainvoke(QUESTION), retriever.ainvoke("the harbour"))

    assert all(asyncio.run(both()))


def test_chain(soft) -> None:
    prompts = []

    def note(prompt):
        prompts.append(prompt.to_string())
        return prompt

    def cited(documents: list[Document]) -> str:
        return "\n".join(
            f"{document.page_content} [{document.metadata['hierindex_citations'][0]['document']}]"
            for document in documents
        )

    model = FakeListChatModel(responses=["It was the one of a1."])
    chain = (
        {
            "context": to_langchain_retriever(soft, top_k=2) | cited,
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


def test_without_langchain_one_sentence_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.callbacks", None)
    monkeypatch.delitem(sys.modules, "hierindex.export.langchain")
    for name in ("to_langchain_documents", "to_langchain_retriever"):
        monkeypatch.delitem(vars(hierindex.export), name, raising=False)
        with pytest.raises(InputError, match=r"pip install 'hierindex\[langchain\]'"):
            getattr(hierindex.export, name)
    assert all(hasattr(hierindex, name) for name in hierindex.__all__)
