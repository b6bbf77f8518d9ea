"""Language models by name, behind any OpenAI-compatible address, and how they fail."""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
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
    402: "the account has no credit",
    403: "the key may not use it",
    404: "there is no such model or path",
}
ATTEMPTS = 5
WAIT = wait_random_exponential(multiplier=0.5, max=20)
TRY_AGAIN = frozenset({408, 409, 429})  # HTTP statuses; so is any from 500 on
TIMEOUT = 120.0  # seconds of a request
# Codes of OpenAI's errors, which compatible servers use as well, and what others say instead.
USED_UP = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
FILTERED = frozenset({"content_filter", "content_policy_violation"})
TOO_LONG = frozenset({"context_length_exceeded", "string_above_max_length", "tokens_exceeded"})
TOO_LONG_SAID = re.compile(
    r"(?i)context.{,20}(?:length|window|size)|(?:prompt|input|request).{,20}too (?:long|large)"
    r"|too many (?:input )?tokens|reduce the length"
)


def load_llm(
    model: str, base_url: str, *, timeout: float = TIMEOUT, completion_tokens: int | None = None
) -> LLM:
    """A model of an OpenAI-compatible server; its key comes from the environment alone.

    Parameters
    ----------
    model : str
    base_url : str
        Such as `http://localhost:8000/v1`.
    timeout : float
        Seconds of a request.
    completion_tokens : int, optional
        Most tokens of an answer, its thinking included; by default the caller's choice.

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
        timeout=timeout,
        max_tokens=completion_tokens,
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
    if not isinstance(error, service_errors()) or _code(error) in USED_UP:
        return False
    status = status_of(error)
    return status is None or status in TRY_AGAIN or status >= 500


def refusal(error: Exception) -> str | None:
    """Why asking again or asking for another text is of no use; None if it may be."""
    status = status_of(error)
    if status is None:
        if not any(isinstance(cause, httpx.ConnectError) for cause in _causes(error)):
            return None
        url = getattr(getattr(error, "request", None), "url", None)
        where = "its address" if url is None else f"{url.scheme}://{url.netloc.decode()}"
        return f"nothing answers at {where}, start the service or correct the address"
    if may_pass(error):
        return None
    meaning = "the quota is used up" if _code(error) in USED_UP else MEANING.get(status)
    return f"the service answered with HTTP status {status}, {meaning or 'the request is refused'}"


def is_too_long(error: Exception) -> bool:
    """Whether the service says that the prompt is longer than the model reads."""
    if status_of(error) not in (400, 413, 422):
        return False
    return _code(error) in TOO_LONG or bool(TOO_LONG_SAID.search(str(error)))


def is_filtered(error: Exception) -> bool:
    """Whether the service refuses this one text, for what it says."""
    return _code(error) in FILTERED


def retry_after(error: Exception) -> float:
    """Seconds that the service asks to be left alone; 0 where it does not say."""
    said = getattr(getattr(error, "response", None), "headers", {}).get("retry-after", "")
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return 0.0


def status_of(error: BaseException) -> int | None:
    """The HTTP status that the service answered with; None where it did not answer."""
    status = getattr(error, "status_code", None)
    return status or getattr(getattr(error, "response", None), "status_code", None)


def _code(error: BaseException) -> str | None:
    code = getattr(error, "code", None)
    return code if isinstance(code, str) else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
