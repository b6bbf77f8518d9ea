"""Retries of a failed request: how many, and after what pauses."""

import time
from dataclasses import replace

from tenacity import RetryCallState, Retrying
from tenacity.wait import wait_base, wait_random_exponential

from hierindex.llm.checks import UnusableError
from hierindex.llm.failures import Failure, RequestError

ATTEMPTS = 5  # failed requests per prompt
UNUSABLE = 2  # answers per prompt; at temperature 0 they hardly change
LATER = "try again later, a build resumes where it stopped"
WAIT = wait_random_exponential(multiplier=0.5, max=20)


class Attempts:
    """The attempts at one prompt.

    Parameters
    ----------
    wait : wait_base
        Tenacity's wait between attempts; `AdaptiveLimit` waits for a busy service.
    max_busy : float
        Seconds for which the service may reject this prompt as busy while it answers others.
    """

    def __init__(self, wait: wait_base, max_busy: float) -> None:
        self._wait = wait
        self._max_busy = max_busy
        self._state = RetryCallState(Retrying(), None, (), {})
        self._n_failed = self._n_unusable = 0
        self._busy_since: float | None = None

    def pause(self, error: UnusableError | RequestError) -> float:
        """Return the seconds until the next attempt, or raise the error if there is none."""
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
        """Raise RequestError if the service was or asks to be busy for too long."""
        now = time.monotonic()
        self._busy_since = now if self._busy_since is None else self._busy_since
        seconds = now - self._busy_since
        if seconds + error.failure.pause > self._max_busy:
            reason = f"it {was_busy(seconds, error.failure)}"
            raise RequestError(error.model, replace(error.failure, reason=reason)) from error

    def _helps(self, error: UnusableError | RequestError) -> bool:
        """Count a failed attempt; return whether another one may succeed."""
        if isinstance(error, UnusableError):
            self._n_unusable += 1
            return error.again and self._n_unusable < UNUSABLE
        self._n_failed += 1
        return error.failure.kind == "again" and self._n_failed < ATTEMPTS


def was_busy(seconds: float, failure: Failure) -> str:
    """Return a clause on why a busy service is not asked again."""
    asks = f" and asks for a pause of {failure.pause:.0f} s" if failure.pause else ""
    return f"was busy for {seconds:.0f} s: {failure.reason}{asks}; {LATER}"
