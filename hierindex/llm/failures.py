"""How a model's service fails, what that means for other requests, and how it is said."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx

from hierindex.errors import HierindexError, ModelError, without_password

MEANING = {
    401: "the key is missing or wrong",
    402: "the account has no credit",
    403: "the key may not use it",
    404: "there is no such model or path",
}
TRY_AGAIN = frozenset({408, 409, 429})  # HTTP statuses; so is any from 500 on
TIMED_OUT = frozenset({408, 504})  # HTTP statuses; the model may have worked meanwhile
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
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError)
"""What clients raise where an answer is not what they expect: a proxy's page, for one."""
# Codes of OpenAI's errors, which compatible servers use as well, and what others say instead.
USED_UP = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
FILTERED = frozenset({"content_filter", "content_policy_violation"})
TOO_LONG = frozenset({"context_length_exceeded", "string_above_max_length", "tokens_exceeded"})
TOO_LONG_SAID = re.compile(
    r"(?i)context.{,20}(?:length|window|size)|(?:prompt|input|request).{,20}too (?:long|large)"
    r"|too many (?:input )?tokens|reduce the length"
)


@dataclass(frozen=True)
class Failure:
    """What the failure of a request means.

    Parameters
    ----------
    kind : {"again", "busy", "gone", "final", "text", "length"}
        * "again": another attempt may succeed.
        * "busy": another attempt may succeed after a pause.
        * "gone": nothing answers at the service's address.
        * "final": no request will succeed.
        * "text": no request with this text will succeed.
        * "length": the text is too long for the model.
    reason : str
    pause : float
        Seconds that the service asks to be left alone; 0 where it does not say.
    """

    kind: Literal["again", "busy", "gone", "final", "text", "length"]
    reason: str
    pause: float = 0.0


class RequestError(HierindexError):
    """A request failed for good; others may succeed. `failure` says why."""

    def __init__(self, model: str, failure: Failure) -> None:
        mend = "; lower token_budget (--token-budget)" if failure.kind == "length" else ""
        super().__init__(f"{model} failed to answer: {failure.reason}{mend}.")
        self.model = model
        self.failure = failure


def error_of(model: str, failure: Failure) -> HierindexError:
    """A failure as one sentence: a `ModelError` if no request will succeed.

    Parameters
    ----------
    model : str
        How the sentence names the model, such as "LLM 'm'".
    failure : Failure
    """
    if failure.kind in ("gone", "final"):
        return ModelError(f"{model} cannot be used: {failure.reason}.")
    return RequestError(model, failure)


def failure_of(error: Exception) -> Failure:
    """What an error of a client means for the text, and for all others."""
    if not isinstance(error, service_errors()):
        return Failure("again", f"it sent no completion ({type(error).__name__}: {_said(error)})")
    status, code = _status(error), _code(error)
    if status is None:
        if reason := refusal(error):
            return Failure("gone", reason)
        timed_out = isinstance(error, TimeoutError) or "timed out" in str(error).lower()
        return Failure("again", "the service did not answer in time" if timed_out else _said(error))
    if status in (400, 413, 422) and (code in TOO_LONG or TOO_LONG_SAID.search(str(error))):
        return Failure("length", "the prompt is too long for it")
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


def request_errors() -> tuple[type[Exception], ...]:
    """What clients raise when a request fails, also for an answer that they cannot read."""
    return (*UNREADABLE, *service_errors())


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


def is_refused(error: Exception) -> bool:
    """Whether the service answered with an HTTP status in the place of work."""
    status = _status(error)
    return status is not None and status >= 400 and status not in TIMED_OUT


def refuses_all(error: BaseException | None) -> bool:
    """Whether a service's error is of the service, and not of what it was asked."""
    status = _status(error) if error is not None else None
    return error is not None and (status is None or status in MEANING or _code(error) in USED_UP)


def _said(error: Exception) -> str:
    """The first line of what an error says; the next ones may quote texts."""
    return without_password(str(error).strip().partition("\n")[0].rstrip("."))


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
