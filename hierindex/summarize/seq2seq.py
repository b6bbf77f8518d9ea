"""A Hugging Face sequence-to-sequence model as the abstractive stage."""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from hierindex.loading import loading, only_local
from hierindex.progress import Progress, silent
from hierindex.summarize.sentences import split_sentences
from hierindex.summarize.summary import Resources
from hierindex.summarize.two_stage import Rewrite

DEFAULT_SEQ2SEQ_MODEL = "facebook/bart-large-cnn"


class Seq2SeqRewriter:
    """Summaries by `AutoModelForSeq2SeqLM`, in length-sorted batches, on a GPU if there is one.

    A text beyond the model's window is summarised in parts, and the parts' summaries
    together again, until what is left fits: nothing is cut.

    Parameters
    ----------
    model_name : str
        A name on the hub or a local folder.
    batch_size : int
    num_beams : int
    device : str, optional
        As torch names it; a GPU if there is one.

    Raises
    ------
    ModelError
        If the model cannot be loaded.
    """

    def __init__(
        self,
        model_name: str = DEFAULT_SEQ2SEQ_MODEL,
        *,
        batch_size: int = 8,
        num_beams: int = 4,
        device: str | None = None,
    ) -> None:
        import torch
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        self.name = model_name
        self.batch_size = batch_size
        self.num_beams = num_beams
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        with loading(
            f"Summariser {model_name!r} cannot be loaded: it is no local folder of a "
            "sequence-to-sequence model, and no hub gave it; give a folder, or 'extractive'."
        ):
            here = {"trust_remote_code": False, "local_files_only": only_local(model_name)}
            self._tokenizer = AutoTokenizer.from_pretrained(model_name, **here)
            model = AutoModelForSeq2SeqLM.from_pretrained(model_name, **here)
        self._model = model.to(self.device).eval()

    @cached_property
    def window(self) -> int:
        """Most tokens that the model reads."""
        limits = (
            self._tokenizer.model_max_length,
            getattr(self._model.config, "max_position_embeddings", None),
        )
        return min([limit for limit in limits if limit and limit < 1_000_000], default=512)

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes a rewrite."""
        return {"seq2seq": self.name, "num_beams": self.num_beams}

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """One rewrite for each text, in order, of at most `max_tokens` of the model's tokens."""
        progress = silent if resources is None else resources.progress
        max_tokens = min(
            max_tokens, self.window // 3
        )  # so that parts' summaries are shorter than they
        current = list(texts)
        n_tokens = [self._count(text) for text in texts]
        over = [i for i, n in enumerate(n_tokens) if n > self.window]
        while over:
            parts = {i: self._parts(current[i]) for i in over}
            written = iter(self._generate([part for i in over for part in parts[i]], max_tokens))
            still_over = []
            for i in over:
                current[i] = " ".join(next(written) for _ in parts[i])
                n = self._count(current[i])
                if (
                    self.window < n < n_tokens[i]
                ):  # a model that makes texts longer is not asked again
                    still_over.append(i)
                n_tokens[i] = n
            over = still_over
        fits = [i for i, n in enumerate(n_tokens) if n <= self.window]
        for i, text in zip(
            fits, self._generate([current[i] for i in fits], max_tokens, progress), strict=True
        ):
            current[i] = text
        return [Rewrite(text or None) for text in current]

    async def arewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """As `rewrite`, in a thread."""
        return await asyncio.to_thread(
            self.rewrite, texts, max_tokens=max_tokens, resources=resources
        )

    def _count(self, text: str) -> int:
        return len(self._tokenizer(text, verbose=False)["input_ids"])

    def _parts(self, text: str) -> list[str]:
        """Whole sentences, as many to a part as the window holds; an endless one is halved."""
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

    def _generate(
        self, texts: Sequence[str], max_tokens: int, progress: Progress = silent
    ) -> list[str]:
        import torch

        self._model.generation_config.update(
            max_length=None,
            min_length=0,
            max_new_tokens=max_tokens,
            min_new_tokens=None,
            num_beams=self.num_beams,
            do_sample=False,
        )
        written = [""] * len(texts)
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            inputs = self._tokenizer(
                [texts[i] for i in batch], return_tensors="pt", padding=True, verbose=False
            ).to(self.device)
            with torch.inference_mode():
                ids = self._model.generate(
                    inputs["input_ids"], attention_mask=inputs["attention_mask"]
                )
            for i, text in zip(
                batch, self._tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True
            ):
                written[i] = text.strip()
            progress("summarize", start + len(batch), len(order))
        return written
