"""Classification of the errors that clients of models raise, and their messages."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal

from hierindex.errors import HierindexError, ModelError, without_password

if TYPE_CHECKING:
    import httpx

MEANING = {
    401: "the key is missing or wrong",
    402: "the account has no credit",
    403: "the key does not give access to it",
    404: "there is no such model or path",
}
TRY_AGAIN = frozenset({408, 409, 429})  # HTTP statuses, besides 500 and above
CLIENTS = (  # modules and the base classes of their errors
    ("httpx", "HTTPError"),
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
# Raised by clients for unexpected answers, such as a proxy's HTML page.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError)
# In the codes of OpenAI and compatible servers, and in messages.
USED_UP = re.compile("insufficient_quota|billing_hard_limit")
FILTERED = re.compile("content_(?:filter|policy)")
TOO_LONG = re.compile(
    r"(?i)context.{,20}(?:length|window|size)|(?:prompt|input|request).{,20}too (?:long|large)"
    r"|too many (?:input )?tokens|reduce the length|exceeds? the max.{,20}tokens|above_max_length"
)
KEYS = ("authorization", "api-key", "x-api-key")  # headers
LEAST_KEY = 8  # characters; "Bearer" and "none" are no keys
MASKED = re.compile(r"\bsk-\S+|\S*\*{3}\S*")  # a key that a service repeats in part
MOST_SAID = 300  # characters of a service's reason
TIMED_OUT = "the service did not answer in time"
MEND = {
    "length": "; lower token_budget (--token-budget)",
    "busy": "; try again later, a build resumes where it stopped",
}


@dataclass(frozen=True)
class Failure:
    """The meaning of a failed request.

    Parameters
    ----------
    kind : {"again", "unusable", "busy", "gone", "final", "text", "length"}
        * "again": another attempt may succeed.
        * "unusable": likewise, but the service has answered.
        * "busy": another attempt may succeed after a pause.
        * "gone": nothing answers at the service's address.
        * "final": no request will succeed.
        * "text": no request with this text will succeed.
        * "length": the text is too long for the model.
    reason : str
    pause : float
        Seconds from the service's Retry-After header, or 0.
    """

    kind: Literal["again", "unusable", "busy", "gone", "final", "text", "length"]
    reason: str
    pause: float = 0.0


class RequestError(HierindexError):
    """A request failed after all retries, though other requests may succeed; `failure` says why."""

    def __init__(self, model: str, failure: Failure) -> None:
        super().__init__(f"{model} failed to answer: {failure.reason}{MEND.get(failure.kind, '')}.")
        self.failure = failure


def error_of(model: str, failure: Failure) -> HierindexError:
    """Return a `ModelError` if no request will succeed, otherwise a `RequestError`.

    `model` is the subject of the message, for example "LLM 'm'".
    """
    if failure.kind in ("gone", "final"):
        return ModelError(f"{model} cannot be used: {failure.reason}.")
    return RequestError(model, failure)


def failure_of(error: Exception) -> Failure:
    """Classify a client's error."""
    if not isinstance(error, service_errors()):
        told = f"what it sent is no completion ({type(error).__name__}: {_said(error)})"
        return Failure("again", f"{told}; check its address")
    status, said = _status(error), _reason(error)
    whole = f"{error} {getattr(error, 'code', '')} {said}"
    if status != 429 and TOO_LONG.search(whole):
        return Failure("length", f"the prompt is too long for it{said and f' ({said})'}")
    if status is None:
        return _unanswered(error, said)
    if FILTERED.search(whole):
        return Failure("text", "the service refuses this text")
    if USED_UP.search(whole):
        return Failure("final", "the quota is used up")
    told = f"the service answered with HTTP status {status}"
    if status not in TRY_AGAIN and status < 500:
        said = said if status != 401 else ""  # which may repeat the key
        meaning = MEANING.get(status, "the request was rejected")
        return Failure("final", f"{told}, {meaning}{said and f': {said}'}")
    pause = _retry_after(error)
    busy = status == 429 or (status == 503 and pause)
    asks = f", and asks for a pause of {pause:.0f} s" if pause else ""
    return Failure("busy" if busy else "again", f"{told}{said and f': {said}'}{asks}", pause)


def _unanswered(error: Exception, said: str) -> Failure:
    import httpx

    if any(isinstance(cause, httpx.ConnectError) for cause in _causes(error)):
        url = _url(error)
        where = "its address" if url is None else f"{url.scheme}://{url.netloc.decode()}"
        reason = f"nothing answers at {where}; start the service or correct its address"
        return Failure("gone", reason)
    if isinstance(error, TimeoutError) or "timed out" in str(error).lower():
        return Failure("again", TIMED_OUT)
    return Failure("again", f"the service answered with an error: {said}" if said else _said(error))


def service_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that imported clients raise if a service fails."""
    modules = ((sys.modules.get(module), name) for module, name in CLIENTS)
    kinds = (getattr(module, name, None) for module, name in modules if module is not None)
    return (OSError, *(kind for kind in kinds if isinstance(kind, type)))


def request_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that clients raise if a request fails or its answer is unreadable."""
    return (*UNREADABLE, *service_errors())


def refuses_all(error: BaseException | None) -> bool:
    """Return whether any text would cause the error, because it concerns the service."""
    status = _status(error) if error is not None else None
    return error is not None and (
        status is None or status in MEANING or USED_UP.search(str(error)) is not None
    )


def reason_in(body: Any) -> str:
    """Return the reason in the body of an error; empty if it has none or is a web page.

    >>> reason_in({"error": {"message": "No such model."}}), reason_in({"detail": "Busy."})
    ('No such model.', 'Busy.')
    >>> reason_in({"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs"}]})
    'temperature: Extra inputs'
    """
    if isinstance(body, list):
        return reason_in(body[0]) if body else ""
    if isinstance(body, dict):
        if body.get("loc") and body.get("msg"):  # of FastAPI
            return f"{body['loc'][-1]}: {body['msg']}"
        told = (reason_in(body.get(key)) for key in ("message", "error", "detail", "msg"))
        return next(filter(None, told), "")
    return body if isinstance(body, str) and not body.lstrip().startswith("<") else ""


def _reason(error: Exception) -> str:
    """Return the reason that a service gives, on one line and without the key."""
    said = reason_in(getattr(error, "body", None))
    headers = getattr(getattr(error, "request", None), "headers", {}) if said else {}
    for key in " ".join(headers.get(name, "") for name in KEYS).split():
        said = said.replace(key, "[key]") if len(key) >= LEAST_KEY else said
    said = MASKED.sub("[key]", without_password(said))
    return shorten(said, MOST_SAID, placeholder="...").rstrip(".")


def _said(error: Exception) -> str:
    """Return the first line of an error's message; later lines may quote texts."""
    return without_password(str(error).strip().partition("\n")[0].rstrip("."))


def _url(error: Exception) -> "httpx.URL | None":
    try:
        return getattr(getattr(error, "request", None), "url", None)
    except RuntimeError:  # httpx's, for an error without a request
        return None


def _retry_after(error: Exception) -> float:
    """Return the seconds in the Retry-After header, or 0 if it has none or a date."""
    header = getattr(getattr(error, "response", None), "headers", {}).get("retry-after", "")
    return float(header) if re.fullmatch(r"\d+(\.\d+)?", header) else 0.0


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of the answer, or None if there was no answer."""
    status = getattr(error, "status_code", None)
    return status or getattr(getattr(error, "response", None), "status_code", None)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
