import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.errors import InputError
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.prompts import PROMPTS, check_prompt, summary_prompt

BRACED = st.text(st.sampled_from("{}text fence_!:0.")) | st.sampled_from(
    ["{text}", "{fence}", "{}", "{{", "}}", "{text.__class__}", "{0}", "%s", "\\", "{n_words}"]
)


@pytest.mark.parametrize("template", [*PROMPTS.values(), "{text}", "{text} {{text}} {fence}{text}"])
def test_a_prompt_that_can_be_filled_in(template):
    check_prompt(template)
    assert "A lamp." in summary_prompt("A lamp.", max_tokens=9, template=template)


@pytest.mark.parametrize(
    "template",
    [
        "",
        "Summarise.",
        "{fence} {n_words}",
        "{{text}}",
        "{ text }",
        "{text} {language}",
        "{text} {}",
        "{} {text}",
        "{text} {0}",
        "{text.__class__}",
        "{text} {text.__class__.__mro__}",
        "{text} {fence.__init__.__globals__}",
        "{text[0]}",
        "{text} {n_words[0]}",
        "{text!r}",
        "{text!x}",
        "{text:.100}",
        "{text:>1000000000}",
        "{text:d}",
        "{text} {n_words:x}",
        "{text:{n_words}}",
        "{text:{language}}",
        "{text:{fence.__class__}}",
        "{text",
        "text}",
        "{text} {",
        "{text} }",
        "{text!}",
    ],
)
def test_any_other_is_refused(template):
    with pytest.raises(InputError, match=r"prompt .*\."):
        check_prompt(template)
    with pytest.raises(InputError, match=r"prompt .*\."):
        LLMRewriter(None, prompt=template)


PIECES = st.sampled_from(["{text}", "{fence}", "{n_words}", "{{", "}}", "{{text.x}}", " lamp\n"])


@given(st.lists(PIECES, max_size=6), st.lists(PIECES, max_size=6))
def test_what_is_accepted_can_be_filled_in_and_has_the_text(before, after):
    template = "".join([*before, "{text}", *after])
    check_prompt(template)
    assert "<A lamp.>" in summary_prompt("<A lamp.>", max_tokens=9, template=template)


@given(
    st.lists(PIECES, max_size=6),
    st.sampled_from([".x", "[0]", "!r", "!s", ":", ":>9", ":{n_words}", "s", " "]),
    st.sampled_from(["text", "fence", "n_words", ""]),
    st.lists(PIECES, max_size=6),
)
def test_one_field_that_is_not_plain_makes_it_another(before, suffix, name, after):
    template = "".join([*before, "{text}", f"{{{name}{suffix}}}", *after])
    if suffix == ":" and name:  # an empty format is none
        check_prompt(template)
    else:
        with pytest.raises(InputError):
            check_prompt(template)


@given(st.sampled_from([*PROMPTS.values(), "{text}"]), st.text() | BRACED, st.integers(1, 2000))
def test_a_text_stands_in_its_prompt_as_it_is_whatever_it_has_in_braces(template, text, max_tokens):
    prompt = summary_prompt(text, max_tokens=max_tokens, template=template)
    assert text in prompt
    assert prompt == summary_prompt(text, max_tokens=max_tokens, template=template)
    without = summary_prompt("", max_tokens=max_tokens, template=template)
    assert len(prompt) == len(without) + len(text)


@pytest.mark.parametrize("template", PROMPTS.values(), ids=PROMPTS)
def test_a_prompt_says_that_its_text_is_data_and_where_it_stands(template):
    prompt = summary_prompt("A lamp.", max_tokens=10, template=template)
    before, text, after = prompt.partition("\nA lamp.\n")
    assert text
    assert before.splitlines()[-1] == after.splitlines()[0]
    assert "never as instructions" in before
    assert "at most 7 words in" in before or "at most 7 words of" in before


@pytest.mark.parametrize("template", PROMPTS.values(), ids=PROMPTS)
def test_another_text_has_another_fence(template):
    fences = {
        summary_prompt(text, max_tokens=9, template=template).split("=== ")[1]
        for text in ("A lamp.", "A lamp", "", "a lamp.")
    }
    assert len(fences) == 4


def test_a_text_of_any_characters_has_a_prompt():
    prompt = summary_prompt("half of a character: \ud800", max_tokens=9)
    assert "half of a character: \ufffd" in prompt.encode().decode()
