"""Which failures of a request are tried again, how often, and after how long."""

import time
from dataclasses import replace

from tenacity import RetryCallState, Retrying
from tenacity.wait import wait_base, wait_random_exponential

from hierindex.llm.checks import UnusableError
from hierindex.llm.failures import Failure, RequestError

ATTEMPTS = 5  # that fail
UNUSABLE = 2  # answers to one prompt; at temperature 0 a third would be no other
LATER = "try again later, a build goes on where it was"
WAIT = wait_random_exponential(multiplier=0.5, max=20)


class Attempts:
    """The attempts at one prompt.

    Parameters
    ----------
    wait : wait_base
        Tenacity's, between attempts; a busy service is waited for by `AdaptiveLimit`.
    max_busy : float
        Seconds in which the service may be busy for this prompt, though it answers others.
    """

    def __init__(self, wait: wait_base, max_busy: float) -> None:
        self._wait = wait
        self._max_busy = max_busy
        self._state = RetryCallState(Retrying(), None, (), {})
        self._n_failed = self._n_unusable = 0
        self._busy_since: float | None = None

    def pause(self, error: UnusableError | RequestError) -> float:
        """Seconds until the next attempt, after one that failed; raises where it was the last."""
        if isinstance(error, RequestError) and error.failure.kind == "busy":
            self._check_busy(error)
            seconds = 0.0
        elif self._helps(error):
            seconds = self._wait(self._state)
        else:
            raise error
        self._state.prepare_for_next_attempt()
        return seconds

    def _check_busy(self, error: RequestError) -> None:
        """Refuse to ask a service that is busy for too long, or asks for too long a pause."""
        now = time.monotonic()
        self._busy_since = now if self._busy_since is None else self._busy_since
        seconds = now - self._busy_since
        if seconds + error.failure.pause > self._max_busy:
            reason = f"it {was_busy(seconds, error.failure)}"
            raise RequestError(error.model, replace(error.failure, reason=reason)) from error

    def _helps(self, error: UnusableError | RequestError) -> bool:
        """Whether another attempt may."""
        if isinstance(error, UnusableError):
            self._n_unusable += 1
            return error.again and self._n_unusable < UNUSABLE
        self._n_failed += 1
        return error.failure.kind == "again" and self._n_failed < ATTEMPTS


def was_busy(seconds: float, failure: Failure) -> str:
    """Why a busy service is waited for no longer, as the end of a sentence."""
    asks = f" and asks for {failure.pause:.0f} s more" if failure.pause else ""
    return f"was busy for {seconds:.0f} s: to every request {failure.reason}{asks}; {LATER}"
