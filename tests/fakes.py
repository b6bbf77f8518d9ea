"""Test doubles of LlamaIndex's models."""

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import Field
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata


@lru_cache(maxsize=100_000)
def _word_vector(word: str, dim: int) -> np.ndarray:
    """Corner of the cube, (dim,) of -1 and 1: the bits of the word's sha256 digests."""
    digests = (hashlib.sha256(f"{i}:{word}".encode()).digest() for i in range(-(-dim // 256)))
    bits = np.unpackbits(np.frombuffer(b"".join(digests), dtype=np.uint8))[:dim]
    return 2 * bits.astype(np.int64) - 1


@lru_cache(maxsize=20_000)
def _text_vector(text: str, dim: int) -> np.ndarray:
    words = re.findall(r"\w+", text.lower())
    total = sum((_word_vector(word, dim) for word in words), np.zeros(dim))
    if not total.any():
        total = _word_vector("", dim)
    return total / np.linalg.norm(total)


class HashingEmbedding(BaseEmbedding):
    """A text's unit vector is the normalised sum of fixed vectors of its lower-cased words.

    The vectors of two words have a cosine of 0 within some 1 / sqrt(dim). So texts of n words
    each that have k in common have a cosine of about k / n, the order of the words is of no
    account, and a word said twice is the word. A text without words is the empty word.
    `batches` has the texts of each call for texts, `queries` each query.
    """

    model_name: str = "hashing"
    embed_batch_size: int = 1000
    dim: int = 64
    batches: list[list[str]] = Field(default_factory=list, exclude=True)
    queries: list[str] = Field(default_factory=list, exclude=True)

    def _vector(self, text: str) -> list[float]:
        return _text_vector(text, self.dim).tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        self.queries.append(query)
        return self._vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embedding(text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(list(texts))
        return [self._vector(text) for text in texts]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._get_text_embeddings(texts)


class Replying(CustomLLM):
    """A language model that replies by a function, and notes what it is asked."""

    reply: Callable[[str], str]
    prompts: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="tiny")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.reply(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any):
        raise NotImplementedError


class Remembered:
    """A memory of vectors that is a dictionary."""

    def __init__(self):
        self.vectors = {}

    def recall(self, texts):
        return {text: self.vectors[text] for text in texts if text in self.vectors}

    def keep(self, texts, X):
        self.vectors |= dict(zip(texts, X, strict=True))
