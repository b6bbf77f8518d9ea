"""Export of sentence-transformers models to OpenVINO, cached in the user's cache folder."""

import hashlib
import logging
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from platformdirs import user_cache_path

from hierindex.core.arguments import Floats2d
from hierindex.loading import quiet
from hierindex.models.embedder import unit_vectors
from hierindex.models.model import EmbedModel
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

logger: logging.Logger = logging.getLogger(__name__)
FORMAT = 7  # of the export; a new number makes a new export, whose vectors are not cached yet
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

    names = "GeneralFailure InitializationFailure NotImplementedFailure OpConversionFailure"
    return tuple(getattr(frontend, name) for name in [*names.split(), "OpValidationFailure"])


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
