from functools import partial

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.utils import get_tokenizer, set_global_tokenizer

from hierindex.embed.global_tokenizer import global_encoding, global_tokenizer

PARTS = ("<|endoftext|>", "<|", "|>", "endoftext", " word", "\ud800", "\u96ea", "\n")


class Lowercase(tiktoken.Encoding):
    def __init__(self, name):
        vars(self).update(vars(tiktoken.get_encoding(name)))

    def encode(self, text, **options):
        return super().encode(text.lower(), **options)


@pytest.fixture
def another():
    usual = get_tokenizer()
    yield set_global_tokenizer
    set_global_tokenizer(usual)


@given(st.lists(st.sampled_from(PARTS) | st.text(max_size=8)).map("".join))
def test_it_counts_as_llama_index_does(text):
    assert global_tokenizer()(text) == get_tokenizer()(text)


def test_special_tokens_are_one_token():
    assert len(global_tokenizer()("<|endoftext|>")) == 1


def test_one_of_the_user_s_is_used_as_it_is(another):
    another(str.split)
    assert global_tokenizer()("two words") == ["two", "words"]
    assert global_encoding() is None
    another(partial(str.split, sep="o"))
    assert global_tokenizer()("two words") == ["tw", " w", "rds"]
    assert global_encoding() is None
    encoding = tiktoken.get_encoding("cl100k_base")
    another(partial(encoding.encode, disallowed_special=()))  # special tokens are plain text
    assert global_encoding() is encoding
    assert len(global_tokenizer()("<|endoftext|>")) == 7
    another(partial(encoding.encode_batch, num_threads=1))  # no tokens, but as given
    assert global_tokenizer()(["two words"]) == [encoding.encode("two words")]
    another(partial(encoding.encode, disallowed_special={"word"}))
    with pytest.raises(ValueError, match="word"):
        global_tokenizer()("word")
    another(partial(Lowercase("cl100k_base").encode, allowed_special="all"))
    assert global_tokenizer()("Two WORDS") == encoding.encode("two words")
    another(encoding.encode)
    assert global_encoding() is encoding
    assert global_tokenizer()("two words") == encoding.encode("two words")
