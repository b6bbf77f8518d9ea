"""Chat engines over an index, and conversations of questions that it answers."""

import asyncio

import pytest
from clients import async_llm_of, llm_of
from indexes import built
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.chat_engine.types import ChatMode
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from loopback import Fault
from respond.asking import CHAT_MODES, WAYS, serve

from hierindex import HierindexError, Node
from hierindex.errors import InputError
from hierindex.respond.chat import Conversation

FIRST = "Did the lantern meet a falcon?"
SECOND = "And what did it meet then?"
REWRITTEN = "What did the lantern meet after the falcon?"
SAID = "The lantern met a falcon [1]."


def is_rewriting(prompt):
    return "standalone question" in prompt.lower()


def reply(prompt):
    return REWRITTEN if is_rewriting(prompt) else SAID


def answer(engine, question, way):
    if way == "plain":
        return engine.chat(question)
    response = engine.stream_chat(question)
    assert "".join(response.response_gen)
    return response


async def async_answer(engine, question, way):
    if way == "async":
        return await engine.achat(question)
    response = await engine.astream_chat(question)
    assert "".join([piece async for piece in response.async_response_gen()])
    return response


def answers_of(index, mode, way):
    """The answers to both questions, the engine, and the prompts that its model got."""

    def engine_of(llm):
        return index.as_chat_engine(llm=llm, chat_mode=mode, top_k=3)

    async def asynchronously(server):
        async with async_llm_of(server) as llm:
            engine = engine_of(llm)
            return [await async_answer(engine, q, way) for q in (FIRST, SECOND)], engine

    with serve(reply) as server:
        if "async" in way:
            answers, engine = asyncio.run(asynchronously(server))
        else:
            engine = engine_of(llm_of(server))
            answers = [answer(engine, question, way) for question in (FIRST, SECOND)]
        return answers, engine, [request.prompt for request in server.requests]


@pytest.mark.spread
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", CHAT_MODES)
def test_each_engine_knows_what_was_said_before(index, mode, way):
    responses, engine, prompts = answers_of(index, mode, way)
    answers = [str(response) for response in responses]
    assert all(answer.startswith("The lantern met a falcon") for answer in answers)
    said = [FIRST, answers[0], SECOND, answers[1]]
    assert [message.content for message in engine.chat_history] == said
    assert [is_rewriting(prompt) for prompt in prompts] == (
        [False, False] if mode == "context" else [False, True, False]
    )
    assert all(text in prompts[1] for text in said[:3])
    assert (REWRITTEN in prompts[-1]) == (mode == "condense_question")
    if not (mode == "condense_question" and way == "async stream"):  # LlamaIndex gives none
        assert all(len(response.source_nodes) == 3 for response in responses)


@pytest.mark.parametrize("way", ["plain", "async stream"])
def test_a_condensed_question_is_answered_with_citations(index, way):
    responses, _, prompts = answers_of(index, "condense_question", way)
    assert "after each the number of its passage in brackets" in prompts[0]
    for response in responses:
        (source,) = response.sources
        (cited,) = source.raw_output.metadata["citations"]
        assert {"document", "node", "supported"} <= cited.keys()


@pytest.mark.parametrize("mode", [None, *CHAT_MODES])
def test_no_model_but_the_given_one_is_used(index, mode):
    options = {"chat_mode": mode} if mode else {}
    with pytest.raises(InputError, match=r"^A chat engine needs an LLM; pass llm=, or ask .*\.$"):
        index.as_chat_engine(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chat_mode": "react"}, r"chat_mode must be one of .*condense_question, got 'react'\."),
        ({"chat_mode": ChatMode.SIMPLE}, "got 'simple'"),
        ({"similarity_top": 2}, "There is no option 'similarity_top'"),
        ({"response_mode": "compact"}, "There is no option 'response_mode'"),
        ({"level": 99, "chat_mode": "condense_question"}, "got level 99"),
    ],
    ids=str,
)
def test_a_wrong_option_is_one_sentence(index, options, message):
    with serve() as server, pytest.raises(InputError, match=message):
        index.as_chat_engine(llm=llm_of(server), **options)


@pytest.mark.parametrize("mode", ["best", ChatMode.BEST])
def test_the_best_mode_is_that_of_llama_index(index, mode):
    with serve() as server:
        engine = index.as_chat_engine(llm=llm_of(server), chat_mode=mode)
    assert isinstance(engine, CondensePlusContextChatEngine)


@pytest.mark.parametrize("mode", [*ChatMode][1:4])
def test_options_of_the_retriever_and_of_the_engine(index, mode):
    history = [
        ChatMessage(role="user", content="Hello."),
        ChatMessage(role="assistant", content="?"),
    ]
    with serve(reply) as server:
        options = {"level": "top", "similarity_top_k": 2, "chat_history": history}
        engine = index.as_chat_engine(llm=llm_of(server), chat_mode=mode, **options)
        response = engine.chat(FIRST)
        (node,) = response.source_nodes
        assert Node.of(node).level > 0
        assert "Hello." in server.requests[0].prompt
        assert len(history) == 2  # is not modified
        memory = ChatMemoryBuffer.from_defaults(chat_history=history, token_limit=100)
        engine = index.as_chat_engine(llm=llm_of(server), chat_mode=mode, memory=memory)
        engine.chat(SECOND)
    assert len(memory.get_all()) == 4


@pytest.mark.parametrize("mode", ["context", "condense_question"])
def test_a_long_conversation_leaves_room_for_passages(index, mode):
    with serve(lambda prompt: "So it is. " * 40, window=1200) as server:
        llm = llm_of(server, context_window=1200)
        engine = index.as_chat_engine(llm=llm, chat_mode=mode, top_k=2)
        for _ in range(6):
            assert engine.chat(FIRST).source_nodes
        assert len(engine.chat_history) == 12
        assert not any(outcome.fault for outcome in server.outcomes if outcome.fault != Fault())


def test_a_request_that_fails_once_is_repeated(index):
    with serve(reply, faults={0: Fault(503)}.get) as server:
        assert "falcon" in str(index.as_chat_engine(llm=llm_of(server), top_k=2).chat(FIRST))
        assert len(server.requests) == 2


def test_the_next_question_finds_what_was_built_meanwhile(tmp_path):
    def build(*texts):
        return built({f"{i}.txt": text for i, text in enumerate(texts)}, tmp_path)

    index = build("The lantern met a falcon.", "The kettle met a saddle.")
    with serve(lambda prompt: FIRST if is_rewriting(prompt) else SAID) as server:
        engine = index.as_chat_engine(llm=llm_of(server), level=0)
        conversation = Conversation(index.ask, llm_of(server))
        before = {node.text for node in engine.chat(FIRST).source_nodes}
        assert conversation.ask(FIRST, level=0).answer.sources
        build("The lantern met a heron.")
        after = {node.text for node in engine.chat(SECOND).source_nodes}
        (source,) = conversation.ask(SECOND, level=0).answer.sources
    assert before == {"The lantern met a falcon.", "The kettle met a saddle."}
    assert after == {source.text} == {"The lantern met a heron."}


def test_a_conversation_searches_for_rewritten_questions(index):
    with serve(reply) as server:
        conversation, shown = Conversation(index.ask, llm_of(server)), []
        turns = [
            conversation.ask(question, top_k=2, show=shown.append) for question in (FIRST, SECOND)
        ]
        prompts = [request.prompt for request in server.requests]
    assert [turn.question for turn in turns] == [FIRST, SECOND]
    assert [turn.searched for turn in turns] == [FIRST, REWRITTEN]
    assert [is_rewriting(prompt) for prompt in prompts] == [False, True, False]
    assert all(text in prompts[1] for text in (FIRST, turns[0].answer.answer, SECOND))
    assert REWRITTEN in prompts[2]
    assert [turn.answer.usage.llm_calls for turn in turns] == [1, 2]
    assert [call.prompt for call in turns[1].answer.calls] == prompts[1:]
    assert "".join(shown) == turns[0].answer.answer + turns[1].answer.answer
    assert len(turns[1].answer.citations) == 1


def test_a_question_that_fails_is_not_remembered(index):
    with serve(reply) as server:
        conversation = Conversation(index.ask, llm_of(server))
        with pytest.raises(InputError, match="got level 99"):
            conversation.ask("Lost?", level=99)
        server.faults = lambda number: Fault(500)
        with pytest.raises(HierindexError):
            conversation.ask("Lost, too?")
        server.faults = lambda number: None
        assert conversation.ask(FIRST).searched == FIRST
        conversation.ask(SECOND)
        assert "Lost" not in server.requests[-1].prompt + server.requests[-2].prompt


@pytest.mark.parametrize("empty", ["", " \n"])
def test_a_question_that_is_not_rewritten_is_searched_as_it_is(index, empty):
    with serve(lambda prompt: empty if is_rewriting(prompt) else SAID) as server:
        conversation = Conversation(index.ask, llm_of(server))
        assert [conversation.ask(q).searched for q in (FIRST, SECOND)] == [FIRST, SECOND]


def test_without_a_model_each_question_is_searched_as_it_is(index):
    conversation = Conversation(index.ask)
    for question in (FIRST, SECOND):
        turn = conversation.ask(question, top_k=3)
        assert turn.searched == question
        alone = index.ask(question, top_k=3)
        assert (turn.answer.answer, turn.answer.sources) == (alone.answer, alone.sources)
        assert turn.answer.answer_kind == "extractive"
