from enum import StrEnum
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.utils import get_tokenizer

from hierindex.models.failures import RequestError
from hierindex.summarize.llm import PROMPTS, summary_prompt
from hierindex.summarize.replies import FAR_OVER, checked

SOURCE = (
    "The keeper of the lighthouse wrote a letter to the harbour every morning.\n"
    "A storm from the north broke the window and the lamp went out."
)
SPEECH = (
    "But, in a larger sense, we cannot dedicate, we can not consecrate, this ground. "
    "\u201cI\u2019m sorry,\u201d he said. \u201cWe will not provide arms.\u201d "
    "Unfortunately, I was late."
)
ON_PROMPTS = (
    "A model writes <think> before its thought and </think> after it.\n"
    "One prompt reads:\n"
    "Answer in this form, in English:\n"
    "and it goes on from there with the title."
)
GOOD = {
    "English": "The keeper wrote daily; a storm of 1872 put the lamp out.",
    "German": "Der Wärter schrieb täglich, bis ein Sturm die Lampe löschte. Es tat ihm leid.",
    "Japanese": "灯台守は毎朝手紙を書いた。嵐で灯りが消えた。",
    "a number": "42",
    "markup": "* a **letter** a day\n* the lamp: `out`",
    "sorry, later": "He wrote a letter. I'm sorry, it said, as an AI would.",
    "what others cannot": "They cannot help the keeper. Nobody can provide a lamp.",
}
MAX_TOKENS = 50


def said(text, source=SOURCE, raw=None, prompt="summary", max_tokens=MAX_TOKENS):
    asked = summary_prompt(source, max_tokens=max_tokens, template=PROMPTS[prompt])
    return checked(CompletionResponse(text=text, raw=raw), asked, source, max_tokens)[1]


FENCE = summary_prompt(SOURCE, max_tokens=MAX_TOKENS).partition("\n")[0]


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_a_good_summary_stays_as_it_is(text, prompt):
    assert said(text, prompt=prompt) == text
    assert said(f"\n  {text} \n", prompt=prompt) == text


class Finish(StrEnum):
    MAX_TOKENS = "MAX_TOKENS"


REASONS = {
    "OpenAI, dict": lambda reason: {"choices": [{"finish_reason": reason}]},
    "OpenAI, object": lambda reason: SimpleNamespace(
        choices=[SimpleNamespace(finish_reason=reason, message=SimpleNamespace(refusal=None))]
    ),
    "Anthropic": lambda reason: {"stop_reason": reason, "content": []},
    "Ollama": lambda reason: {"done": True, "done_reason": reason},
    "Ollama, object": lambda reason: SimpleNamespace(done_reason=reason),
    "Google": lambda reason: {"finish_reason": reason},
}


@pytest.mark.parametrize("raw", REASONS.values(), ids=REASONS)
@pytest.mark.parametrize("reason", ["length", "max_tokens", Finish.MAX_TOKENS])
def test_what_was_cut_off_is_unusable(raw, reason):
    with pytest.raises(RequestError, match="cut off") as caught:
        said(GOOD["English"], raw=raw(reason))
    assert caught.value.failure.kind == "unusable"


@pytest.mark.parametrize(
    "raw",
    [
        {"choices": [{"finish_reason": "content_filter"}]},
        {"choices": [{"finish_reason": "stop", "message": {"refusal": "I can't."}}]},
        SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(refusal="No."))]),
        {"stop_reason": "refusal"},
        {"finish_reason": "SAFETY"},
    ],
    ids=str,
)
def test_a_filter_is_not_asked_again(raw):
    with pytest.raises(RequestError, match="refused") as caught:
        said(GOOD["English"], raw=raw)
    assert caught.value.failure.kind == "text"


@pytest.mark.parametrize("text", ["", " \n\t", "...", "!?", "\u3000。", "---\n\n***", "\u200b"])
def test_what_has_no_letter_and_no_digit_is_empty(text):
    with pytest.raises(RequestError, match="empty"):
        said(text)


REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "We're sorry. Something went wrong.",
    "Sorry, I can't do that.",
    "I apologize, but I am not able to summarize this.",
    "As an AI language model, I have no opinions.",
    "Unfortunately, I don't have access to the passages.",
    "I can't assist with that request.",
    "I cannot fulfill your request. I'm just an AI.",
    "I won't be able to write this.",
    "I must decline to answer.",
    "I'm afraid I can't do that.",
    "\u201cI can't help with that.\u201d",
    "**I cannot provide a summary.**",
    "I CAN'T  HELP\nWITH THAT",
    "Es tut mir leid, dabei kann ich nicht helfen.",
    "Leider kann ich diese Anfrage nicht bearbeiten.",
    "Désolé, je ne peux pas.",
    "Lo siento, no puedo ayudar con eso.",
    "Mi dispiace, non posso aiutarti.",
    "Het spijt me, dat kan ik niet.",
    "Извините, я не могу помочь.",
    "抱歉，我不能帮助你。",
    "我无法回答这个问题。",
    "申し訳ありませんが、お手伝いできません。",
    "죄송합니다. 도와드릴 수 없습니다.",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_unusable_with_any_apostrophe(text):
    for phrasing in (text, text.replace("'", "\u2019")):
        with pytest.raises(RequestError, match="refused") as caught:
            said(phrasing)
        assert caught.value.failure.kind == "unusable"


@pytest.mark.parametrize(
    "text",
    [
        "We cannot dedicate this ground.",
        "I'm sorry, he said.",
        "I\u2019m sorry, he said.",
        '"I\'m sorry," he said.',
        "We will not provide arms.",
        "Unfortunately, I was late.",
    ],
)
def test_what_the_source_says_is_no_refusal(text):
    assert said(text, SPEECH) == text


@pytest.mark.parametrize("text", REFUSALS)
def test_a_source_that_is_a_refusal_may_be_summarised(text):
    assert said(text, f"He looked up. {text} Then he left.") == text


def instructions():
    for name in PROMPTS:
        prompt = summary_prompt(SOURCE, max_tokens=MAX_TOKENS, template=PROMPTS[name])
        lines = (line for line in prompt.splitlines() if line not in SOURCE.splitlines())
        yield from ((name, line) for line in lines if len(line) >= 30)


@pytest.mark.parametrize("change", [str, str.upper, lambda line: line.replace(" ", "\n")])
@pytest.mark.parametrize(("prompt", "line"), [*instructions()])
def test_a_line_of_the_prompt_is_an_echo(prompt, line, change):
    with pytest.raises(RequestError, match="instructions"):
        said(f"{GOOD['English']}\n{change(line)}\n{GOOD['English']}", prompt=prompt)


@pytest.mark.parametrize("source", ["e", ".", " ", "\n", "Write", "A."])
def test_an_echo_of_a_short_source_is_one_too(source):
    with pytest.raises(RequestError, match="instructions"):
        said(summary_prompt(source, max_tokens=MAX_TOKENS), source)


@pytest.mark.parametrize("source", [SOURCE, ON_PROMPTS, SPEECH])
def test_a_line_of_the_source_is_no_echo(source):
    for line in source.splitlines():
        assert said(line, source) == line


THOUGHTS = [
    "<think>What is this about? I cannot help.</think>",
    "\n <THINK>Two\nlines.</THINK>\n",
    "<thinking>Hm.</thinking>",
    "A template opened this thought.\n</think>\n\n",
    "</think>",
]


@pytest.mark.parametrize("thought", THOUGHTS)
def test_a_thought_is_not_part_of_the_summary(thought):
    assert said(f"{thought}{GOOD['English']}") == GOOD["English"]


@pytest.mark.parametrize(
    "text",
    [
        "<think>The passages speak of a lamp.",
        "<THINK>The passages speak of a lamp.",
        "A lamp. <think>Or was it two?",
        "<think>One.</think> A lamp. <think>Two.",
        "<think>One.</thinking> A lamp.",
    ],
)
def test_a_thought_without_an_end_is_no_answer(text):
    with pytest.raises(RequestError, match="thought"):
        said(text)


@pytest.mark.parametrize(
    "text", ["A thought stands between <think> and </think>.", "The end is marked </think> there."]
)
def test_a_text_may_speak_of_thoughts(text):
    assert said(text, ON_PROMPTS) == text
    assert said(f"<think>Hm.</think>{text}", ON_PROMPTS) == text


@pytest.mark.parametrize("max_tokens", [1, 10, 200])
def test_far_over_its_length_is_unusable_and_less_is_not(max_tokens):
    words = ["lamp"] * (FAR_OVER * max_tokens)
    text = " ".join(words)
    assert len(get_tokenizer()(text)) == len(words)
    assert said(text, max_tokens=max_tokens) == text
    with pytest.raises(RequestError, match="too long"):
        said(f"{text} lamp", max_tokens=max_tokens)


PIECES = [
    *GOOD.values(),
    *THOUGHTS,
    *REFUSALS[:3],
    "<think>",
    FENCE,
    SOURCE,
    summary_prompt(SOURCE, max_tokens=MAX_TOKENS)[:120],
    "Summary:",
    " ",
    "\n",
    "...",
    "word " * 250,
]


def verdict(text, raw):
    """The summary, or what is wrong with it."""
    try:
        return said(text, raw=raw), None
    except RequestError as error:
        return None, error.failure.reason


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=20), max_size=4).map("".join),
    st.sampled_from([None, {"done_reason": "stop"}, {"done_reason": "length"}]),
)
@example(FENCE, None)
@example(GOOD["English"], None)
def test_what_is_checked_is_not_blank_and_without_the_fence(text, raw):
    summary, wrong = verdict(text, raw)
    if wrong is not None:
        assert wrong.startswith("it ")
    else:
        assert summary == summary.strip() != ""
        assert summary in text
        assert FENCE not in summary


@pytest.mark.parametrize("title", [FENCE.strip("= "), "One paragraph"])
def test_a_title_of_the_prompt_is_none(title):
    asked = summary_prompt(SOURCE, max_tokens=MAX_TOKENS)
    reply = CompletionResponse(text=f"Title: {title}\nSummary: The lamp went out.")
    assert checked(reply, asked, SOURCE, MAX_TOKENS) == ("", "The lamp went out.")
