"""How many requests may be in flight, and what they may cost."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Lock

from llama_index.core.utils import get_tokenizer

from hierindex.errors import LimitError
from hierindex.llm.record import Request

A_MOMENT = 0.005  # seconds
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 10.0  # seconds, where the service asks for none


class AdaptiveLimit:
    """So many requests at once as the service bears.

    Halved when the service says that there are too many, and grown by one with each round of
    answers, up to what was asked for: additive increase, multiplicative decrease (Chiu and
    Jain, 1989). For threads and the tasks of any event loops together.

    Parameters
    ----------
    most : int
        Requests in flight, never more.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._limit = float(most)
        self._in_flight = 0
        self._slowed = self._resume = 0.0  # as time.monotonic tells
        self._next_pause = FIRST_PAUSE
        self._busy_since: float | None = None
        self._lock = Lock()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait until one more request may be sent, and hold its place meanwhile."""
        while wait := self._wait():
            time.sleep(wait)
        try:
            yield
        finally:
            self._leave()

    @asynccontextmanager
    async def aslot(self) -> AsyncIterator[None]:
        """As `slot`, without blocking the event loop."""
        while wait := self._wait():
            await asyncio.sleep(wait)
        try:
            yield
        finally:
            self._leave()

    def answered(self) -> None:
        """A request was answered."""
        with self._lock:
            self._limit = min(self.most, self._limit + 1 / self._limit)
            self._next_pause, self._busy_since = FIRST_PAUSE, None

    def slow_down(self, sent: float, pause: float) -> float:
        """A request that was sent then was too many; nothing is sent for a while.

        Those that were in flight together say it together, and count once.

        Parameters
        ----------
        sent : float
            As `time.monotonic` tells.
        pause : float
            Seconds that the service asks for; where it does not say, 0: then the pause is twice
            the last one.

        Returns
        -------
        float
            Seconds since the first of the requests that were too many, without an answer between.
        One that was sent some seconds after the last pause is a first one again.
        """
        now = time.monotonic()
        with self._lock:
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
        """The service was given up: those that wait for it need not wait longer to learn it."""
        with self._lock:
            self._resume = min(self._resume, time.monotonic())
            self._next_pause = FIRST_PAUSE

    def _wait(self) -> float:
        """Seconds to wait before asking again; 0 if a request may be sent, whose place is held."""
        with self._lock:
            paused = self._resume - time.monotonic()
            if paused > 0 or self._in_flight >= int(self._limit):
                return max(A_MOMENT, paused)
            self._in_flight += 1
            return 0.0

    def _leave(self) -> None:
        with self._lock:
            self._in_flight -= 1


class TokenLimit:
    """Tokens that may be spent; what might exceed them is not begun.

    A request is reserved with the most that it can cost, and settled with what it did cost.
    For the tasks of one event loop.

    Parameters
    ----------
    most : int
    spent : int
        Before now.
    completion_tokens : int
        Of an answer at most.
    """

    def __init__(self, most: int, spent: int = 0, completion_tokens: int = 0) -> None:
        self._most = most
        self._spent = spent
        self._completion_tokens = completion_tokens
        self._told_by_counted = 1.0  # tokens of prompts, the service's count by ours
        self._reserved = 0
        self._settled = asyncio.Condition()

    @asynccontextmanager
    async def reserved(self, request: Request) -> AsyncIterator[None]:
        """While a request may cost what it may at most; when it has ended, what it did cost.

        Raises
        ------
        LimitError
            See `reserve`.
        """
        counted = len(get_tokenizer()(request.prompt))
        at_most = int(counted * self._told_by_counted) + 1 + self._completion_tokens
        await self.reserve(at_most)
        try:
            yield
        finally:
            call, cost = request.call, at_most  # where the outcome is not known
            if call is None or request.refused:  # it was not sent, or not worked on
                cost = 0
            elif request.response is not None:
                cost = call.prompt_tokens + call.completion_tokens
                self._told_by_counted = max(self._told_by_counted, call.prompt_tokens / counted)
            await self.settle(at_most, cost)

    async def reserve(self, n_tokens: int) -> None:
        """Wait until so many are surely left.

        Raises
        ------
        LimitError
            If they are not, also when every request in flight is settled.
        """
        async with self._settled:
            await self._settled.wait_for(lambda: self._holds(n_tokens) or not self._reserved)
            if not self._holds(n_tokens):
                raise LimitError(
                    f"{self._spent:,} of the {self._most:,} tokens that it may take are spent, and "
                    f"the next request may take {n_tokens:,}"
                )
            self._reserved += n_tokens

    async def settle(self, n_reserved: int, n_spent: int) -> None:
        """A request that was reserved with so many tokens has cost so many."""
        async with self._settled:
            self._reserved -= n_reserved
            self._spent += n_spent
            self._settled.notify_all()

    def _holds(self, n_tokens: int) -> bool:
        return self._spent + self._reserved + n_tokens <= self._most
