"""LlamaIndex's global tokenizer, which counts for models whose own is unknown."""

from collections.abc import Callable
from functools import lru_cache, partial
from os.path import commonprefix
from typing import TYPE_CHECKING

from llama_index.core.utils import get_tokenizer

if TYPE_CHECKING:
    from tiktoken import Encoding

Tokenizer = Callable[[str], list[int]]


def global_tokenizer() -> Tokenizer:
    """Return a function that gives the token ids of a text, as the global tokenizer does.

    tiktoken looks for special tokens in each text, which takes a fifth of a sentence's time; this
    one does so only in texts that have what their names begin with.
    """
    tokenizer = get_tokenizer()
    return _quick(tokenizer) if isinstance(tokenizer, partial) else tokenizer


def global_encoding() -> "Encoding | None":
    """Return the encoding of tiktoken that the global tokenizer uses; None if it is another."""
    return _encoding(get_tokenizer())


@lru_cache(maxsize=1)
def _quick(tokenizer: Tokenizer) -> Tokenizer:
    if (encoding := _encoding(tokenizer)) is None:
        return tokenizer
    ordinary = encoding.encode_ordinary
    mark = commonprefix([*encoding.special_tokens_set])  # noqa: RUF071 - no paths
    return lambda text: tokenizer(text) if mark in text else ordinary(text)


def _encoding(tokenizer: Tokenizer) -> "Encoding | None":
    from tiktoken import Encoding

    encoding = getattr(getattr(tokenizer, "func", tokenizer), "__self__", None)
    return encoding if isinstance(encoding, Encoding) else None
