"""The language model that the settings name."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hierindex.errors import InputError
from hierindex.settings import Settings

if TYPE_CHECKING:
    from llama_index.core.llms import LLM


def llm_of(settings: Settings) -> "LLM | None":
    """The language model that the settings name, if any."""
    if settings.llm is None:
        return None
    if settings.llm_base_url is None:
        raise InputError(
            "--llm needs --llm-base-url: nothing is sent to an address that is not named."
        )
    if urlsplit(settings.llm_base_url).scheme not in ("http", "https"):
        raise InputError(
            "--llm-base-url must be an address such as http://localhost:8000/v1, got "
            f"{settings.llm_base_url!r}."
        )
    from hierindex.llm.client import load_llm

    return load_llm(
        settings.llm,
        settings.llm_base_url,
        timeout=settings.llm_timeout,
        completion_tokens=settings.llm_completion_tokens,
    )


def served_llm_of(settings: Settings) -> "LLM | None":
    """As `llm_of`, for questions: of so many requests at once as the settings say."""
    llm = llm_of(settings)
    if llm is None:
        return None
    from hierindex.llm.served import served

    return served(llm, concurrency=settings.llm_concurrency)
