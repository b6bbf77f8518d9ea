"""Sentence vectors out of the very pass that embeds the text around them."""

from collections.abc import Collection, Sequence
from typing import Self

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from hierindex.core.membership import Floats1d, Floats2d
from hierindex.embed.onnx import OnnxEmbedding, Part
from hierindex.errors import InputError
from hierindex.summarize.sentences import split_sentences
from hierindex.summarize.vectors import Pool, unit


class PooledEmbedding(OnnxEmbedding):
    """An embedding model that remembers the sentences of the texts that it embeds.

    It is an embedding model and `SentenceVectors`: given to a hierarchy as its embed_model
    and to `SalientSentences` as its vectors, it compares sentences by the mean vectors of
    their tokens in the last pass that had them, which costs no pass of its own. So it embeds
    every chunk in every build, and no vector is kept beside the index. Until
    the parents of a level are written it remembers every sentence below: some ten vectors a
    chunk.
    """

    _known: dict[str, Floats1d] = PrivateAttr(default_factory=dict)

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "PooledEmbedding"

    @classmethod
    def of_model(cls, embed_model: BaseEmbedding) -> Self:
        """The same model, remembering.

        Raises
        ------
        InputError
            If it does not run on ONNX Runtime, which alone gives tokens' vectors.
        """
        if not isinstance(embed_model, OnnxEmbedding):
            raise InputError(
                "Sentences are pooled from a model on ONNX Runtime, as load_embed_model gives it "
                f"on a CPU, got {type(embed_model).__name__}."
            )
        return cls(folder=embed_model.folder, model_name=embed_model.model_name)

    @property
    def name(self) -> str:
        """Of the vectors, among what shapes a summary."""
        return f"pooled from {self.model_name}"

    @property
    def fingerprint(self) -> str | None:
        """None: a vector that is kept elsewhere would leave its sentences unknown."""
        return None

    def of(self, pools: Sequence[Pool]) -> list[Floats2d]:
        """(n_sentences, n_dims) unit rows of each pool; what was in no text gets a pass."""
        known = self._known
        new = sorted({sentence for pool in pools for sentence in pool} - known.keys())
        known = known | self._parts(new, [[(0, len(sentence))] for sentence in new])[1]
        self._known = known
        nothing = np.zeros(max(map(len, known.values()), default=1), dtype=np.float32)
        rows = [[known.get(sentence, nothing) for sentence in pool] for pool in pools]
        return [unit(np.array(found)) if found else np.zeros((0, 1)) for found in rows]

    def keep(self, sentences: Collection[str]) -> None:
        """Forget the vectors of all others."""
        known = self._known
        self._known = {sentence: known[sentence] for sentence in sentences if sentence in known}

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        bounds = [[(s.quote.at, s.quote.to) for s in split_sentences(text)] for text in texts]
        vectors, parts = self._parts(texts, bounds)
        self._known = {**self._known, **parts}
        return [vector.tolist() for vector in vectors]

    def _parts(
        self, texts: Sequence[str], bounds: Sequence[Sequence[Part]]
    ) -> tuple[list[Floats1d], dict[str, Floats1d]]:
        """Vectors of texts, and those of their parts that the model read."""
        found = self.embed_with_parts(texts, bounds)
        return [vector for vector, _ in found], {
            text[start:end]: row
            for text, parts, (_, rows) in zip(texts, bounds, found, strict=True)
            for (start, end), row in zip(parts, rows, strict=True)
            if row.any()
        }
