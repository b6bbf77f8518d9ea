"""Requests to a language model: within limits, failures told apart, tried again, written down.

What a request means is the caller's: `Service` is given the prompt, for the record, and what sends
it. Builds ask for texts, response modes through LlamaIndex (see `hierindex.llm.served`).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from tenacity.wait import wait_base

from hierindex.errors import HierindexError, ModelError
from hierindex.llm.attempts import LATER, WAIT, Attempts, was_busy
from hierindex.llm.checks import UnusableError
from hierindex.llm.client import TIMEOUT
from hierindex.llm.failures import (
    Failure,
    RequestError,
    error_of,
    failure_of,
    is_refused,
    request_errors,
)
from hierindex.llm.limits import AdaptiveLimit, TokenLimit
from hierindex.llm.record import Call, Request, Response
from hierindex.threads import is_given_up, within

CONCURRENCY = 4  # requests in flight; a local server handles few at a time
MAX_BUSY = 60.0  # seconds in which a busy service may answer nothing, or not to one prompt
CLOSING = 0.5  # seconds in which a client may end a request itself, and close its connection

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R", bound=Response)
Note = Callable[[Call], None]
"""Writes a call down."""

_asking: ContextVar["Service | None"] = ContextVar("asking", default=None)


def unchecked(response: T) -> T:
    """The response as it is."""
    return response


@dataclass(eq=False)
class Service:
    """A language model as those see it who share its limits.

    Parameters
    ----------
    name : str
    limit : AdaptiveLimit
        Requests in flight; a stream of which there is a piece is none.
    timeout : float, optional
        Seconds of a request, or until the next piece of a stream. A thread cannot be cut short:
        that of a sync request that takes longer stays until the server ends the request, so that
        there may be five of one prompt.
    wait : wait_base
        Tenacity's wait between attempts.
    tokens : TokenLimit, optional
        What async requests may cost.
    has_answered : bool
        Whether it was ever of use; then nothing at its address is a failure that may pass.
    """

    name: str
    limit: AdaptiveLimit = field(default_factory=lambda: AdaptiveLimit(CONCURRENCY))
    timeout: float | None = TIMEOUT
    wait: wait_base = WAIT
    tokens: TokenLimit | None = None
    has_answered: bool = False

    @property
    def is_asking(self) -> bool:
        """Whether this is within a request of it: a model may answer a chat by a completion."""
        return _asking.get() is self

    def ask(self, prompt: str, send: Callable[[], T], note: Note) -> T:
        """The response to a request that is sent again where that may help; notes every attempt.

        Raises
        ------
        RequestError
            If there is no answer, for this prompt.
        ModelError
            If there will be none for any prompt.
        """
        return self._sent(prompt, send, note)[1]

    async def aask(
        self, prompt: str, send: Callable[[], Awaitable[R]], note: Note, check: Callable[[R], T]
    ) -> T:
        """As `ask`, for what a check makes of the response.

        Raises
        ------
        UnusableError
            If the check does, again and again.
        LimitError
            If the request might exceed the tokens; it is not sent.
        """
        return (await self._asent(prompt, send, note, check))[1]

    def stream(self, prompt: str, send: Callable[[], Iterator[R]], note: Note) -> Iterator[R]:
        """As `ask`, piece by piece; what fails after the first piece is not tried again."""

        def begin() -> tuple[Iterator[R], R | None]:
            pieces = send()
            return pieces, next(pieces, None)

        request, (pieces, piece) = self._sent(prompt, begin, note, is_stream=True)
        with self._watched(request, note):
            request.response = piece
            while piece is not None:
                request.response = piece
                yield piece
                piece = self._bounded(partial(next, pieces, None))

    async def astream(
        self, prompt: str, send: Callable[[], Awaitable[AsyncIterator[R]]], note: Note
    ) -> AsyncIterator[R]:
        """As `stream`."""

        async def begin() -> tuple[AsyncIterator[R], R | None]:
            pieces = await send()
            return pieces, await anext(pieces, None)

        begun = await self._asent(prompt, begin, note, unchecked, is_stream=True)
        request, (pieces, piece) = begun
        with self._watched(request, note):
            request.response = piece
            while piece is not None:
                request.response = piece
                yield piece
                piece = await self._abounded(lambda: anext(pieces, None))

    def _sent(
        self, prompt: str, send: Callable[[], T], note: Note, *, is_stream: bool = False
    ) -> tuple[Request, T]:
        """The attempt that succeeded, and what it brought."""
        attempts = Attempts(self.wait, MAX_BUSY)
        while True:
            request = Request(prompt)
            try:
                with self.limit.slot():
                    if is_given_up():  # by who asked, while this waited
                        raise CancelledError
                    with self._watched(request, note):
                        request.response = got = self._bounded(send)
                        request.goes_on = is_stream
                return request, got
            except (UnusableError, RequestError) as error:
                time.sleep(attempts.pause(error))

    async def _asent(
        self,
        prompt: str,
        send: Callable[[], Awaitable[S]],
        note: Note,
        check: Callable[[S], T],
        *,
        is_stream: bool = False,
    ) -> tuple[Request, T]:
        """As `_sent`."""
        attempts = Attempts(self.wait, MAX_BUSY)
        while True:
            request = Request(prompt)
            reserved = nullcontext() if self.tokens is None else self.tokens.reserved(request)
            try:
                async with reserved, self.limit.aslot():
                    with self._watched(request, note):
                        request.response = got = await self._abounded(send)
                        request.goes_on = is_stream
                        return request, check(got)
            except (UnusableError, RequestError) as error:
                await asyncio.sleep(attempts.pause(error))

    def _bounded(self, send: Callable[[], T]) -> T:
        """What comes back in time."""

        def inside() -> T:
            _asking.set(self)
            return send()

        return within(None if self.timeout is None else self.timeout + CLOSING, inside)

    async def _abounded(self, send: Callable[[], Awaitable[T]]) -> T:
        """As `_bounded`."""
        before = _asking.set(self)
        try:
            async with asyncio.timeout(self.timeout):
                return await send()
        finally:
            _asking.reset(before)

    @contextmanager
    def _watched(self, request: Request, note: Note) -> Iterator[None]:
        """While a request is under way: names its failure, and writes it down when it has ended."""
        request.goes_on, request.sent, fault = False, time.monotonic(), None
        try:
            yield
        except (HierindexError, UnusableError) as error:
            fault = str(error)
            raise
        except request_errors() as error:
            request.refused = is_refused(error)
            named = self._named(failure_of(error), request)
            fault = str(named)
            raise named from error
        finally:
            if request.response is not None:
                self.limit.answered()
                self.has_answered = True
            if not request.goes_on:
                request.call = Call.of(request.prompt, request.response, fault)
                note(request.call)

    def _named(self, failure: Failure, request: Request) -> HierindexError:
        """What a failure means for all prompts, or else for this one."""
        model = f"LLM {self.name!r}"
        if failure.kind == "gone" and self.has_answered:  # it was there
            failure = replace(failure, kind="again")
        if failure.kind == "busy":
            if failure.pause > MAX_BUSY:
                return ModelError(
                    f"{model} is busy and asks for a pause of {failure.pause:.0f} seconds; {LATER}."
                )
            waited = self.limit.slow_down(request.sent, failure.pause)
            if waited + failure.pause > MAX_BUSY:
                self.limit.end_pause()
                return ModelError(f"{model} {was_busy(waited, failure)}.")
        return error_of(model, failure)
