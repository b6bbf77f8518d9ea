"""Every response mode, asked in every way: prompts, answers and tokens are those of the server."""

import json
from collections import Counter

import pytest
from clients import llm_of
from llama_index.core.prompts import PromptTemplate
from pydantic import BaseModel
from respond.asking import (
    NEED_LLM,
    NUM_OUTPUT,
    QUESTION,
    STREAMING,
    WAYS,
    ask,
    asked_of,
    count_tokens,
    log_of,
    serve,
    unmarked,
    usage_of,
)

from hierindex.errors import InputError, ModelError

WINDOWS = {"fits": 8192, "does not fit": 1300}
N_CALLS = {  # of 16 chunks in the larger window; then a smaller one, and those in that
    "accumulate": (16, 470, 33),
    "compact": (1, 1340, 3),
    "compact_accumulate": (1, 940, 3),
    "generation": (1, 300, 1),
    "refine": (16, 966, 31),
    "simple_summarize": (1, 700, 1),
    "tree_summarize": (1, 950, 4),
}
TEMPLATES = {
    "text_qa_template": "{context_str}\n{query_str} Answer {tone}.",
    "refine_template": "{context_msg}\n{existing_answer}\n{query_str} Answer {tone}.",
    "summary_template": "{context_str}\n{query_str} Answer {tone}.",
    "simple_template": "{query_str} Answer {tone}.",
}


class Verdict(BaseModel):
    """What a form holds."""

    met: bool
    words: str


@pytest.mark.spread
@pytest.mark.parametrize("fits", [True, False], ids=WINDOWS)
@pytest.mark.parametrize("mode", sorted(NEED_LLM))
def test_what_is_written_down_is_the_servers_log_however_it_is_asked(
    retriever, embed_model, mode, fits
):
    """The same prompts and the same answer in each way, none longer than the window."""
    n_fitting, smaller, n_smaller = N_CALLS[mode]
    window, n_calls = (8192, n_fitting) if fits else (smaller, n_smaller)
    with serve(window=window - NUM_OUTPUT) as server:
        answers, prompts = set(), []
        for way in WAYS if mode in STREAMING else ("plain", "async"):
            start = len(server.requests)
            settings = {"context_window": window}
            answer, calls = ask(
                server, retriever, embed_model, way, settings=settings, response_mode=mode
            )
            assert asked_of(calls.made) == log_of(server, start)
            assert calls.usage == usage_of(server, start)
            answers.add(unmarked(answer))
            prompts.append(Counter(request.prompt for request in server.requests[start:]))
    assert len(answers) == 1
    assert all(sent == prompts[0] for sent in prompts)
    assert prompts[0].total() == n_calls


@pytest.mark.parametrize("mode", [None, "extractive", "no_text", "refine"])
def test_an_answer_has_the_calls_of_the_log(index, mode):
    with serve() as server:
        answer = index.ask(QUESTION, llm=llm_of(server), response_mode=mode, top_k=5)
        assert asked_of(answer.calls) == log_of(server)
        assert answer.usage == usage_of(server)
    assert bool(answer.calls) == (mode is None or mode in NEED_LLM)
    assert len(answer.sources) == 5


@pytest.mark.spread
@pytest.mark.parametrize("mode", sorted(NEED_LLM))
@pytest.mark.parametrize("reply", [lambda prompt: "", lambda prompt: prompt], ids=["", "echo"])
def test_an_answer_of_nothing_or_of_the_prompt_is_none(index, mode, reply):
    """And not LlamaIndex's words for it, which are "None" and "Empty Response"."""
    options = {} if mode.endswith("accumulate") else {"synthesizer": {"streaming": True}}
    for each in ({}, options):
        with serve(reply) as server, pytest.raises(ModelError, match="answered nothing"):
            index.ask(QUESTION, llm=llm_of(server), response_mode=mode, top_k=2, **each)


def test_a_stream_that_does_not_tell_its_usage_is_counted(index):
    with serve() as server:
        streamed = index.ask(QUESTION, llm=llm_of(server), synthesizer={"streaming": True})
        assert streamed.usage == usage_of(server)


@pytest.mark.parametrize("mode", sorted(NEED_LLM))
def test_a_templates_own_fields_are_in_every_prompt(index, mode):
    templates = {
        name: PromptTemplate(template).partial_format(tone="like a pirate")
        for name, template in TEMPLATES.items()
    }
    options = {"level": 0, "top_k": 100, "token_budget": None, "synthesizer": templates}
    with serve() as server:
        llm = llm_of(server, context_window=1300)
        index.as_query_engine(llm=llm, response_mode=mode, **options).query(QUESTION)
        said = [request.prompt for request in server.requests]
    assert said
    assert all("Answer like a pirate." in prompt for prompt in said)


def satisfied(words):
    """Answers a form, satisfied where the passages have one of the words."""

    def reply(prompt):
        there = [word for word in words if word in prompt]
        told = {"query_satisfied": bool(there), "answer": f"It met {len(there)} of them."}
        return json.dumps(told)

    return reply


@pytest.mark.spread
@pytest.mark.parametrize("tools", [False, True], ids=["text", "tools"])
@pytest.mark.parametrize("way", ["plain", "async"])
@pytest.mark.parametrize("mode", ["refine", "compact"])
def test_answers_that_do_not_satisfy_are_left_out(retriever, embed_model, mode, way, tools):
    """Of all calls one is satisfied, and neither the first nor the last."""
    middle = retriever.retrieve(QUESTION)[8].node.text
    with serve(satisfied([middle.split("  ")[1]])) as server:
        settings = {"context_window": 1300, "is_function_calling_model": tools}
        options = {"response_mode": mode, "structured_answer_filtering": True}
        answer, calls = ask(server, retriever, embed_model, way, settings=settings, **options)
        assert asked_of(calls.made) == log_of(server)
        assert calls.usage == usage_of(server)
        satisfying = [json.loads(server.reply(r.prompt)) for r in server.requests]
    assert unmarked(answer) == "It met 1 of them."
    assert [told["query_satisfied"] for told in satisfying].count(True) == 1
    assert len(satisfying) > 2


def fill_in(prompt):
    return json.dumps({"met": "lantern" in prompt, "words": "Forty-two falcons."})


@pytest.mark.spread
@pytest.mark.parametrize("tools", [False, True], ids=["text", "tools"])
@pytest.mark.parametrize("way", ["plain", "async"])
@pytest.mark.parametrize("mode", ["tree_summarize", "compact"])
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_a_form_is_filled_in(retriever, embed_model, mode, way, tools, window):
    with serve(fill_in, window=window - NUM_OUTPUT) as server:
        settings = {"context_window": window, "is_function_calling_model": tools}
        options = {"response_mode": mode, "output_cls": Verdict}
        answer, calls = ask(server, retriever, embed_model, way, settings=settings, **options)
        assert asked_of(calls.made) == log_of(server)
        assert calls.usage == usage_of(server)
    assert Verdict.model_validate_json(answer) == Verdict(met=True, words="Forty-two falcons.")
    assert (len(calls.made) > 1) == (window < 8192)


def test_a_structured_model_is_asked_within(index):
    """`as_structured_llm` asks the model that it wraps."""
    with serve(fill_in) as server:
        answer = index.ask(QUESTION, llm=llm_of(server).as_structured_llm(Verdict))
        assert asked_of(answer.calls) == log_of(server)
    said = Verdict.model_validate_json(answer.answer)
    assert said == Verdict(met=True, words="Forty-two falcons.")


WRONG = {
    "size": ("compact", {"prompt_helper": 1, "bogus": 2}, "No response mode has an option 'bogus'"),
    "short": ("extractive", {"answer_tokens": 0}, "answer_tokens must be an integer of at least"),
}


@pytest.mark.parametrize(("mode", "options", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_option_is_one_sentence(index, mode, options, message):
    with serve() as server, pytest.raises(InputError, match=message) as caught:
        index.ask(QUESTION, llm=llm_of(server), response_mode=mode, synthesizer=options)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_tokens_are_the_servers_and_not_ours(index):
    """A server that counts words: fewer than LlamaIndex's tokenizer."""
    with serve() as server:
        server.count = lambda text: len(text.split())
        answer = index.ask(QUESTION, llm=llm_of(server))
        assert answer.usage == usage_of(server)
    assert answer.usage.prompt_tokens < count_tokens(answer.calls[0].prompt)
