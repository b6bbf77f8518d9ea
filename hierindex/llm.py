"""Language models by name, behind any OpenAI-compatible address, and how they fail."""

import os
from collections.abc import Iterator
from typing import Any

import httpx
from llama_index.core.llms import LLM
from tenacity import retry_if_exception, stop_after_attempt
from tenacity.wait import wait_base, wait_random_exponential

from hierindex.errors import ModelError

KEY = "HIERINDEX_LLM_API_KEY"  # our own: a key of OpenAI's must not go to another's server
CONTEXT_WINDOW = 8192
MEANING = {
    401: "the key is missing or wrong",
    403: "the key may not use it",
    404: "there is no such model or path",
}
ATTEMPTS = 4
WAIT = wait_random_exponential(multiplier=0.5, max=20)
TRY_AGAIN = frozenset({408, 409, 429})  # HTTP statuses; so is any from 500 on


def load_llm(model: str, base_url: str) -> LLM:
    """A model of an OpenAI-compatible server; its key comes from the environment alone.

    Parameters
    ----------
    model : str
    base_url : str
        Such as `http://localhost:8000/v1`.

    Returns
    -------
    LLM
        Without retries of its own, which would be counted nowhere: see `retrying`.

    Raises
    ------
    ModelError
        If `llama-index-llms-openai-like` is not installed.
    """
    try:
        from llama_index.llms.openai_like import OpenAILike
    except ModuleNotFoundError as error:
        raise ModelError("Language models need `pip install 'hierindex[llm]'`.") from error
    llm: LLM = OpenAILike(
        model=model,
        api_base=base_url,
        api_key=os.environ.get(KEY, "none"),
        is_chat_model=True,
        context_window=CONTEXT_WINDOW,
        max_retries=0,
    )
    return llm


def retrying(wait: wait_base = WAIT) -> dict[str, Any]:
    """How a request that may pass is tried again, for tenacity."""
    return {
        "retry": retry_if_exception(may_pass),
        "stop": stop_after_attempt(ATTEMPTS),
        "wait": wait,
        "reraise": True,
    }


def service_errors() -> tuple[type[Exception], ...]:
    """What clients raise when a service fails, OpenAI's client included where it is installed."""
    try:
        import openai
    except ModuleNotFoundError:
        return (OSError, httpx.HTTPError)
    return (OSError, httpx.HTTPError, openai.OpenAIError)


def may_pass(error: BaseException) -> bool:
    """Whether another attempt may succeed."""
    if not isinstance(error, service_errors()):
        return False
    status = getattr(error, "status_code", None)
    return status is None or status in TRY_AGAIN or status >= 500


def refusal(error: Exception) -> str | None:
    """Why asking again or asking for another text is of no use; None if it may be."""
    status = getattr(error, "status_code", None)
    if status is None:
        if not any(isinstance(cause, httpx.ConnectError) for cause in _causes(error)):
            return None
        url = getattr(getattr(error, "request", None), "url", None)
        where = "its address" if url is None else f"{url.scheme}://{url.netloc.decode()}"
        return f"nothing answers at {where}, start the service or correct the address"
    if may_pass(error):
        return None
    meaning = MEANING.get(status, "the request is refused")
    return f"the service answered with HTTP status {status}, {meaning}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
