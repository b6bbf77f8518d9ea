"""Requests to a language model with limits, error classification, retries and records.

A `Service` gets the prompt only for the record, and a function that sends the request.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tenacity import RetryCallState, Retrying
from tenacity.wait import wait_base, wait_random_exponential

from hierindex.errors import HierindexError, ModelError
from hierindex.models.client import TIMEOUT
from hierindex.models.failures import (
    Failure,
    RequestError,
    error_of,
    failure_of,
    is_refused,
    request_errors,
)
from hierindex.models.limits import AdaptiveLimit, TokenLimit
from hierindex.models.record import CUT, Call, Request, UnusableError, finish_reason, text_of
from hierindex.models.thoughts import THINKS, Stream, answer_in, begins_within, with_answer
from hierindex.threads import in_daemon_thread, is_given_up, run_apart, started

ATTEMPTS = 5  # failed requests per prompt
UNUSABLE = 2  # answers per prompt; at temperature 0 they hardly change
LATER = "try again later, a build resumes where it stopped"
WAIT = wait_random_exponential(multiplier=0.5, max=20)
CONCURRENCY = 4  # requests in flight; a local server handles few at a time
MAX_BUSY = 60.0  # seconds for which a service may reject all requests, or one prompt

NO_ANSWER = (
    "it wrote only reasoning and no answer; raise its limit of tokens (--llm-completion-tokens, in "
    "Python max_tokens of the model)"
)

if TYPE_CHECKING:
    from hierindex.models.record import Response


S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R", bound="Response")
Note = Callable[[Call], None]
"""Records a call."""

# By a model's name, whether a reply began within a thought; unknown before the first reply.
_begins_within: dict[str, bool] = {}
_asking: ContextVar["Service | None"] = ContextVar("asking", default=None)


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


def unchecked(response: T) -> T:
    """Return the response unchanged."""
    return response


@dataclass(eq=False)
class Service:
    """A language model whose users share its limits.

    Parameters
    ----------
    name : str
    limit : AdaptiveLimit
        Limit on requests in flight; a stream counts until its first chunk.
    timeout : float, optional
        Seconds per request, or until the next chunk of a stream. A blocking request that times
        out keeps its thread until the server ends it, so five threads may work on one prompt.
    wait : wait_base
        Tenacity's wait between attempts.
    tokens : TokenLimit, optional
        Budget of async requests.
    has_answered : bool
        Whether the service was ever reachable; if so, a refused connection is retried.
    """

    name: str
    limit: AdaptiveLimit = field(default_factory=lambda: AdaptiveLimit(CONCURRENCY))
    timeout: float | None = TIMEOUT
    wait: wait_base = WAIT
    tokens: TokenLimit | None = None
    has_answered: bool = False

    @property
    def is_asking(self) -> bool:
        """Return whether this runs inside one of its requests: a chat may call `complete`."""
        return _asking.get() is self

    @property
    def _begins_within(self) -> bool | None:
        """Return whether a reply is expected to go on with a thought of the chat template."""
        return _begins_within.get(self.name, True if THINKS.search(self.name) else None)

    def ask(self, prompt: str, send: Callable[[], R], note: Note) -> R:
        """Return the response to a request without thoughts, with retries; record every attempt.

        Raises
        ------
        RequestError
            If this prompt gets no answer, or thoughts alone.
        ModelError
            If no prompt will get an answer.
        """
        check: Callable[[R], R] = partial(self.answer, prompt)
        return run_apart(self.aask(prompt, partial(in_daemon_thread, send), note, check))

    async def aask(
        self, prompt: str, send: Callable[[], Awaitable[R]], note: Note, check: Callable[[R], T]
    ) -> T:
        """Return the checked response as `ask` does; the check gets it with its thoughts.

        Raises
        ------
        UnusableError
            If the check still raises it on the last attempt.
        LimitError
            If the request might exceed the token budget; it is not sent.
        """
        return (await self._sent(prompt, send, note, check))[1]

    def answer(self, prompt: str, response: R) -> R:
        """Return a whole response without thoughts.

        Raises
        ------
        RequestError
            If it has thoughts alone, or was cut off before it said anything.
        """
        said = text_of(response)
        if (answer := answer_in(said, prompt)) != said:
            response = with_answer(response, answer)
        return self._checked(response, said, prompt, finish_reason(response))

    def stream(self, prompt: str, send: Callable[[], Iterator[R]], note: Note) -> Iterator[R]:
        """Yield the chunks of a response as `ask` does; errors after the first are not retried."""

        def begin() -> tuple[Iterator[R], R | None]:
            pieces = send()
            return pieces, next(pieces, None)

        begun = self._sent(
            prompt, partial(in_daemon_thread, begin), note, unchecked, is_stream=True
        )
        request, (pieces, piece) = run_apart(begun)

        def following() -> R | None:
            _asking.set(self)  # in the context of its thread
            return next(pieces, None)

        stream = Stream(prompt, self._begins_within)
        with self._watched(request, note):
            while piece is not None:
                yield stream.read(request.heard(piece), piece.delta or "")
                piece = started(following).result(self.timeout)
            if request.response is not None:
                yield self._ended(stream, request.response, request.finish)

    async def astream(
        self, prompt: str, send: Callable[[], Awaitable[AsyncIterator[R]]], note: Note
    ) -> AsyncIterator[R]:
        """Yield the chunks of a response as `stream` does."""

        async def begin() -> tuple[AsyncIterator[R], R | None]:
            pieces = await send()
            return pieces, await anext(pieces, None)

        begun = await self._sent(prompt, begin, note, unchecked, is_stream=True)
        request, (pieces, piece) = begun
        stream = Stream(prompt, self._begins_within)
        with self._watched(request, note):
            while piece is not None:
                yield stream.read(request.heard(piece), piece.delta or "")
                piece = await self._bounded(lambda: anext(pieces, None))
            if request.response is not None:
                yield self._ended(stream, request.response, request.finish)

    def _ended(self, stream: Stream, last: R, finish: str | None) -> R:
        return self._checked(stream.end(last), stream.reply, stream.prompt, finish)

    def _checked(self, answer: R, said: str, prompt: str, finish: str | None) -> R:
        """Raise RequestError if nothing is left of what was said, or of what was cut off."""
        begins = _begins_within.get(self.name, False) or begins_within(said, prompt)
        _begins_within[self.name] = begins
        if (said.strip() or finish in CUT) and not text_of(answer).strip():
            raise RequestError(f"LLM {self.name!r}", Failure("text", NO_ANSWER))
        return answer

    async def _sent(
        self,
        prompt: str,
        send: Callable[[], Awaitable[S]],
        note: Note,
        check: Callable[[S], T],
        *,
        is_stream: bool = False,
    ) -> tuple[Request, T]:
        """Return the successful attempt and its checked result."""
        attempts = Attempts(self.wait, MAX_BUSY)
        while True:
            request = Request(prompt)
            reserved = nullcontext() if self.tokens is None else self.tokens.reserved(request)
            try:
                async with reserved, self.limit.slot():
                    if is_given_up():  # by the caller, meanwhile
                        raise CancelledError
                    with self._watched(request, note):
                        request.response = got = await self._bounded(send)
                        request.goes_on = is_stream
                        return request, check(got)
            except (UnusableError, RequestError) as error:
                await asyncio.sleep(attempts.pause(error))

    async def _bounded(self, send: Callable[[], Awaitable[T]]) -> T:
        before = _asking.set(self)
        try:
            async with asyncio.timeout(self.timeout):
                return await send()
        finally:
            _asking.reset(before)

    @contextmanager
    def _watched(self, request: Request, note: Note) -> Iterator[None]:
        """Classify the errors of a request and record it when it has ended."""
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
                call = Call.of(request.prompt, request.response, fault)
                finish = call.finish_reason or request.finish
                request.call = replace(call, finish_reason=finish)
                note(request.call)

    def _named(self, failure: Failure, request: Request) -> HierindexError:
        """Return the error of a failure, after backing off if the service is busy."""
        model = f"LLM {self.name!r}"
        if failure.kind == "gone" and self.has_answered:
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
