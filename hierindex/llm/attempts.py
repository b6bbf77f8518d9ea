"""Which failures of a request are tried again, how often, and after how long."""

import time
from dataclasses import replace
from typing import Any, NoReturn

from tenacity import RetryCallState, retry_if_exception
from tenacity.wait import wait_base, wait_random_exponential

from hierindex.llm.checks import UnusableError
from hierindex.llm.failures import Failure, RequestError

ATTEMPTS = 5  # that fail
UNUSABLE = 2  # answers to one prompt; at temperature 0 a third would be no other
LATER = "try again later, a build goes on where it was"
WAIT = wait_random_exponential(multiplier=0.5, max=20)


def attempts(wait: wait_base, max_busy: float) -> dict[str, Any]:
    """What `Retrying` and `AsyncRetrying` take, for one prompt.

    Parameters
    ----------
    wait : wait_base
        Tenacity's, between attempts; a busy service is waited for by `AdaptiveLimit`.
    max_busy : float
        Seconds in which the service may be busy for this prompt, though it answers others.
    """
    n_failed = n_unusable = 0
    busy_since: float | None = None

    def again(error: BaseException) -> bool:
        nonlocal n_failed, n_unusable
        match error:
            case UnusableError():
                n_unusable += 1
                return error.again and n_unusable < UNUSABLE
            case RequestError(failure=Failure(kind="busy")):
                return True  # until `too_long`, or until `Service` gives it up for all prompts
            case RequestError(failure=Failure(kind="again")):
                n_failed += 1
                return n_failed < ATTEMPTS
        return False

    def pause(state: RetryCallState) -> float:
        return wait(state) if _busy(state) is None else 0.0

    def too_long(state: RetryCallState) -> bool:
        nonlocal busy_since
        if (error := _busy(state)) is None:
            return False
        now = time.monotonic()
        busy_since = now if busy_since is None else busy_since
        return now - busy_since + error.failure.pause > max_busy

    def give_up(state: RetryCallState) -> NoReturn:
        error, seconds = _busy(state), time.monotonic() - (busy_since or 0.0)
        assert error is not None  # or `too_long` was False
        reason = f"it {was_busy(seconds, error.failure)}"
        raise RequestError(error.model, replace(error.failure, reason=reason)) from error

    retry = retry_if_exception(again)
    return {"retry": retry, "wait": pause, "stop": too_long, "retry_error_callback": give_up}


def was_busy(seconds: float, failure: Failure) -> str:
    """Why a busy service is waited for no longer, as the end of a sentence."""
    asks = f" and asks for {failure.pause:.0f} s more" if failure.pause else ""
    return f"was busy for {seconds:.0f} s: to every request {failure.reason}{asks}; {LATER}"


def _busy(state: RetryCallState) -> RequestError | None:
    error = None if state.outcome is None else state.outcome.exception()
    return error if isinstance(error, RequestError) and error.failure.kind == "busy" else None
