"""Cross-encoders, which read a question and a text together and score how well they match."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from hierindex.embed.openvino import Exported, without_surrogates
from hierindex.embed.runtime import Precision


class Reranker(Protocol):
    """Scores texts for a question."""

    def rank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a finite score for each text, on any scale, higher for better ones."""
        ...


class OpenVinoCrossEncoder:
    """An exported cross-encoder, which `load_reranker` returns; scores are logits.

    Parameters
    ----------
    folder : Path
        Contains the graph, the tokenizer and the card of an export.
    precision : {"bfloat16", "float32"}
    """

    def __init__(self, folder: Path, precision: Precision) -> None:
        self._exported = Exported(folder, precision)

    def rank(self, question: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker`."""
        return [score for (score,) in self._exported.results(texts, question)]


class TorchCrossEncoder:
    """A cross-encoder on torch; scores are logits.

    Parameters
    ----------
    model : CrossEncoder
    model_name : str
        Name under which the model was loaded.
    """

    def __init__(self, model: Any, model_name: str) -> None:
        self._model = model
        self.model_name = model_name
        self.max_length = model.max_seq_length

    def rank(self, question: str, texts: Sequence[str]) -> list[float]:
        """See `Reranker`."""
        import torch

        pairs = [(without_surrogates(question), without_surrogates(text)) for text in texts]
        logits = torch.nn.Identity()
        scores = self._model.predict(pairs, activation_fn=logits, show_progress_bar=False)
        return [float(score) for score in scores]
