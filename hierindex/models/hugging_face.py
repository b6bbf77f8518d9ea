"""Loading of Hugging Face models, and choice of torch's device and precision."""

import logging
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierindex.errors import ModelError

if TYPE_CHECKING:
    import torch


DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA, NVIDIA under WSL, AMD

TALKATIVE = ("huggingface_hub", "sentence_transformers", "transformers", "torch.export")


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
        Torch's name of the device.
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
