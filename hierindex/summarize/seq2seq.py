"""Abstractive summaries by Hugging Face sequence-to-sequence models."""

import json
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from hierindex.core.identity import digest
from hierindex.models.load import accelerator, fastest_dtype, load_transformer
from hierindex.models.record import Usage
from hierindex.summarize.summary import Resources
from hierindex.summarize.two_stage import Rewrite
from hierindex.text.sentences import split_sentences

DEFAULT_SEQ2SEQ_MODEL = "facebook/bart-large-cnn"
CPU_SEQUENCES = 4  # texts times beams per batch, measured with bart-large
GPU_SEQUENCES = 64  # likewise, on an H200, where bart-large takes 3.8 GiB; more is faster
ONE_BEAM = {"early_stopping": None, "length_penalty": None}  # or transformers warns about them


class Seq2SeqRewriter:
    """A rewriter that uses transformers' `AutoModelForSeq2SeqLM`, in batches.

    A text that exceeds the model's window is summarised in parts, and the summaries of the parts
    are summarised again until they fit; nothing is truncated. If the model's configuration has a
    prefix for summaries, like T5's, it is prepended to every text. Texts of similar length are
    batched together.

    Parameters
    ----------
    model_name : str
        Name on the Hugging Face hub, or a local folder; "facebook/bart-large-cnn" by default.
    batch_size : int, optional
        Maximum number of texts in a batch, at least 1. By default `max(1, 64 // num_beams)` on an
        accelerator, and `max(1, 4 // num_beams)` on a CPU.
    num_beams : int
        Number of beams, at least 1; 4 by default; 1 decodes greedily.
    device : str, optional
        Name of a torch device; by default an accelerator if there is one, else "cpu". The
        model runs in bfloat16 on a GPU that supports it, in float32 elsewhere.

    Raises
    ------
    ModelError
        If the model cannot be loaded.
    """

    def __init__(
        self,
        model_name: str = DEFAULT_SEQ2SEQ_MODEL,
        *,
        batch_size: int | None = None,
        num_beams: int = 4,
        device: str | None = None,
    ) -> None:
        self.name = model_name
        self.num_beams = num_beams
        self.device: str = device or accelerator() or "cpu"
        sequences = CPU_SEQUENCES if self.device == "cpu" else GPU_SEQUENCES
        self.batch_size: int = batch_size or max(1, sequences // num_beams)
        model, self._tokenizer = load_transformer(
            "AutoModelForSeq2SeqLM",
            model_name,
            f"Summariser {model_name!r} cannot be loaded, neither from a local folder nor from the "
            "hub. Pass a sequence-to-sequence model, or 'extractive'.",
            dtype=fastest_dtype(self.device),
        )
        self._model = model.to(self.device).eval()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments that load the model, on the device of the other process."""
        return partial(type(self), num_beams=self.num_beams), (self.name,)

    @cached_property
    def window(self) -> int:
        """Maximum number of tokens that the model reads."""
        limits = (
            self._tokenizer.model_max_length,
            getattr(self._model.config, "max_position_embeddings", None),
        )
        return min([limit for limit in limits if limit and limit < 1_000_000], default=512)

    @cached_property
    def prefix(self) -> str:
        """Prefix that the model expects before every text; empty for most models."""
        tasks = getattr(self._model.config, "task_specific_params", None) or {}
        return str(tasks.get("summarization", {}).get("prefix") or "")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine a rewrite.

        Device and batch size are left out, so rewrites stay valid on another machine.
        """
        return {"seq2seq": self.name, "num_beams": self.num_beams}

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """Return one rewrite for each text, in order; rewrites are cached as each batch finishes.

        Parameters
        ----------
        texts : Sequence[str]
        max_tokens : int
            Maximum number of the model's tokens in a rewrite, special tokens included; limited
            to a third of the window.
        resources : Resources, optional

        Returns
        -------
        list[Rewrite]
            `text` is None if the model wrote nothing, or did not shorten a text that exceeds its
            window.
        """
        resources = resources or Resources()
        limit = min(max_tokens, self.window // 3)  # shorter than the parts
        completions = resources.completions
        nothing, rewrites = Rewrite(None, reason="it wrote nothing"), dict[str, Rewrite]()
        keys = {text: self._key(text, limit) for text in texts if text.strip()}
        for text, key in keys.items():
            if known := completions.recall(key):
                rewrites[text] = Rewrite(known, Usage(cached_summaries=1), key=key)
        missing = sorted((text for text in keys if text not in rewrites), key=self._count)[::-1]
        resources.progress("summarize", len(rewrites), len(keys))
        for start in range(0, len(missing), self.batch_size):
            batch = missing[start : start + self.batch_size]
            condensed = [self._condensed(text, limit) for text in batch]
            for text, output in zip(batch, self._generate(condensed, limit), strict=True):
                rewrites[text] = Rewrite(output, key=keys[text]) if output else nothing
                if output:
                    completions.keep(keys[text], output)
            resources.progress("summarize", len(rewrites), len(keys))
        return [rewrites.get(text, nothing) for text in texts]

    def _condensed(self, text: str, max_tokens: int) -> str:
        """Replace a text that exceeds the window by the summaries of its parts, until it fits."""
        while len(parts := self._parts(text)) > 1:
            shorter = " ".join(filter(None, self._generate(parts, max_tokens)))
            if self._count(shorter) >= self._count(text):
                return ""
            text = shorter
        return text

    def _count(self, text: str) -> int:
        return len(self._encoded([text])["input_ids"][0])

    def _encoded(self, texts: Sequence[str], **settings: Any) -> Any:
        return self._tokenizer([self.prefix + text for text in texts], verbose=False, **settings)

    def _parts(self, text: str) -> list[str]:
        """Split a text at sentences into parts that fit the window, halving longer sentences."""
        if self._count(text) <= self.window:
            return [text]
        parts: list[str] = []
        queue = [sentence.text for sentence in split_sentences(text)][::-1]
        while queue:
            sentence = queue.pop()
            if self._count(sentence) > self.window and len(sentence) > 1:
                middle = len(sentence) // 2
                queue += [sentence[middle:], sentence[:middle]]
            elif parts and self._count(f"{parts[-1]} {sentence}") <= self.window:
                parts[-1] += f" {sentence}"
            else:
                parts.append(sentence)
        return parts

    def _key(self, text: str, max_tokens: int) -> str:
        shaped_by = json.dumps(self.to_dict(), sort_keys=True)
        return digest("seq2seq", shaped_by, str(max_tokens), text)

    def _generate(self, texts: Sequence[str], max_tokens: int) -> list[str]:
        """Return the model's output for each text, in batches; "" for a blank text."""
        import torch

        self._model.generation_config.update(
            max_length=None,
            min_length=None,
            max_new_tokens=max_tokens,
            min_new_tokens=0,  # a minimum makes models invent facts about short texts
            num_beams=self.num_beams,
            do_sample=False,
            **(ONE_BEAM if self.num_beams == 1 else {}),
        )
        outputs = dict.fromkeys(texts, "")
        asked = [text for text in outputs if text.strip()]
        for start in range(0, len(asked), self.batch_size):
            batch = asked[start : start + self.batch_size]
            inputs = self._encoded(batch, return_tensors="pt", padding=True).to(self.device)
            with torch.inference_mode():
                ids = self._model.generate(
                    inputs["input_ids"], attention_mask=inputs["attention_mask"]
                )
            written = self._tokenizer.batch_decode(ids, skip_special_tokens=True)
            outputs |= {text: output.strip() for text, output in zip(batch, written, strict=True)}
        return [outputs[text] for text in texts]
