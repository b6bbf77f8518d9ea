import asyncio

import llama_index.core
import pytest
from clients import llm_of
from indexes import where
from llama_index.core.callbacks import TokenCountingHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.response_synthesizers import ResponseMode
from loopback import LoopbackServer
from respond.asking import NEED_LLM, QUESTION, WITHOUT_LLM, query, serve, usage_of

from hierindex import HierarchicalIndex, HierarchyStore, Node
from hierindex.errors import InputError


def reply(prompt):
    return "Forty-two falcons."


@pytest.fixture
def server():
    with LoopbackServer(reply=reply) as server:
        yield server


@pytest.mark.parametrize("mode", [*sorted(WITHOUT_LLM), "extractive"])
@pytest.mark.parametrize("with_llm", [True, False])
def test_the_other_modes_ask_no_model(index, server, mode, with_llm):
    llm = llm_of(server) if with_llm else None
    response = index.as_query_engine(llm=llm, response_mode=mode, top_k=3).query(QUESTION)
    assert response.source_nodes == index.as_retriever(top_k=3).retrieve(QUESTION)
    assert server.requests == []


@pytest.mark.parametrize("mode", sorted(NEED_LLM))
def test_a_mode_that_needs_a_model_refuses_without(index, mode):
    for named in (mode, ResponseMode(mode)):
        with pytest.raises(InputError, match=rf"^response_mode '{mode}' needs an LLM; pass llm="):
            index.as_query_engine(response_mode=named)


@pytest.mark.parametrize("mode", ["none", "Extractive", "tree summarize", "ResponseMode.REFINE"])
def test_an_unknown_mode_is_refused_with_the_known_ones(index, server, mode):
    for llm in (None, llm_of(server)):
        with pytest.raises(InputError, match=r"extractive, refine, .*got ") as caught:
            index.as_query_engine(llm=llm, response_mode=mode)
        assert repr(mode) in str(caught.value)


def test_the_default_mode_follows_from_the_model(index, server):
    without = index.as_query_engine().query(QUESTION)
    assert "citations" in without.metadata
    assert server.requests == []
    for named in ({}, {"response_mode": "tree_summarize"}):
        engine = index.as_query_engine(llm=llm_of(server), **named)
        assert str(engine.query(QUESTION)) == reply("")
    first, second = server.requests
    assert first.prompt == second.prompt


def test_a_prompt_shows_the_users_metadata_and_none_of_ours(index, server):
    index.ask(QUESTION, llm=llm_of(server))
    assert "author: " in server.requests[0].prompt
    for key in ("level_max", "n_tokens", "quotes", "hierindex"):
        assert key not in server.requests[0].prompt


def test_llama_indexs_global_handler_is_kept(index, server):
    handler = TokenCountingHandler()
    llama_index.core.global_handler = handler
    try:
        given = index.ask(QUESTION, llm=llm_of(server), response_mode="tree_summarize", top_k=3)
    finally:
        llama_index.core.global_handler = None
    assert given.usage == usage_of(server)
    assert len(handler.llm_token_counts) == 1


def test_what_a_postprocessor_hid_comes_back_in_no_summary(index):
    class Masked(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            for found in nodes:
                found.node.set_content(found.node.text.replace("falcon", "bird"))
            return nodes

    options = {"mode": "collapsed", "top_k": 100, "token_budget": None}
    with LoopbackServer(reply=lambda prompt: "Two.") as server:
        llm = llm_of(server, context_window=900)
        index.ask("Who met whom?", llm=llm, node_postprocessors=[Masked()], **options)
    assert len(server.requests) > 2
    assert not any("falcon" in request.prompt for request in server.requests)


@pytest.mark.parametrize("mode", [None, "compact"])
def test_where_nothing_was_found_nothing_answers(tmp_path, embed_model, server, mode):
    llm = llm_of(server) if mode else None
    empty = HierarchicalIndex(HierarchyStore(tmp_path), embed_model)
    given = empty.ask(QUESTION, llm=llm, response_mode=mode)
    assert (given.refused, server.requests) == (True, [])
    assert given.answer.startswith("Nothing")
    assert (given.sources, given.citations) == ([], [])


CHUNKS = "; without a level, the chunks are searched"
NOBODY = where(author="nobody")


@pytest.mark.parametrize(
    ("options", "searched"),
    [
        ({"mode": "collapsed"}, "in the index answers this"),
        ({"level": 1}, f"at level 1 answers this{CHUNKS}"),
        ({"level": ["top", "chunks"]}, f"at level 0 or 'top' answers this{CHUNKS}"),
        ({"filters": NOBODY}, "in the index that passes the filters answers this"),
        ({"level": 0, "filters": NOBODY}, "at level 0 that passes the filters answers this"),
    ],
)
def test_a_refusal_says_what_was_searched(index, server, options, searched):
    question, strict = "Who wrote sonnets?", {"synthesizer": {"min_score": 1}, **options}
    engine = index.as_query_engine(**strict)
    given = [str(engine.query(question)), str(asyncio.run(engine.aquery(question)))]
    given.append(index.ask(question, **strict).answer)
    if "filters" in options:
        given.append(index.ask(question, llm=llm_of(server), **options).answer)
    assert {*given} == {f"Nothing {searched}."}


def test_a_model_is_one_of_llama_indexs(index):
    with pytest.raises(InputError, match=r"llm must be one of .* models or a function, got 'gpt'"):
        index.as_query_engine(llm="gpt")


def place(found):
    span = Node.of(found).citations[0]
    return span.document, span.start


@pytest.mark.parametrize("mode", ["compact", "tree_summarize"])
@pytest.mark.parametrize("way", ["plain", "async"])
def test_a_prompt_is_in_reading_order_and_sources_are_best_first(index, mode, way):
    options = {"level": 0, "top_k": 6}
    found = index.as_retriever(**options).retrieve(QUESTION)
    assert [place(n) for n in found] != sorted(place(n) for n in found)

    def engine_of(llm):
        return index.as_query_engine(llm=llm, response_mode=mode, **options)

    with serve() as server:
        _, response = query(server, engine_of, way)
        prompt = server.requests[0].prompt
    assert [n.node_id for n in response.source_nodes] == [n.node_id for n in found]
    documents = list(dict.fromkeys(place(n)[0] for n in found))  # the best first
    read = sorted(found, key=lambda n: (documents.index(place(n)[0]), place(n)[1]))
    at = [prompt.index(n.text) for n in read]
    assert at == sorted(at)


class Reverse(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes[::-1]


def test_a_prompt_keeps_the_order_of_postprocessors(index):
    options = {"level": 0, "top_k": 4}
    expected = [n.text for n in reversed(index.as_retriever(**options).retrieve(QUESTION))]

    def read(**postprocessors):
        given = {"response_mode": "context_only", **options, **postprocessors}
        shown = str(index.as_query_engine(**given).query(QUESTION))
        return sorted(expected, key=shown.index)

    assert read(postprocessors=[Reverse()]) == read(node_postprocessors=[Reverse()]) == expected
    assert read() != expected


def test_an_engine_with_another_retriever_reads_in_the_same_order(index):
    few, more = (
        index.as_query_engine(level=0, top_k=k, response_mode="context_only") for k in (2, 6)
    )
    other = few.with_retriever(index.as_retriever(level=0, top_k=6))
    assert str(other.query(QUESTION)) == str(more.query(QUESTION))
