"""Replies with thoughts, and replies that are cut off."""

import re
from itertools import pairwise
from uuid import uuid4

import pytest
from clients import llm_of, with_retries
from hypothesis import example, given
from hypothesis import strategies as st
from indexes import built
from loopback import Fault
from respond.asking import NEED_LLM, QUESTION, WAYS, ask, serve, unmarked

from hierindex import HierindexError

SAID = "The lantern met a falcon."
CHANNEL = "<|channel|>analysis<|message|>Hm [1].<|end|><|start|>assistant"
THOUGHTS = {
    "think": "<think>It says [1].\n\nOkay.</think>\n\n",
    "several": "\n<think>One [2].</think>\n<Reasoning>Two.</Reasoning> <thought>3</thought>",
    "empty": "<think>\n\n</think>\n\n",
    "begun by the template": 'Okay, the user asks of [1], "</think>" too.\n</think>\n\n',
    "gpt-oss": f"{CHANNEL}<|channel|>final<|message|>",
    "gpt-oss, final at once": "<|channel|>final<|message|>",
    "gpt-oss, begun": f"<|start|>assistant{CHANNEL}<|channel|>final <|constrain|>json<|message|>",
}
UNFINISHED = ["<think>Is it [1] or", "<|channel|>analysis<|message|>Is it [1]", ""]
FIELDS = {
    "own field": lambda text: {"content": text, "reasoning_content": "Hm [2]."},
    "own field of vLLM": lambda text: {"content": text, "reasoning": "Hm [2]."},
}


def cited(prompt):
    """A sentence that cites the last passage."""
    numbers = re.findall(r"(?m)^(\[\d+\])$", prompt)
    return f"{SAID[:-1]} {numbers[-1]}." if numbers else SAID


@pytest.fixture(scope="module")
def plain(index):
    """The answers of a model without thoughts, by mode."""
    with serve(cited) as server:
        return {
            mode: index.ask(QUESTION, llm=llm_of(server), response_mode=mode, top_k=2)
            for mode in NEED_LLM
        }


@pytest.mark.spread
@pytest.mark.parametrize("mode", sorted(NEED_LLM))
@pytest.mark.parametrize("thought", THOUGHTS.values(), ids=THOUGHTS)
def test_no_mode_answers_with_a_thought(index, plain, mode, thought):
    shown = []
    with serve(lambda prompt: thought + cited(prompt), cut=list) as server:
        asked = {"llm": llm_of(server), "response_mode": mode, "top_k": 2}
        answers = [index.ask(QUESTION, **asked), index.ask(QUESTION, show=shown.append, **asked)]
    for answer in answers:
        assert answer.answer.replace("?]", "]") == plain[mode].answer.replace("?]", "]")
        assert answer.citations == plain[mode].citations
    assert "".join(shown) == answers[1].answer


@pytest.mark.spread
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("thought", THOUGHTS.values(), ids=THOUGHTS)
def test_no_way_of_asking_shows_a_thought(retriever, embed_model, way, thought):
    with serve(lambda prompt: thought + SAID, cut=list) as server:
        options = {"response_mode": "compact", "settings": {"model": "thinker"}}
        answer, calls = ask(server, retriever, embed_model, way, **options)
    assert unmarked(answer) == SAID
    assert [call.completion for call in calls.made] == [thought + SAID]


@pytest.mark.spread
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("message", FIELDS.values(), ids=FIELDS)
def test_reasoning_may_be_a_field(retriever, embed_model, way, message):
    with serve(lambda prompt: SAID, message=message) as server:
        answer, _ = ask(server, retriever, embed_model, way, response_mode="compact")
    assert unmarked(answer) == SAID


@pytest.mark.parametrize(
    ("mode", "thought"),
    [
        ("condense_plus_context", "think"),
        ("condense_question", "gpt-oss"),
        ("context", "begun by the template"),
    ],
)
def test_a_chat_remembers_no_thought(index, mode, thought):
    with serve(lambda prompt: THOUGHTS[thought] + SAID, cut=list) as server:
        engine = index.as_chat_engine(llm=llm_of(server), chat_mode=mode, top_k=2)
        assert unmarked(str(engine.chat(QUESTION))) == SAID
        assert "".join(engine.stream_chat("And then?").response_gen) == SAID
    assert [unmarked(m.content) for m in engine.chat_history[1::2]] == [SAID, SAID]


def pieces_of(text, cuts):
    """Return a text cut at these places, some of which may be beyond its end."""
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    return [text[a:b] for a, b in pairwise(places)]


REPLIES = st.lists(
    st.sampled_from(
        [
            *(*THOUGHTS.values(), *UNFINISHED, SAID, "\n", " ", "Is a <b> < c?", "A `<think>`, a"),
            *("<|end|>", "It is between <think> and </think>.", "<thi", "|>", "</reasoning>"),
        ]
    ),
    min_size=1,
    max_size=4,
).map("".join)


@given(REPLIES, st.sets(st.integers(1, 200), max_size=30))
@example(f"<think>Hm.</think>{SAID}", set(range(200)))
@example(f"Okay.\n</think>{SAID}", set(range(200)))
def test_a_stream_in_any_pieces_says_what_the_whole_reply_does(reply, cuts):
    """Of models that may think, as their names say."""
    with serve(lambda prompt: reply, cut=lambda text: pieces_of(text, cuts)) as server:
        names = f"think-{uuid4().hex}", f"think-{uuid4().hex}"  # that never replied before
        first, then = (with_retries(llm_of(server, model=name)) for name in names)
        chunks = text_or_error(lambda: list(first.stream_complete("Hello?")))
        whole = text_or_error(lambda: then.complete("Hello?"))
        later = text_or_error(lambda: list(then.stream_complete("Hello?")))
    if isinstance(whole, str):
        assert chunks == later == whole
        assert "only reasoning" in whole
    else:
        for each in (chunks, later):
            assert "".join(chunk.delta for chunk in each) == whole.text == each[-1].text
            assert all(whole.text.startswith(chunk.text) for chunk in each)


@pytest.mark.parametrize(
    ("model", "reply", "begins"),
    [
        ("writer", SAID, "The lantern"),
        ("writer of <think>", f"<think>Is it [1]?</think>{SAID}", "The lantern"),
        ("writer-R1-7b", SAID, ""),
    ],
)
def test_a_first_reply_is_shown_as_it_is_written_unless_it_may_be_a_thought(
    index, model, reply, begins
):
    shown = []
    with serve(lambda prompt: reply, cut=list) as server:
        llm = llm_of(server, model=model)
        answer = index.ask(QUESTION, llm=llm, top_k=2, show=shown.append).answer
        assert re.sub(r" \[\d\*\]", "", answer) == "".join(shown)
        n_pieces = len([*filter(None, shown)])
        assert (n_pieces > 10) == bool(begins)
        assert answer.startswith(begins)
        llm, shown = llm_of(server, model=model), []
        index.ask(QUESTION, llm=llm, top_k=2, show=shown.append)
        assert len([*filter(None, shown)]) > 10


def test_a_model_that_once_began_within_a_thought_is_held_from_then_on(index):
    replies, shown = iter([SAID, f"Hm.\n</think>{SAID}", f"The lamp?\n</think>{SAID}"]), []
    with serve(lambda prompt: next(replies), cut=list) as server:
        for show in (None, None, shown.append):
            llm = llm_of(server, model="thinks at times")
            index.ask(QUESTION, llm=llm, top_k=2, show=show)
    assert "".join(shown) == SAID


def text_or_error(ask):
    """What is answered, or the message of the error after the model's name."""
    try:
        return ask()
    except HierindexError as error:
        return str(error).partition("failed")[2]


TELLING = [  # that speak of the tags
    "A thought stands between <think> and </think>.",
    "It ends with `</think>`, as it began with `<think>`.",
    "Write </think> at the end.",
]


@pytest.mark.spread
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("said", TELLING[:2])
def test_an_answer_may_speak_of_thoughts(retriever, embed_model, way, said):
    with serve(lambda prompt: said, cut=list) as server:
        assert ask(server, retriever, embed_model, way, response_mode="generation")[0] == said


@pytest.mark.parametrize("said", TELLING)
def test_an_answer_may_quote_what_a_passage_says_of_thoughts(embed_model, tmp_path, said):
    (tmp_path / "tags.txt").write_text(f"On tags. {said}")
    index = built(tmp_path / "tags.txt", tmp_path / "index", model=embed_model)
    with serve(lambda prompt: f"<think>Hm.</think>{said}") as server:
        assert unmarked(index.ask("What of tags?", llm=llm_of(server)).answer) == said


@pytest.mark.spread
@pytest.mark.parametrize("mode", ["accumulate", "compact", "tree_summarize"])
@pytest.mark.parametrize("said", UNFINISHED)
def test_a_thought_alone_is_an_error_that_says_how_to_mend_it(index, mode, said):
    told = r"^LLM 'm' failed to answer: it wrote only reasoning .* --llm-completion-tokens"
    fault = Fault(text=said, finish_reason="length")
    for show in (None, print):
        with serve(faults=lambda number: fault) as server, pytest.raises(HierindexError) as caught:
            index.ask(QUESTION, llm=llm_of(server), response_mode=mode, top_k=2, show=show)
        assert re.match(told.replace(" .* ", ".*"), str(caught.value))
        assert len(server.requests) == 1


@pytest.mark.spread
@pytest.mark.parametrize("mode", ["accumulate", "compact", "tree_summarize"])
@pytest.mark.parametrize("usage", [False, True])
def test_an_answer_that_is_cut_off_says_so(index, mode, usage):
    told = {"additional_kwargs": {"stream_options": {"include_usage": usage}}}
    for finish, show in (("length", None), ("length", print), ("stop", print)):
        fault = Fault(text="The lantern met a", finish_reason=finish)
        with serve(faults=lambda number, fault=fault: fault) as server:
            llm = llm_of(server, **told)
            answer = index.ask(QUESTION, llm=llm, response_mode=mode, top_k=2, show=show)
        cut_off = True if finish == "length" else None
        assert answer.cut_off == answer.to_json().get("cut_off") == cut_off
