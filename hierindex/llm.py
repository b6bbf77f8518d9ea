"""Language models by name, behind any OpenAI-compatible address, and how they fail."""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any, Literal

import httpx
from llama_index.core.llms import LLM
from tenacity.wait import wait_random_exponential

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
# Modules of clients, with the base class of their errors.
CLIENTS = (
    ("openai", "OpenAIError"),
    ("anthropic", "AnthropicError"),
    ("groq", "GroqError"),
    ("ollama", "ResponseError"),
    ("mistralai.models", "SDKError"),
    ("cohere.core", "ApiError"),
    ("google.genai.errors", "APIError"),
    ("google.api_core.exceptions", "GoogleAPIError"),
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
)
SHAPING = ("temperature", "system_prompt", "reasoning_effort", "top_p", "seed", "max_tokens")
SECRET = re.compile("(?i)key|token|secret|password|credential|header|url|base")
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
        Without retries of its own, which would be counted nowhere.

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


def load_client() -> None:
    """Import what OpenAI's client imports at its first request, so that it is not timed with it."""
    if "openai" in sys.modules:
        import_module("openai.resources.chat.completions")


def without_retries(llm: LLM, timeout: float) -> LLM:
    """The model, or a copy whose client neither tries again by itself nor waits longer.

    What a client tries again is counted nowhere, and each of its requests would be several.
    """
    changes: dict[str, Any] = {}
    if getattr(llm, "max_retries", 0):
        changes["max_retries"] = 0
    if (getattr(llm, "timeout", None) or 0) > timeout:
        changes["timeout"] = timeout
    if not changes:
        return llm
    copy = llm.model_copy(update=changes)
    for name, client in (copy.__pydantic_private__ or {}).items():
        if hasattr(client, "with_options"):  # of OpenAI's kind, made before
            setattr(copy, name, client.with_options(**changes))
    return copy


def shaping(llm: LLM) -> dict[str, Any]:
    """The settings of a model that shape what it writes; no address and no secret."""
    described = {key: getattr(llm, key, None) for key in SHAPING}
    extra = getattr(llm, "additional_kwargs", None) or {}
    described |= {key: value for key, value in extra.items() if not SECRET.search(key)}
    return {key: value for key, value in described.items() if value is not None}


@dataclass(frozen=True)
class Failure:
    """What the failure of a request means.

    Parameters
    ----------
    kind : {"again", "busy", "gone", "final", "text", "length"}
        Another attempt may succeed; it may when the service has had a pause; nothing answers at
        the address; no request will succeed; none for this text; none for a text so long.
    reason : str
    pause : float
        Seconds that the service asks to be left alone; 0 where it does not say.
    """

    kind: Literal["again", "busy", "gone", "final", "text", "length"]
    reason: str
    pause: float = 0.0


def failure_of(error: Exception) -> Failure:
    """What an error of a client means for the text, and for all others."""
    status, code = _status(error), _code(error)
    if status is None:
        if reason := refusal(error):
            return Failure("gone", reason)
        timed_out = isinstance(error, TimeoutError) or "timed out" in str(error).lower()
        return Failure("again", "the service did not answer in time" if timed_out else str(error))
    if status in (400, 413, 422) and (code in TOO_LONG or TOO_LONG_SAID.search(str(error))):
        return Failure("length", "it is too long for the model")
    if code in FILTERED:
        return Failure("text", "the service refuses this text")
    if reason := refusal(error):
        return Failure("final", reason)
    pause = _retry_after(error)
    busy = status == 429 or (status == 503 and pause)
    return Failure(
        "busy" if busy else "again", f"the service answered with HTTP status {status}", pause
    )


def service_errors() -> tuple[type[Exception], ...]:
    """What clients raise when a service fails, of those that are imported."""
    modules = ((sys.modules.get(module), name) for module, name in CLIENTS)
    found = (getattr(module, name, None) for module, name in modules if module is not None)
    return (OSError, httpx.HTTPError, *(kind for kind in found if isinstance(kind, type)))


def refusal(error: Exception) -> str | None:
    """Why asking again or asking for another text is of no use; None if it may be."""
    status = _status(error)
    if status is None:
        if not any(isinstance(cause, httpx.ConnectError) for cause in _causes(error)):
            return None
        url = _url(error)
        where = "its address" if url is None else f"{url.scheme}://{url.netloc.decode()}"
        return f"nothing answers at {where}, start the service or correct the address"
    if _code(error) in USED_UP:
        return "the quota is used up"
    if status in TRY_AGAIN or status >= 500:
        return None
    meaning = MEANING.get(status, "the request is refused")
    return f"the service answered with HTTP status {status}, {meaning}"


def refuses_all(error: BaseException | None) -> bool:
    """Whether a service's error is of the service, and not of what it was asked."""
    status = _status(error) if error is not None else None
    return error is not None and (status is None or status in MEANING or _code(error) in USED_UP)


def _url(error: Exception) -> httpx.URL | None:
    try:
        return getattr(getattr(error, "request", None), "url", None)
    except RuntimeError:  # httpx's, for an error without a request
        return None


def _retry_after(error: Exception) -> float:
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


def _status(error: BaseException) -> int | None:
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
