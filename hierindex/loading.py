"""Loading of models that may not be there."""

from collections.abc import Iterator
from contextlib import contextmanager

from hierindex.errors import ModelError


@contextmanager
def loading(message: str) -> Iterator[None]:
    """Load a Hugging Face model, without a bar for the reading of its weights.

    Parameters
    ----------
    message : str
        Of the error; begins with what cannot be loaded and says how to mend it.

    Raises
    ------
    ModelError
        If the model is not there or not whole.
    """
    from safetensors import SafetensorError
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    except (OSError, ValueError, RuntimeError, AttributeError, SafetensorError) as error:
        raise ModelError(message) from error
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
