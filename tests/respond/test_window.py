"""Which texts are read together, without a model."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from respond.asking import count_tokens

from hierindex.errors import InputError
from hierindex.respond.bounded_tree import LEAST_ROOM, N_BETWEEN, Window

TEMPLATE = PromptTemplate("{context_str}")
NUM_OUTPUT = 50


def window_of(room):
    window = room + NUM_OUTPUT + 5  # which LlamaIndex leaves for joints
    return Window(PromptHelper(window, NUM_OUTPUT), TEMPLATE, MockLLM())


def words(n):
    return " ".join(["word"] * n)


@pytest.mark.parametrize("room", [LEAST_ROOM - 1, 0, -1, -200])
def test_next_to_no_room_is_refused(room):
    with pytest.raises(InputError, match="The prompt leaves no room for texts"):
        window_of(room)
    assert window_of(LEAST_ROOM).room == LEAST_ROOM


texts = st.one_of(
    st.integers(0, 300).map(words),
    st.integers(0, 40).map(lambda n: " ".join(f"Sentence {i} is here." for i in range(n))),
    st.integers(0, 900).map(lambda n: "\u6c34" * n),
    st.text(max_size=200),
)


@given(texts, st.integers(LEAST_ROOM, 300))
def test_two_shortened_texts_fit_a_prompt(text, room):
    window = window_of(room)
    short = window.shortened(text)
    assert text.startswith(short)
    assert 2 * (count_tokens(short) + N_BETWEEN) <= room or short == text
    assert short or not text
    assert window.shortened(short) == short


def test_no_citation_is_cut_from_its_sentence():
    text = f"One is here.[3] Two is there [4] [12]. Then {words(300)}"
    assert window_of(46).shortened(text) == "One is here.[3] Two is there [4] [12]."


def rounds(window, passages, answer):
    """The texts of the prompts of each round; each is answered by the same function."""
    shown = [window.prompts(passages)]
    while len(shown[-1]) > 1:
        shown.append(window.read_on([answer(text) for text in shown[-1]]))
    return shown


@given(st.lists(st.integers(0, 90), min_size=1, max_size=12), st.integers(60, 200))
def test_rounds_end_and_each_prompt_fits(lengths, room):
    """With answers as long as they can be, no round has more than half of the one before."""
    passages, window = list(map(words, lengths)), window_of(room)
    shown = rounds(window, passages, lambda prompt: words(2000))
    assert all(count_tokens(text) <= room for texts in shown for text in texts)
    sizes = [*map(len, shown)]
    assert all(2 * after <= before + 1 for before, after in pairwise(sizes))


def test_texts_are_whole_unless_one_does_not_fit():
    window, texts = window_of(60), [f"{words(25)} {i}" for i in range(4)]
    assert window.prompts(texts) == ["\n\n".join(texts[:2]), "\n\n".join(texts[2:])]
    *whole, first, last = window.prompts([*texts, words(70)])
    assert (whole, first[:4], last[:4]) == (window.prompts(texts), "word", "word")
