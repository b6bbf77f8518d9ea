"""Sentence-transformers models on ONNX Runtime, without torch."""

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field

from hierindex.core.membership import Floats1d, Floats2d

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

MODEL, TOKENIZER, CARD = "model.onnx", "tokenizer.json", "card.json"
INPUT, TOKENS, TEXT = "input_ids", "token_embeddings", "sentence_embedding"
# ONNX Runtime's fused layer normalisation took 11 ms of 82 for 254 tokens, the parts it fuses 4.
SLOWER = ["SkipLayerNormFusion"]

T = TypeVar("T")
Part = tuple[int, int]
Task = tuple[str, Sequence[Part]]


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

    def embed_with_parts(
        self, texts: Sequence[str], parts: Sequence[Sequence[Part]]
    ) -> list[tuple[Floats1d, Floats2d]]:
        """Each text's vector, and one for each part of it, from the same pass.

        Parameters
        ----------
        texts : Sequence[str]
        parts : Sequence[Sequence[tuple[int, int]]]
            For each text, bounds of `text[start:end]`.

        Returns
        -------
        list of (n_dims,) float32 and (n_parts, n_token_dims) float32
            A part's is the mean over the tokens that begin in it; zeros where the model reads
            none of them.
        """
        return self._longest_first(self._with_parts, list(zip(texts, parts, strict=True)))

    def _with_parts(self, task: Task) -> tuple[Floats1d, Floats2d]:
        text, parts = task
        prompt = self._card.text_prompt
        encoding = self._cutting_tokenizer.encode(prompt + text)
        (tokens,), (vector,) = self._session.run([TOKENS, TEXT], {INPUT: _row(encoding.ids)})
        starts = np.array([start - len(prompt) for start, _ in encoding.offsets])
        starts[np.array(encoding.special_tokens_mask) == 1] = -1  # they stand nowhere
        means = np.zeros((len(parts), tokens.shape[1]), dtype=np.float32)
        for mean, (start, end) in zip(means, parts, strict=True):
            if (within := (starts >= start) & (starts < end)).any():
                mean[:] = tokens[within].mean(axis=0)
        return vector, means

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        return self._longest_first(self._vector, [(text, ()) for text in texts])

    def _vector(self, task: Task) -> list[float]:
        ids = self._cutting_tokenizer.encode(task[0]).ids
        (found,) = self._session.run([TEXT], {INPUT: _row(ids)})
        vector: list[float] = found[0].tolist()
        return vector

    def _longest_first(self, run: Callable[[Task], T], tasks: Sequence[Task]) -> list[T]:
        """Results in order; no core is left with a long text at the end."""
        _ = self._session, self._cutting_tokenizer  # made here, and not once by each thread
        order = sorted(range(len(tasks)), key=lambda i: -len(tasks[i][0]))
        with ThreadPoolExecutor(_n_cores()) as pool:
            found = dict(zip(order, pool.map(run, (tasks[i] for i in order)), strict=True))
        return [found[i] for i in range(len(tasks))]

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


def _row(ids: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([ids], dtype=np.int64)


def _n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
