"""Requests to a language model: within limits, failures told apart, tried again, written down.

What a request means is the caller's: `Service` is given the prompt, for the record, and what sends
it. Builds ask for texts, response modes through LlamaIndex (see `hierindex.llm.served`).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from llama_index.core.utils import get_tokenizer
from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception
from tenacity.wait import wait_base, wait_random_exponential

from hierindex.errors import HierindexError, ModelError
from hierindex.llm.checks import UnusableError
from hierindex.llm.client import TIMEOUT
from hierindex.llm.failures import (
    Failure,
    RequestError,
    error_of,
    failure_of,
    request_errors,
)
from hierindex.llm.limits import AdaptiveLimit, TokenLimit
from hierindex.llm.record import Call, Response
from hierindex.threads import within

CONCURRENCY = 4  # requests in flight; a local server handles few at a time
ATTEMPTS = 5  # that fail
UNUSABLE = 2  # answers to one prompt; at temperature 0 a third would be no other
WAIT = wait_random_exponential(multiplier=0.5, max=20)
MAX_BUSY = 60.0  # seconds in which a busy service may answer nothing
CLOSING = 0.5  # seconds in which a client may end a request itself, and close its connection

LATER = "try again later, a build goes on where it was"

T = TypeVar("T")
R = TypeVar("R", bound=Response)
Note = Callable[[Call], None]
"""Writes a call down."""

_asking: ContextVar["Service | None"] = ContextVar("asking", default=None)


@dataclass
class Request:
    """A prompt that was sent, and what came of it so far."""

    prompt: str
    sent: float = 0.0  # as time.monotonic tells
    response: Response | None = None
    goes_on: bool = False  # a stream of which there is more
    call: Call | None = None


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
        sync requests that take longer are left to themselves.
    wait : wait_base
        Tenacity's wait between attempts.
    tokens : TokenLimit, optional
        What async requests may cost.
    completion_tokens : int
        Of an answer at most, for `tokens`.
    has_answered : bool
        Whether it was ever of use; then nothing at its address is a failure that may pass.
    """

    name: str
    limit: AdaptiveLimit = field(default_factory=lambda: AdaptiveLimit(CONCURRENCY))
    timeout: float | None = TIMEOUT
    wait: wait_base = WAIT
    tokens: TokenLimit | None = None
    completion_tokens: int = 0
    has_answered: bool = False
    _told_by_counted: float = 1.0  # tokens of prompts, the service's count by ours

    @property
    def is_asking(self) -> bool:
        """Whether this is within a request of it: a model may answer a chat by a completion."""
        return _asking.get() is self

    def ask(self, prompt: str, send: Callable[[], R], note: Note) -> R:
        """The response to a request, tried again where that may help.

        Parameters
        ----------
        prompt : str
        send : callable
            Sends it.
        note : Note
            Is given every attempt.

        Raises
        ------
        RequestError
            If there is no answer, for this prompt.
        ModelError
            If there will be none for any prompt.
        """
        response: R = Retrying(**self._policy())(self._sent, prompt, send, note)
        return response

    async def aask(
        self,
        prompt: str,
        send: Callable[[], Awaitable[R]],
        note: Note,
        check: Callable[[R], T],
    ) -> T:
        """As `ask`, for what a check makes of the response.

        Raises
        ------
        UnusableError
            If the check does, again and again.
        LimitError
            If the request might exceed the tokens; it is not sent.
        """
        return await AsyncRetrying(**self._policy())(self._asent, prompt, send, note, check)

    def stream(self, prompt: str, send: Callable[[], Iterator[R]], note: Note) -> Iterator[R]:
        """As `ask`, piece by piece; what fails after the first piece is not tried again."""
        retrying = Retrying(**self._policy())
        request, pieces, piece = retrying(self._begun, prompt, send, note)
        with self._watched(request, note):
            while piece is not None:
                request.response = piece
                yield piece
                piece = self._bounded(partial(next, pieces, None))

    async def astream(
        self, prompt: str, send: Callable[[], Awaitable[AsyncIterator[R]]], note: Note
    ) -> AsyncIterator[R]:
        """As `stream`."""
        retrying = AsyncRetrying(**self._policy())
        request, pieces, piece = await retrying(self._abegun, prompt, send, note)
        with self._watched(request, note):
            while piece is not None:
                request.response = piece
                yield piece
                piece = await self._abounded(lambda: anext(pieces, None))

    def _sent(self, prompt: str, send: Callable[[], R], note: Note) -> R:
        request = Request(prompt)
        with self.limit.slot(), self._watched(request, note):
            response = self._bounded(send)
            request.response = response
        return response

    async def _asent(
        self, prompt: str, send: Callable[[], Awaitable[R]], note: Note, check: Callable[[R], T]
    ) -> T:
        request = Request(prompt)
        async with self._reserved(request), self.limit.aslot():
            with self._watched(request, note):
                response = await self._abounded(send)
                request.response = response
                return check(response)

    def _begun(
        self, prompt: str, send: Callable[[], Iterator[R]], note: Note
    ) -> tuple[Request, Iterator[R], R | None]:
        """A stream and its first piece; None if it has none."""
        request = Request(prompt)
        with self.limit.slot(), self._watched(request, note):
            pieces = self._bounded(send)
            piece = self._bounded(partial(next, pieces, None))
            request.goes_on = True
        return request, pieces, piece

    async def _abegun(
        self, prompt: str, send: Callable[[], Awaitable[AsyncIterator[R]]], note: Note
    ) -> tuple[Request, AsyncIterator[R], R | None]:
        """As `_begun`."""
        request = Request(prompt)
        async with self.limit.aslot():
            with self._watched(request, note):
                pieces = await self._abounded(send)
                piece = await self._abounded(lambda: anext(pieces, None))
                request.goes_on = True
        return request, pieces, piece

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
            waited = self.limit.slow_down(request.sent, failure.pause)
            if failure.pause > MAX_BUSY:
                return ModelError(
                    f"{model} is busy and asks for a pause of {failure.pause:.0f} seconds; {LATER}."
                )
            if waited > MAX_BUSY:
                return ModelError(
                    f"{model} was busy for {waited:.0f} s: to every request {failure.reason}; "
                    f"{LATER}."
                )
        return error_of(model, failure)

    @asynccontextmanager
    async def _reserved(self, request: Request) -> AsyncIterator[None]:
        """While a request may cost what it may at most; then what it did cost is spent."""
        if self.tokens is None:
            yield
            return
        counted = len(get_tokenizer()(request.prompt))
        at_most = int(counted * self._told_by_counted) + 1 + self.completion_tokens
        await self.tokens.reserve(at_most)
        try:
            yield
        finally:
            cost = 0 if request.call is None else at_most  # of an outcome that is not known
            if request.call is not None and request.response is not None:
                n_prompt = request.call.prompt_tokens
                cost = n_prompt + request.call.completion_tokens
                self._told_by_counted = max(self._told_by_counted, n_prompt / counted)
            await self.tokens.settle(at_most, cost)

    def _policy(self) -> dict[str, Any]:
        """Of one prompt: which failures are tried again, and after how long."""
        n_failed = n_unusable = 0

        def again(error: BaseException) -> bool:
            nonlocal n_failed, n_unusable
            match error:
                case UnusableError():
                    n_unusable += 1
                    return error.again and n_unusable < UNUSABLE
                case RequestError(failure=Failure(kind="busy")):
                    return True  # the limit waits, and gives up in time
                case RequestError(failure=Failure(kind="again")):
                    n_failed += 1
                    return n_failed < ATTEMPTS
            return False

        def wait(state: RetryCallState) -> float:
            error = None if state.outcome is None else state.outcome.exception()
            busy = isinstance(error, RequestError) and error.failure.kind == "busy"
            return 0.0 if busy else self.wait(state)

        return {"retry": retry_if_exception(again), "wait": wait, "reraise": True}
