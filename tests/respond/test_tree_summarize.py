"""Tree summarise: few calls, and sure to end."""

import asyncio
import math
from collections import Counter
from itertools import pairwise

import pytest
from clients import ATTEMPTS, Calls, async_llm_of, llm_of, with_retries
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.schema import NodeWithScore, TextNode
from loopback import Fault, names_words
from pydantic import BaseModel
from respond.asking import (
    NUM_OUTPUT,
    QUESTION,
    asked_of,
    count_tokens,
    log_of,
    query_engine,
    serve,
)

from hierindex import BoundedTreeSummarize, HierarchicalIndex, HierarchyRetriever, HierindexError
from hierindex.errors import InputError, ModelError
from hierindex.respond.synthesizers import Window


def words(n, start=0):
    return " ".join(f"word{i}" for i in range(start, start + n))


def found(*texts):
    return [NodeWithScore(node=TextNode(text=text), score=1.0) for text in texts]


def prompts_of(server, start=0):
    return [request.prompt for request in server.requests[start:]]


@pytest.fixture(scope="module")
def server():
    with serve(lambda prompt: "The answer.") as server:
        yield server


def retriever_of(store, embed_model, **options):
    options = {"level": 0, "top_k": 100, "token_budget": None} | options
    return HierarchyRetriever(store, embed_model, **options)


def llm_with(server, window, **options):
    return llm_of(server, context_window=window, **options)


def asked(server, synthesizer_of, nodes, way, **settings):
    """The response of a synthesizer made for a model, sync or async."""

    async def asynchronously():
        async with async_llm_of(server, **settings) as llm:
            return await synthesizer_of(llm).asynthesize(QUESTION, nodes)

    if way == "async":
        return asyncio.run(asynchronously())
    return synthesizer_of(llm_of(server, **settings)).synthesize(QUESTION, nodes)


lengths = st.lists(st.integers(0, 120), min_size=1, max_size=7)


@given(lengths, st.integers(300, 2000), st.integers(0, 5))
def test_what_fits_one_prompt_is_asked_as_by_llama_index(server, lengths, window, fifths):
    """All answers have one length, at most so long that LlamaIndex's own recursion ends."""
    nodes = found(*(words(n, 1000 * i) for i, n in enumerate(lengths)))
    llm = llm_with(server, window, max_tokens=50)
    said = words(1 + fifths * (window - 250) // 50)
    server.window, server.reply = window - 50, lambda prompt: said
    stock = len(server.requests)
    answer = str(TreeSummarize(llm).synthesize(QUESTION, nodes))
    ours = len(server.requests)
    made = BoundedTreeSummarize(llm)
    n_stock = ours - stock
    assert str(made.synthesize(QUESTION, nodes)) == answer
    assert (len(server.requests) - ours == 1) == (n_stock == 1)
    if n_stock == 1:
        assert prompts_of(server, ours) == prompts_of(server, stock)[:1]


ENDLESS = {
    "2,000 words": lambda prompt: " ".join(f"Word {i} is here." for i in range(500)),
    "one long sentence": lambda prompt: words(2000),
    "no spaces": lambda prompt: "\u6c34" * 1000,
    "nothing": lambda prompt: "",
    "the prompt": lambda prompt: prompt,
    "its end": lambda prompt: prompt[len(prompt) // 2 :],
}
SAY_NOTHING = {"nothing", "the prompt"}


@pytest.mark.spread
@pytest.mark.parametrize("window", [600, 1500])
@pytest.mark.parametrize("name", ENDLESS)
def test_whatever_the_model_answers_it_ends(name, window):
    nodes = found(*(words(150, 200 * i) for i in range(5)))
    with serve(ENDLESS[name], window=window - NUM_OUTPUT) as server:
        made = BoundedTreeSummarize(llm_with(server, window))
        template = made.get_prompts()["summary_template"].partial_format(query_str=QUESTION)
        llm = llm_with(server, window)
        read = Window(PromptHelper.from_llm_metadata(llm.metadata), template, llm)
        first = len(read.prompts([node.node.text for node in nodes]))
        if name in SAY_NOTHING:
            with pytest.raises(ModelError, match=r"^The model (answered nothing|repeated what)"):
                made.synthesize(QUESTION, nodes)
        else:
            assert str(made.synthesize(QUESTION, nodes)) == ENDLESS[name](prompts_of(server)[-1])
        assert 1 < len(server.requests) <= 2 * first + math.log2(first) + 1


def test_a_single_text_longer_than_the_window():
    with serve(window=700 - NUM_OUTPUT) as server:
        made = BoundedTreeSummarize(llm_with(server, 700))
        made.synthesize(QUESTION, found(words(1500)))
        shown = "\n".join(prompts_of(server))
        assert all(f"word{i}" in shown for i in range(1500))


def test_a_system_prompt_and_a_long_template_are_within_the_window():
    template = PromptTemplate("Read. " * 100 + "{context_str}\n{query_str}")
    nodes = found(*(words(100, 100 * i) for i in range(6)))
    settings = {"context_window": 1000, "system_prompt": "Be brief, please. " * 20}
    calls = Calls()
    with serve(window=1000 - NUM_OUTPUT) as server:
        llm = with_retries(llm_of(server, **settings), calls)
        response = BoundedTreeSummarize(llm, summary_template=template).synthesize(QUESTION, nodes)
        assert asked_of(calls.made) == log_of(server)
        assert len(server.requests) > 1
        assert "Read. Read." not in str(response.metadata)


def test_a_prompt_helper_counts_as_it_counts():
    """A model's own tokenizer, three times as fine as LlamaIndex's."""

    def letters(text):
        return list(text)

    nodes = found(*(words(40, 100 * i) for i in range(12)))
    helper = PromptHelper(context_window=2500, num_output=NUM_OUTPUT, tokenizer=letters)
    with serve(window=2500 - NUM_OUTPUT) as server:
        server.count = len
        template = PromptTemplate("{context_str}\n{query_str}")
        options = {"prompt_helper": helper, "summary_template": template}
        made = BoundedTreeSummarize(llm_with(server, 2500), **options)
        made.synthesize(QUESTION, nodes)
        assert len(server.requests) > 2


def test_no_room_is_one_sentence():
    with serve() as server:
        made = BoundedTreeSummarize(llm_with(server, 300))
        with pytest.raises(
            InputError, match="leaves no room for texts in the 300 tokens"
        ) as caught:
            made.synthesize("Why? " * 50, found("A text."))
        assert server.requests == []
    assert "\n" not in str(caught.value)


class TestConcurrency:
    CONCURRENCY = 3

    def limited(self, llm):
        return with_retries(llm, concurrency=self.CONCURRENCY)

    def nodes(self):
        return found(*(words(100, 200 * i) for i in range(10)))

    def many(self, **options):
        return serve(names_words, latency=0.03, **options)

    @pytest.mark.parametrize("way", ["sync", "async"])
    def test_as_many_calls_at_once_as_allowed(self, way):
        with self.many() as server:
            asked(
                server,
                lambda llm: BoundedTreeSummarize(self.limited(llm)),
                self.nodes(),
                way,
                context_window=600,
            )
            assert server.most_in_flight == self.CONCURRENCY
            assert len(server.requests) > self.CONCURRENCY

    def test_the_same_for_many_questions_in_one_loop(self):
        async def ask(server):
            async with async_llm_of(server, context_window=600) as llm:
                made = BoundedTreeSummarize(self.limited(llm))
                questions = (made.asynthesize(f"Why {i}?", self.nodes()[:4]) for i in range(4))
                return await asyncio.gather(*questions)

        with self.many() as server:
            assert len(asyncio.run(ask(server))) == 4
            assert server.most_in_flight == self.CONCURRENCY

    def test_one_engine_in_one_loop_after_another(self):
        with self.many() as server:
            made = BoundedTreeSummarize(llm_with(server, 600))
            answers = [str(asyncio.run(made.asynthesize(QUESTION, self.nodes()))) for _ in "abc"]
        assert len({*answers}) == 1


class Form(BaseModel):
    """With a field that must be filled in."""

    name: str


@pytest.mark.parametrize("n", [1, 80])
def test_the_cost_is_told_before_the_prompts_are_sent(n):
    told = []
    with serve() as server:
        before = lambda *cost: told.append((*cost, len(server.requests)))  # noqa: E731
        synthesizer = BoundedTreeSummarize(llm_of(server), before=before)
        synthesizer.get_response("Who met?", ["The anchor met the yeast at dawn.  " * 9] * n)
        ((most, first, tokens, sent),) = told
        assert sent == 0
        assert first <= len(server.requests) <= most
        assert (first > 1) == (n > 1)
        prompts = [count_tokens(request.prompt) for request in server.requests]
        assert tokens == pytest.approx(sum(sorted(prompts)[-first:]), rel=0.2)


class TestFailures:
    NODES = found(*(words(100, 200 * i) for i in range(12)))

    @pytest.mark.parametrize(("status", "attempts"), [(500, ATTEMPTS), (401, 1)])
    @pytest.mark.parametrize("way", ["sync", "async"])
    def test_in_the_middle_ends_the_rest(self, way, status, attempts):
        """Two calls at once, of which the second fails while the first takes its time.

        Where that has ended before, a third call may have begun.
        """
        with serve(faults=lambda number: Fault(status) if number else Fault(delay=0.5)) as server:

            def synthesizer(llm):
                return BoundedTreeSummarize(with_retries(llm, concurrency=2))

            with pytest.raises(HierindexError, match=f"HTTP status {status}"):
                asked(server, synthesizer, self.NODES, way, context_window=500)
            assert 1 + attempts <= len(server.requests) <= 1 + 2 * attempts

    @pytest.mark.parametrize("structured", [False, True], ids=["output_cls", "structured"])
    @pytest.mark.parametrize("reply", ['{"no": "such form"}', "A word."])
    def test_a_form_that_is_not_filled_in_is_one_sentence(
        self, store, embed_model, reply, structured
    ):
        index = HierarchicalIndex(store, embed_model)
        with serve(lambda prompt: reply) as server:
            options = {"llm": llm_of(server), "synthesizer": {"output_cls": Form}}
            if structured:
                options = {"llm": llm_of(server).as_structured_llm(Form)}
            with pytest.raises(HierindexError, match=r"^No answer can be made: [^\n]*\.$"):
                index.ask(QUESTION, **options)


class TestWhatGoesIn:
    def test_sources_are_what_was_retrieved_and_as_it_was(self, store, embed_model):
        nodes = retriever_of(store, embed_model, level=None).retrieve(QUESTION)
        before = [node.model_dump_json() for node in nodes]
        with serve() as server:
            made = BoundedTreeSummarize(llm_with(server, 450))
            extra = found("Something else.")
            response = made.synthesize(QUESTION, nodes, extra)
        assert response.source_nodes == [*nodes, *extra]
        assert [node.model_dump_json() for node in nodes] == before

    def test_nothing(self):
        with serve() as server:
            for way in ("sync", "async"):
                response = asked(server, BoundedTreeSummarize, [], way)
                assert str(response) == "Empty Response"
                assert response.source_nodes == []
            assert server.requests == []

    @pytest.mark.parametrize("window", [8192, 700])
    def test_nodes_of_a_foreign_retriever(self, embed_model, window):
        """Without records of ours: all is read, in order."""

        class Foreign(BaseRetriever):
            def _retrieve(self, query_bundle):
                return found(*(words(60, 100 * i) for i in range(8)))

        with serve(window=window - NUM_OUTPUT) as server:
            engine = query_engine(Foreign(), embed_model, llm=llm_with(server, window))
            response = engine.query(QUESTION)
            texts = [node.node.text for node in response.source_nodes]
            shown = [p for p in prompts_of(server) if any(text in p for text in texts)]
        at = [[prompt.find(text) for text in texts] for prompt in shown]
        assert all(any(row[i] >= 0 for row in at) for i in range(8))
        for row in at:
            places = [place for place in row if place >= 0]
            assert places == sorted(places)
        assert (len(at) > 1) == (window < 8192)

    def test_a_users_handlers_stay_and_see_every_call(self):
        own = TokenCountingHandler()
        with serve() as server:
            llm = llm_with(server, 600, callback_manager=CallbackManager([own]))
            made = BoundedTreeSummarize(llm)
            made.synthesize(QUESTION, found(*(words(100, 100 * i) for i in range(6))))
            assert len(own.llm_token_counts) == len(server.requests) > 2
            assert llm.callback_manager.handlers == [own]
            late = TokenCountingHandler()
            llm.callback_manager.add_handler(late)
            made.synthesize(QUESTION, found("A text."))
            assert len(late.llm_token_counts) == 1


@pytest.mark.parametrize("mode", ["tree_summarize", "compact", "extractive"])
def test_many_questions_at_once_are_as_one_by_one(store, embed_model, mode):
    """One engine: the same answers, and the same prompts."""
    questions = [
        f"Did the {word} meet a falcon on day {i}?"
        for i in range(2)
        for word in ("saddle", "violin")
    ]
    retriever = retriever_of(store, embed_model, level=0, top_k=4)

    def told(responses):
        return [(str(r), [n.node.node_id for n in r.source_nodes]) for r in responses]

    async def at_once(server):
        async with async_llm_of(server, context_window=window) as llm:
            engine = query_engine(retriever, embed_model, llm=llm, response_mode=mode)
            return await asyncio.gather(*map(engine.aquery, questions))

    window = 1112 if mode == "compact" else 620  # some questions take one call
    with serve() as server:
        engine = query_engine(
            retriever, embed_model, llm=llm_with(server, window), response_mode=mode
        )
        one_by_one = told([engine.query(question) for question in questions])
        n_requests = len(server.requests)
        assert told(asyncio.run(at_once(server))) == one_by_one
        before, after = prompts_of(server)[:n_requests], prompts_of(server, n_requests)
    assert Counter(before) == Counter(after)
    assert 4 < n_requests < 8 or (mode, n_requests) == ("extractive", 0)


def window_of(room):
    window = room + NUM_OUTPUT + 5  # which LlamaIndex leaves for joints
    return Window(PromptHelper(window, NUM_OUTPUT), PromptTemplate("{context_str}"), MockLLM())


def same_words(n):
    return " ".join(["word"] * n)


def test_no_citation_is_cut_from_its_sentence():
    text = f"One is here.[3] Two is there [4] [12]. Then {same_words(300)}"
    assert window_of(46).shortened(text) == "One is here.[3] Two is there [4] [12]."


def rounds(window, passages, answer):
    """The texts of the prompts of each round; each is answered by the same function."""
    shown = [window.prompts(passages)]
    while len(shown[-1]) > 1:
        shown.append(window.read_on([answer(text) for text in shown[-1]]))
    return shown


@given(st.lists(st.integers(0, 90), min_size=1, max_size=6), st.integers(60, 200))
def test_rounds_end_and_each_prompt_fits(lengths, room):
    """With answers as long as they can be, no round has more than half of the one before."""
    passages, window = list(map(same_words, lengths)), window_of(room)
    shown = rounds(window, passages, lambda prompt: same_words(2000))
    assert all(count_tokens(text) <= room for texts in shown for text in texts)
    sizes = [*map(len, shown)]
    assert all(2 * after <= before + 1 for before, after in pairwise(sizes))
