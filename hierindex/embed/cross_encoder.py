"""Cross-encoders, which read a question and a text together and score how well they match."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hierindex.core.membership import Floats2d
from hierindex.embed.onnx import INPUT, TYPES, Exported, without_surrogates
from hierindex.embed.onnx_export import PROBES, Exportable

LONGEST = 8192  # tokens of a question and a text, for models whose window is unknown


class Reranker(Protocol):
    """Scores texts for a question."""

    def rank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a finite score for each text, on any scale, higher for better ones."""
        ...


class OnnxCrossEncoder:
    """An exported cross-encoder, which `load_reranker` returns; scores are logits.

    Parameters
    ----------
    folder : Path
        Contains the graph, the tokenizer and the card of an export.
    """

    def __init__(self, folder: Path) -> None:
        self._exported = Exported(folder)

    def rank(self, question: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker`."""
        return [score for (score,) in self._exported.results(texts, question)]


class TorchCrossEncoder:
    """A cross-encoder on torch; scores are logits.

    Parameters
    ----------
    name : str
        Name under which the model was loaded.
    model : PreTrainedModel
        A sequence classification model with one label.
    tokenizer : PreTrainedTokenizerBase
    """

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        self.name = name
        self.model = model
        self.tokenizer = tokenizer
        positions = getattr(model.config, "max_position_embeddings", None) or LONGEST
        self.window = min(tokenizer.model_max_length, positions, LONGEST)

    def rank(self, question: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker`."""
        import torch

        question, scores = without_surrogates(question), list[float]()
        for text in map(without_surrogates, texts):
            pair = self.tokenizer(
                [(question, text)], truncation=True, max_length=self.window, return_tensors="pt"
            )
            with torch.inference_mode():
                scores.append(self.model(**pair).logits.item())
        return scores


def exportable_cross_encoder(model: TorchCrossEncoder) -> Exportable:
    """Return a cross-encoder as an `Exportable`."""
    names = model.tokenizer.model_input_names
    return Exportable(
        model.name,
        network=model.model,
        result=lambda features: model.model(**features).logits,
        encoder=model.model,
        tokenizer=model.tokenizer,
        window=model.window,
        torch_results=lambda: _scores(model),
        graph_results=lambda folder: _scores(OnnxCrossEncoder(folder)),
        inputs=[name for name in (INPUT, TYPES) if name in names],
    )


def _scores(model: Reranker) -> Floats2d:
    return np.array([model.rank(PROBES[1], PROBES)]).T
