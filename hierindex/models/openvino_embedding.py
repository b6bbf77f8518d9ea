"""Embedding models on OpenVINO, wrapped for LlamaIndex."""

import asyncio
from functools import cached_property
from pathlib import Path
from typing import cast

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field

from hierindex.models.model import EmbedModel
from hierindex.models.openvino import OpenVinoEncoder, Precision


class BatchEmbedding(BaseEmbedding):
    """Base class of embedding models that embed many texts at once; async methods use threads."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


class OpenVinoEmbedding(BatchEmbedding):
    """An exported sentence-transformers model, as `load_embed_model` returns it on a CPU.

    A vector depends only on its text and the precision, to the last bit.

    Parameters
    ----------
    folder : str
        Contains the graph, the tokenizer and the card of an export.
    model_name : str
        Name under which the model was loaded.
    precision : {"bfloat16", "float32"}
    """

    folder: str
    precision: Precision = "float32"
    embed_batch_size: int = Field(default=256, gt=0, le=2048)  # texts between progress reports

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises the class."""
        return "OpenVinoEmbedding"

    @cached_property
    def encoder(self) -> OpenVinoEncoder:
        """The wrapped model."""
        return OpenVinoEncoder(Path(self.folder), self.precision, self.model_name)

    @property
    def max_length(self) -> int:
        """Maximum tokens that the model reads, special ones included."""
        return self.encoder.max_length

    @property
    def fingerprint(self) -> str:
        """Digest of everything that determines a text's vector, with the precision."""
        return self.encoder.fingerprint

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.get_text_embedding_batch(texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.encoder.get_query_embedding(query)


def as_llama_index(model: EmbedModel) -> BaseEmbedding:
    """Wrap a model returned by `load_encoder` for LlamaIndex; the graph is shared."""
    if not isinstance(model, OpenVinoEncoder):
        return cast(BaseEmbedding, model)
    form = OpenVinoEmbedding(
        folder=str(model.folder), model_name=model.model_name, precision=model.precision
    )
    vars(form)["encoder"] = model
    return form
