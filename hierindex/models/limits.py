"""Limits on concurrent requests and on spent tokens."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from llama_index.core.utils import get_tokenizer

from hierindex.errors import LimitError
from hierindex.models.record import Request
from hierindex.threads import wait_until

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 10.0  # seconds, if the service asks for none


class AdaptiveLimit:
    """A limit on concurrent requests that adapts to the service.

    The limit is halved when the service rejects a request because there are too many. It grows by
    one per round of answers up to `most`: additive increase, multiplicative decrease (Chiu and
    Jain, 1989). Threads share it.

    Parameters
    ----------
    most : int
        Maximum number of requests in flight.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._limit = float(most)
        self._in_flight = 0
        self._slowed = self._resume = 0.0  # by time.monotonic
        self._next_pause = FIRST_PAUSE
        self._busy_since: float | None = None
        self._changed = Condition()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait until a request may be sent, and count it as in flight during the block."""
        with self._changed:
            wait_until(self._changed, self._is_free)
            self._in_flight += 1
        try:
            yield
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify()

    def answered(self) -> None:
        """Record that a request was answered."""
        with self._changed:
            self._limit = min(self.most, self._limit + 1 / self._limit)
            self._next_pause, self._busy_since = FIRST_PAUSE, None

    def slow_down(self, sent: float, pause: float) -> float:
        """Lower the limit after the service rejected a request because there are too many.

        Requests that were in flight together lower the limit once. A request that was sent some
        seconds after the last pause starts a new busy period.

        Parameters
        ----------
        sent : float
            When the request was sent, by `time.monotonic`.
        pause : float
            Seconds that the service asks for; with 0 the pause is twice the last one.

        Returns
        -------
        float
            Seconds since the start of the busy period, in which the service answered nothing.
        """
        now = time.monotonic()
        with self._changed:
            if self._busy_since is None or sent > self._resume + LONGEST_PAUSE:
                self._busy_since, self._next_pause = now, FIRST_PAUSE
            if sent >= self._slowed:
                self._limit, self._slowed = max(1.0, self._limit / 2), now
                if not pause:
                    pause = self._next_pause
                    self._next_pause = min(LONGEST_PAUSE, 2 * pause)
            self._resume = max(self._resume, now + pause)
            return now - self._busy_since

    def end_pause(self) -> None:
        """End the pause, so that waiting requests fail soon too."""
        with self._changed:
            self._resume = min(self._resume, time.monotonic())
            self._next_pause = FIRST_PAUSE

    def _is_free(self) -> bool:
        return self._in_flight < int(self._limit) and time.monotonic() >= self._resume


class TokenLimit:
    """A token budget that threads share.

    The maximum cost of a request is reserved before it is sent and replaced by its actual cost
    afterwards.

    Parameters
    ----------
    most : int
    spent : int
        Tokens that are already spent.
    completion_tokens : int
        Maximum tokens of an answer.
    """

    def __init__(self, most: int, spent: int = 0, completion_tokens: int = 0) -> None:
        self._most = most
        self._spent = spent
        self._completion_tokens = completion_tokens
        self._ratio = 1.0  # largest ratio of the service's count of prompt tokens to ours
        self._reserved = 0
        self._settled = Condition()

    @contextmanager
    def reserved(self, request: Request) -> Iterator[None]:
        """Reserve a request's maximum cost while it runs, then settle its actual cost.

        Raises
        ------
        LimitError
            If the tokens are not available even after all requests in flight have ended.
        """
        counted = len(get_tokenizer()(request.prompt))
        at_most = int(counted * self._ratio) + 1 + self._completion_tokens
        with self._settled:
            wait_until(self._settled, lambda: self._holds(at_most) or not self._reserved)
            if not self._holds(at_most):
                raise LimitError(
                    f"{self._spent:,} of the {self._most:,} tokens of the budget are spent and the "
                    f"next request may take {at_most:,}"
                )
            self._reserved += at_most
        try:
            yield
        finally:
            call, cost = request.call, at_most  # if the outcome is unknown
            if call is None or request.refused:  # not sent or rejected
                cost = 0
            elif request.response is not None:
                cost = call.prompt_tokens + call.completion_tokens
                self._ratio = max(self._ratio, call.prompt_tokens / counted)
            with self._settled:
                self._reserved -= at_most
                self._spent += cost
                self._settled.notify_all()

    def _holds(self, n_tokens: int) -> bool:
        return self._spent + self._reserved + n_tokens <= self._most
