"""One question in several response modes: the same nodes, and each mode's own cost."""

import json

import pytest
from clients import llm_of
from fakes import HashingEmbedding
from llama_index.core.response_synthesizers import ResponseMode
from loopback import NO_QUOTA, Fault, names_words
from respond.asking import NEED_LLM, QUESTION, asked_of, serve

from hierindex import HierarchicalIndex, HierarchyRetriever
from hierindex.errors import InputError, ModelError

EVERYTHING = {"top_k": 100, "token_budget": None}
BESIDES = ["no_text", "context_only"]


@pytest.fixture
def index(store):
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture
def server():
    with serve() as server:
        yield server


def told(comparison):
    return {attempt.mode: attempt for attempt in comparison.attempts}


def test_without_a_model_extractive_alone(index):
    (attempt,) = index.compare(QUESTION).attempts
    assert attempt.mode == "extractive"
    assert attempt.answer.answer == index.ask(QUESTION).answer


def test_each_mode_answers_as_it_does_alone(index, server):
    """The same calls of the same nodes, and no others; by default all modes that answer."""
    llm = llm_of(server)
    attempts = index.compare(QUESTION, llm=llm, top_k=3).attempts
    assert sorted(attempt.mode for attempt in attempts) == sorted([*NEED_LLM, "extractive"])
    attempts += index.compare(QUESTION, llm=llm, top_k=3, response_modes=BESIDES).attempts
    for attempt in attempts:
        alone = index.ask(QUESTION, llm=llm, top_k=3, response_mode=attempt.mode)
        compared = attempt.answer
        assert compared.answer == alone.answer
        assert compared.answer_kind == alone.answer_kind
        assert compared.citations == alone.citations
        assert asked_of(compared.calls) == asked_of(alone.calls)
        assert compared.usage == alone.usage
        assert compared.sources == alone.sources
        assert bool(compared.calls) == (attempt.mode in NEED_LLM)


def test_one_retrieval_and_one_embedding(index, server, monkeypatch):
    searches = []
    retrieve = HierarchyRetriever._retrieve

    def counted(self, query_bundle):
        searches.append(query_bundle.query_str)
        return retrieve(self, query_bundle)

    monkeypatch.setattr(HierarchyRetriever, "_retrieve", counted)
    comparison = index.compare(QUESTION, llm=llm_of(server), top_k=4)
    assert searches == index.embed_model.queries == [QUESTION]
    ids = [source.id for source in comparison.sources]
    assert len(ids) == 4
    for attempt in comparison.attempts:
        assert [source.id for source in attempt.answer.sources] == ids


@pytest.mark.parametrize(
    ("reply", "window", "failed", "said"),
    [
        (lambda prompt: "", 8192, NEED_LLM, "answered nothing"),
        (
            names_words,
            700,
            {"compact", "refine"},
            "No answer can be made: Chunk size -",
        ),
        (names_words, 300, NEED_LLM - {"generation"}, "no"),
    ],
    ids=["nothing", "small window", "no window"],
)
def test_a_mode_that_fails_says_why_and_the_others_go_on(index, reply, window, failed, said):
    question = QUESTION if window > 300 else "Why? " * 30
    with serve(reply) as server:
        comparison = index.compare(question, llm=llm_of(server, context_window=window))
    wrong = {attempt.mode: attempt.error for attempt in comparison.attempts if attempt.error}
    assert wrong.keys() == failed
    for error in wrong.values():
        assert said in error
        assert error.endswith(".")
        assert "\n" not in error
    assert all((attempt.answer is None) == bool(attempt.error) for attempt in comparison.attempts)


def test_a_prompt_that_the_service_does_not_take_fails_its_mode_alone(index):
    """All in one prompt is too long for it; each chunk by itself is not."""
    with serve(window=400) as server:
        llm = llm_of(server, context_window=8192)
        attempts = told(index.compare(QUESTION, llm=llm, level=0, **EVERYTHING))
    failed = {mode for mode, attempt in attempts.items() if attempt.error}
    assert failed == {"compact", "compact_accumulate", "simple_summarize", "tree_summarize"}
    assert all(
        "failed to answer: the prompt is too long" in attempts[mode].error for mode in failed
    )


def test_a_service_that_is_busy_fails_the_modes_that_ask_it(index):
    with serve(faults=lambda number: Fault(500)) as server:
        attempts = told(index.compare(QUESTION, llm=llm_of(server)))
    assert {mode for mode, attempt in attempts.items() if attempt.error} == NEED_LLM
    assert attempts["extractive"].answer.answer


@pytest.mark.parametrize("fault", [Fault(404), NO_QUOTA], ids=["404", "quota"])
def test_a_service_that_refuses_is_asked_once(index, fault):
    with serve(faults=lambda number: fault) as server:
        with pytest.raises(ModelError, match=r"^LLM 'm' cannot be used: [^\n]+\.$"):
            index.compare(QUESTION, llm=llm_of(server))
        assert len(server.requests) == 1


def test_modes_are_named_or_enumerated_and_each_is_asked_once(index, server):
    modes = [ResponseMode.REFINE, "refine", "generation"]
    comparison = index.compare(QUESTION, llm=llm_of(server), response_modes=modes)
    assert [attempt.mode for attempt in comparison.attempts] == ["refine", "generation"]
    assert all(type(attempt.mode) is str for attempt in comparison.attempts)
    assert json.loads(json.dumps(comparison.to_json())) == comparison.to_json()


@pytest.mark.parametrize(
    ("mode", "with_llm", "message"),
    [
        ("essay", True, "response_mode must be one of extractive, refine, .* got 'essay'"),
        ("essay", False, "response_mode must be one of extractive, refine, .* got 'essay'"),
        ("refine", False, "response_mode 'refine' needs an LLM"),
    ],
)
def test_a_wrong_mode_is_refused_before_a_model_is_loaded(
    store, server, monkeypatch, mode, with_llm, message
):
    def refuse(*args, **options):
        raise AssertionError

    monkeypatch.setattr("hierindex.index.load_encoder", refuse)
    llm = llm_of(server) if with_llm else None
    with pytest.raises(InputError, match=message):
        HierarchicalIndex(store).compare(QUESTION, llm=llm, response_modes=["extractive", mode])
    assert server.requests == []


def test_json_is_of_one_shape(index, server):
    fault = Fault(400, text="no")
    with serve(faults=lambda number: fault if number == 0 else None) as server:
        modes = ["extractive", "tree_summarize", "refine"]
        comparison = index.compare(QUESTION, llm=llm_of(server), response_modes=modes).to_json()
    assert json.loads(json.dumps(comparison)) == comparison
    assert [*comparison] == ["question", "why", "sources", "modes", "seconds"]
    assert comparison["why"].startswith("the chunks by context: ")
    assert comparison["question"] == QUESTION
    assert {*comparison["seconds"]} == {"embed", "search"}
    for source in comparison["sources"]:
        known = {"id", "level", "title", "score", "raw_score", "text", "citations", "path"}
        assert {*source} == known
    extractive, failed, refine = comparison["modes"]
    common = ["mode", "answer", "answer_kind", "citations", "usage", "seconds"]
    rest = ["refused", "missing", "unknown", "unsupported", "passages"]
    assert [*extractive] == [*common, "score", "best", *rest]
    assert [*refine] == [*common, *rest]
    assert [p["citation"] for p in extractive["passages"]] == extractive["citations"]
    assert refine["passages"] == []
    assert min(extractive["seconds"], refine["seconds"]) >= 0
    assert (extractive["answer_kind"], refine["answer_kind"]) == ("extractive", "llm")
    assert extractive["citations"]
    assert refine["usage"]["llm_calls"] > 0
    assert [*failed] == ["mode", "error"]


def test_options_are_for_the_modes_that_have_them(index, server):
    modes = ["extractive", "simple_summarize"]
    options = {"response_modes": modes, "llm": llm_of(server)}
    foreign = "Which enzyme splits lactose?"
    refused, asked = index.compare(foreign, synthesizer={"min_score": 1.0}, **options).attempts
    quoted, _ = index.compare(foreign, synthesizer={"min_score": 0}, **options).attempts
    assert (refused.answer.refused, quoted.answer.refused) == (True, False)
    assert asked.answer.answer
    with pytest.raises(InputError, match="No response mode has an option 'least'"):
        index.compare(QUESTION, synthesizer={"least": 1}, **options)


def test_why_is_said_once_where_auto_chose(index):
    comparison = index.compare(QUESTION)
    assert comparison.why == index.ask(QUESTION).why
    chosen = index.compare(QUESTION, level=0)
    assert chosen.why is None
    assert "why" not in chosen.to_json()
