"""Which texts are read together, without a model."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from respond.asking import count_tokens

from hierindex.respond.synthesizers import Window

TEMPLATE = PromptTemplate("{context_str}")
NUM_OUTPUT = 50


def window_of(room):
    window = room + NUM_OUTPUT + 5  # which LlamaIndex leaves for joints
    return Window(PromptHelper(window, NUM_OUTPUT), TEMPLATE, MockLLM())


def words(n):
    return " ".join(["word"] * n)


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
