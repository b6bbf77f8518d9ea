"""Grounding by natural language inference: whether the sources entail a sentence."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hierindex.core.arguments import is_number, is_whole, require
from hierindex.device import accelerator
from hierindex.errors import ModelError
from hierindex.loading import load_transformer
from hierindex.summarize.grounding import Pair, Support, support_by_words
from hierindex.summarize.known import Embed

ENTAILED = 0.5  # probability
WINDOW = 512  # tokens, if a model names no limit


class NliGrounding:
    """A grounding by a cross-encoder that predicts whether the sources entail a sentence.

    It is much slower than `EmbeddingGrounding`, but detects negations and wrong numbers.

    Parameters
    ----------
    model_name : str
        A sequence classification model with a label "entailment", by its name on the hub or
        its local folder, such as `cross-encoder/nli-deberta-v3-base`.
    threshold : float in (0, 1)
        Probability of entailment from which a sentence is supported, inclusive.
    batch_size : int
    device : str, optional
        Name of a torch device; by default an accelerator if there is one.

    Raises
    ------
    InputError
        If a number is out of range.
    ModelError
        If the model cannot be loaded, or has no such label.

    Notes
    -----
    The premise consists of the sources with the most similar words, in reading order, truncated
    to the model's window. A sentence that fills the window by itself counts as not entailed.
    """

    def __init__(
        self,
        model_name: str,
        *,
        threshold: float = ENTAILED,
        batch_size: int = 32,
        device: str | None = None,
    ) -> None:
        within = is_number(threshold) and 0 < threshold < 1
        require(within, "threshold", "between 0 and 1", threshold)
        require(is_whole(batch_size, 1), "batch_size", "an integer of at least 1", batch_size)
        self.model_name = model_name
        self.threshold = threshold
        self.batch_size = batch_size
        self.device = device or accelerator() or "cpu"
        model, self._tokenizer = load_transformer(
            "AutoModelForSequenceClassification",
            model_name,
            f"NLI model {model_name!r} cannot be loaded, neither from a local folder nor from the "
            "hub. Pass a sequence classification model, or omit it.",
        )
        self._model = model.to(self.device).eval()
        labels = {str(name).lower(): i for i, name in model.config.id2label.items()}
        if "entailment" not in labels:
            raise ModelError(
                f"NLI model {model_name!r} must have a label 'entailment', got {sorted(labels)}."
            )
        self._entailment = labels["entailment"]
        positions = getattr(model.config, "max_position_embeddings", None)
        self._window = min(self._tokenizer.model_max_length, positions or WINDOW)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine the result."""
        return {"type": "nli", "model": self.model_name, "threshold": self.threshold}

    def support(self, pairs: Sequence[Pair], embed: Embed | None) -> list[Support]:
        """Return the support of each pair's summary."""
        supports = support_by_words(pairs)
        asked = [
            (" ".join(sources[j] for j in sorted(rows)), sentence)
            for (sentences, sources), support in zip(pairs, supports, strict=True)
            for sentence, rows in zip(sentences, support.sources, strict=True)
        ]
        carried = self._probabilities(asked) >= self.threshold
        ends = np.cumsum([len(sentences) for sentences, _ in pairs])[:-1]
        parts = np.split(carried, ends) if supports else []
        return [replace(s, carried=part) for s, part in zip(supports, parts, strict=True)]

    def _probabilities(self, asked: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return the probability that each premise entails its hypothesis, (n_asked,)."""
        import torch

        probabilities = np.zeros(len(asked))
        room = self._window - self._tokenizer.num_special_tokens_to_add(pair=True)
        fits = [n < room for n in self._counts([hypothesis for _, hypothesis in asked])]
        order = sorted((i for i, fit in enumerate(fits) if fit), key=lambda i: -len(asked[i][0]))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            premises, hypotheses = zip(*(asked[i] for i in batch), strict=True)
            inputs = self._tokenizer(
                list(premises),
                list(hypotheses),
                padding=True,
                truncation="only_first",
                max_length=self._window,
                return_tensors="pt",
            ).to(self.device)
            with torch.inference_mode():
                logits = self._model(**inputs).logits.float()
            probabilities[batch] = logits.softmax(dim=-1)[:, self._entailment].cpu().numpy()
        return probabilities

    def _counts(self, texts: list[str]) -> list[int]:
        """Return the number of tokens of each text, without special tokens."""
        if not texts:
            return []
        tokens = self._tokenizer(texts, add_special_tokens=False, verbose=False)
        return [*map(len, tokens["input_ids"])]
