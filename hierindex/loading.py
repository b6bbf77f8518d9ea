"""Loading of Hugging Face models and of libraries that are installed with an extra."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hierindex.errors import InputError, ModelError

TALKATIVE = ("huggingface_hub", "sentence_transformers", "transformers", "torch.export")
EXTRAS = {
    "langchain": {"langchain_core"},
    "plot": {"plotly"},
    "serve": {"anyio", "mcp", "mcp_types", "starlette", "uvicorn"},
}


@contextmanager
def loading(message: str) -> Iterator[None]:
    """Turn a failure to load a Hugging Face model into a ModelError, and silence its libraries.

    Parameters
    ----------
    message : str
        Of the error: what cannot be loaded, and how to mend it.

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
    """A model of one of transformers' auto classes, by name or folder, and its tokenizer.

    Raises
    ------
    ModelError
        With this message, if the model is not there or not whole.
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

    Checked here because the hub's client retries for over a minute before it uses its cache.
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


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Name an extra if an import fails because it is not installed.

    Parameters
    ----------
    name : str
        Of the extra.
    what : str
        The beginning of the error, such as "The explorer needs".

    Raises
    ------
    InputError
        If a library of the extra cannot be imported.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS[name]:
            raise
        raise InputError(f"{what} `pip install 'hierindex[{name}]'`.") from error
