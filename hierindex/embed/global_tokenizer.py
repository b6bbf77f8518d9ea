"""LlamaIndex's global tokenizer, which counts for models whose own is unknown."""

from collections.abc import Callable
from functools import lru_cache, partial
from os.path import commonprefix
from typing import TYPE_CHECKING

from llama_index.core.utils import get_tokenizer

if TYPE_CHECKING:
    from tiktoken import Encoding

Encode = Callable[[str], list[int]]


def global_tokenizer() -> Encode:
    """Return a function that gives the token ids of a text, as the global tokenizer does.

    By default that is one of tiktoken's. It searches each text for special tokens, which takes a
    fifth of the time of a sentence; the function searches only texts that have their common prefix.
    """
    tokenizer = get_tokenizer()
    return _quick(tokenizer) if isinstance(tokenizer, partial) else tokenizer


def global_encoding() -> "Encoding | None":
    """Return the encoding of tiktoken that the global tokenizer uses; None if it is another."""
    from tiktoken import Encoding

    tokenizer = get_tokenizer()
    encoding = getattr(getattr(tokenizer, "func", tokenizer), "__self__", None)
    return encoding if isinstance(encoding, Encoding) else None


@lru_cache(maxsize=1)
def _quick(tokenizer: "partial[list[int]]") -> Encode:
    """Return what does as LlamaIndex's default, or another tokenizer as it is."""
    from tiktoken import Encoding

    encoding = getattr(tokenizer.func, "__self__", None)
    call = tokenizer.func, tokenizer.args, tokenizer.keywords
    if type(encoding) is not Encoding or call != (encoding.encode, (), {"allowed_special": "all"}):
        return tokenizer
    ordinary = encoding.encode_ordinary
    mark = commonprefix([*encoding.special_tokens_set])  # noqa: RUF071 - no paths
    return lambda text: tokenizer(text) if mark in text else ordinary(text)
