"""Sentence-transformers models on ONNX Runtime, without torch."""

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

MODEL, TOKENIZER, CARD = "model.onnx", "tokenizer.json", "card.json"
INPUT, TEXT = "input_ids", "sentence_embedding"
# ONNX Runtime's fused layer normalisation took 11 ms of 82 for 254 tokens, the parts it fuses 4.
SLOWER = ["SkipLayerNormFusion"]


@dataclass(frozen=True)
class Card:
    """What an exported model's graph and tokenizer do not say.

    `window` is the most tokens that it reads, special ones included; the prompts are put
    before a question and before a text; `sha256` has the two files' digests.
    """

    window: int
    query_prompt: str
    text_prompt: str
    digests: dict[str, str]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The card in a folder."""
        return cls(**json.loads((folder / CARD).read_text("utf-8")))

    def write(self, folder: Path) -> None:
        """Put the card into a folder."""
        (folder / CARD).write_text(json.dumps(asdict(self), indent=1), "utf-8")


class OnnxEmbedding(BaseEmbedding):
    """An exported sentence-transformers model, as `load_embed_model` gives it on a CPU.

    Each text is a run of its own, on one thread, and as many run at once as there are
    cores. So a vector depends on its text alone, to the last bit, no run waits for another,
    and nothing is computed for padding. On two cores that is as fast as any batch.

    Parameters
    ----------
    folder : str
        With the graph, the tokenizer and the card that an export wrote.
    model_name : str
        Under which it was loaded.
    """

    folder: str
    embed_batch_size: int = Field(default=256, gt=0, le=2048)  # between two reports of progress

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "OnnxEmbedding"

    @property
    def max_length(self) -> int:
        """Most tokens that the model reads, special ones included."""
        return self._card.window

    @property
    def fingerprint(self) -> str | None:
        """Digest of all that shapes a text's vector: graph, tokenizer, window and prompt."""
        return hashlib.sha256((Path(self.folder) / CARD).read_bytes()).hexdigest()

    @property
    def text_instruction(self) -> str:
        """What is put before every text."""
        return self._card.text_prompt

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The model's own tokenizer, which cuts nothing."""
        return whole_tokenizer((Path(self.folder) / TOKENIZER).read_text("utf-8"))

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """In order, but the longest text first: no core is left with it at the end."""
        _ = self._session, self._cutting_tokenizer  # made here, and not once by each thread
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        with ThreadPoolExecutor(_n_cores()) as pool:
            found = pool.map(self._vector, (texts[i] for i in order))
            vectors = dict(zip(order, found, strict=True))
        return [vectors[i] for i in range(len(texts))]

    def _vector(self, text: str) -> list[float]:
        ids = np.array([self._cutting_tokenizer.encode(text).ids], dtype=np.int64)
        (found,) = self._session.run([TEXT], {INPUT: ids})
        vector: list[float] = found[0].tolist()
        return vector

    @cached_property
    def _cutting_tokenizer(self) -> "Tokenizer":
        """As `tokenizer`, but it cuts to the window."""
        tokenizer = whole_tokenizer(self.tokenizer.to_str())
        tokenizer.enable_truncation(self._card.window)
        return tokenizer

    @cached_property
    def _card(self) -> Card:
        return Card.read(Path(self.folder))

    @cached_property
    def _session(self) -> "InferenceSession":
        from onnxruntime import InferenceSession, SessionOptions

        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        path = str(Path(self.folder) / MODEL)
        return InferenceSession(
            path, options, providers=["CPUExecutionProvider"], disabled_optimizers=SLOWER
        )

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._vectors([self._card.text_prompt + text for text in texts])

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vectors([self._card.query_prompt + query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


def whole_tokenizer(described: str) -> "Tokenizer":
    """The tokenizer that a tokenizer.json describes, which neither cuts nor pads."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(described)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
