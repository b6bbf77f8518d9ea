"""Options as code written for `VectorStoreIndex.as_query_engine` passes them."""

import asyncio

import pytest
from clients import async_llm_of, llm_of
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import QueryEngineTool
from respond.asking import QUESTION, serve

from hierindex.errors import InputError

TEMPLATES = {
    "text_qa_template": PromptTemplate("{context_str}\n{query_str} Answer like a pirate."),
    "refine_template": PromptTemplate("{context_msg}{existing_answer}{query_str} Refine it."),
    "summary_template": PromptTemplate("{context_str}\n{query_str} Summarise it."),
}
NONE = SimilarityPostprocessor(similarity_cutoff=1e9)


def test_the_retrievers_options(index):
    few = index.as_retriever(level=0, similarity_top_k=2, node_postprocessors=None)
    assert len(few.retrieve(QUESTION)) == 2
    assert len(index.ask(QUESTION, level=0, similarity_top_k=3).sources) == 3
    none = index.as_query_engine(level=0, node_postprocessors=[NONE])
    assert none.retriever.retrieve(QUESTION) == []
    compared = index.compare(QUESTION, level=0, similarity_top_k=2)
    assert len(compared.sources) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity_top_k": 2, "top_k": 2}, "similarity_top_k and top_k are the same option"),
        (
            {"node_postprocessors": [], "postprocessors": []},
            "node_postprocessors and postprocessors are the same option",
        ),
        ({"similarity_top": 2}, "There is no option 'similarity_top'"),
    ],
    ids=str,
)
def test_a_wrong_option_is_one_sentence(index, options, message):
    with pytest.raises(InputError, match=message):
        index.as_query_engine(**options)


def test_what_llama_index_leaves_at_its_default_is_not_given(index):
    options = dict.fromkeys([*TEMPLATES, "output_cls", "node_postprocessors"])
    engine = index.as_query_engine(streaming=False, use_async=False, **options)
    assert "metadata" in vars(engine.query(QUESTION))


@pytest.mark.parametrize("mode", [None, "refine", "tree_summarize", "generation"])
def test_a_mode_takes_the_templates_that_it_has(index, mode):
    with serve() as server:
        engine = index.as_query_engine(
            llm=llm_of(server), response_mode=mode, similarity_top_k=2, use_async=True, **TEMPLATES
        )
        engine.query(QUESTION)
        said = [request.prompt for request in server.requests]
    expected = {"tree_summarize": "Summarise it.", "generation": QUESTION}
    assert expected.get(mode, "Answer like a pirate.") in said[0]


def test_it_is_a_tool_of_an_agent(index):
    async def acall():
        async with async_llm_of(server) as llm:
            tool = QueryEngineTool.from_defaults(index.as_query_engine(llm=llm, similarity_top_k=2))
            return await tool.acall(input=QUESTION)

    quoting = QueryEngineTool.from_defaults(index.as_query_engine(similarity_top_k=2), name="tree")
    assert quoting.metadata.name == "tree"
    assert "falcon" in quoting.call(QUESTION).content
    with serve(lambda prompt: "It did.") as server:
        assert asyncio.run(acall()).content == "It did."


@pytest.mark.filterwarnings(
    "ignore::pydantic.PydanticDeprecatedSince20", "ignore::pydantic.PydanticDeprecatedSince211"
)  # of the agent
def test_an_agent_asks_it(index):
    read = []

    def reply(messages, **_):
        read.append(messages[-1])
        if messages[-1].role != "tool":
            call = ToolCallBlock(tool_name="tree", tool_kwargs={"input": QUESTION})
            return ChatMessage(role="assistant", blocks=[call])
        return ChatMessage(role="assistant", content="It met one.")

    async def run():
        tool = QueryEngineTool.from_defaults(index.as_query_engine(top_k=2), name="tree")
        llm = MockFunctionCallingLLM(response_generator=reply)
        return await FunctionAgent(tools=[tool], llm=llm, streaming=False).run(QUESTION)

    assert str(asyncio.run(run())) == "It met one."
    assert [message.role for message in read] == ["user", "tool"]
    assert "falcon" in read[-1].content
