"""Language models from settings."""

from typing import TYPE_CHECKING

from hierindex.errors import InputError
from hierindex.settings import Settings

if TYPE_CHECKING:
    from llama_index.core.llms import LLM


def llm_of(settings: Settings) -> "LLM | None":
    """Return the language model that the settings name, if any."""
    if settings.llm is None:
        return None
    if settings.llm_base_url is None:
        raise InputError("--llm needs --llm-base-url; there is no default address.")
    from hierindex.llm.client import load_llm

    return load_llm(
        settings.llm,
        settings.llm_base_url,
        timeout=settings.llm_timeout,
        completion_tokens=settings.llm_completion_tokens,
    )


def served_llm_of(settings: Settings) -> "LLM | None":
    """Return the model of `llm_of` for queries, with limited concurrency."""
    from hierindex.llm.served import served

    llm = llm_of(settings)
    return None if llm is None else served(llm, concurrency=settings.llm_concurrency)
