"""The tokenizer that counts the tokens of language models."""

import os
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

Tokenizer = Callable[[str], list[int]]
MODEL = "gpt-3.5-turbo"  # whose tokenizer is LlamaIndex's default
FOLDER = "TIKTOKEN_CACHE_DIR"


def llm_tokenizer() -> Tokenizer:
    """Return LlamaIndex's global tokenizer.

    Before LlamaIndex is imported, which takes a second, it can only be the default.
    """
    if "llama_index.core" not in sys.modules and (default := _default()):
        return default
    from llama_index.core.utils import get_tokenizer

    return get_tokenizer()


@cache
def _default() -> Tokenizer | None:
    """Return LlamaIndex's default from its bundled file; None if the file is missing."""
    package = find_spec("llama_index.core")
    file = Path(package.origin if package and package.origin else "")
    folder = file.parent / "_static" / "tiktoken_cache"
    if not folder.is_dir():
        return None
    import tiktoken

    is_set = FOLDER in os.environ
    os.environ.setdefault(FOLDER, str(folder))
    try:
        encoding = tiktoken.encoding_for_model(MODEL)
    finally:
        if not is_set:
            os.environ.pop(FOLDER, None)
    return partial(encoding.encode, allowed_special="all")
