"""Access to language models: limits, retries, checks, usage and records of all requests.

A `LanguageModel` sends the requests of any LlamaIndex model; a `ServedLLM` wraps it as a
LlamaIndex model. Requests use the model's sync methods, in daemon threads. So no event loop or
async client is used, and Ctrl-C does not wait for an answer.
"""

import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial, partialmethod
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard, TypeVar, cast

from llama_index.core.base.llms.types import LLMMetadata
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.structured_llm import StructuredLLM
from pydantic import Field
from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.wait import wait_base, wait_random_exponential

from hierindex import settings
from hierindex.core.arguments import is_number
from hierindex.errors import HierindexError, ModelError, WindowWarning
from hierindex.models.failures import (
    Failure,
    RequestError,
    error_of,
    failure_of,
    is_refused,
    request_errors,
)
from hierindex.models.limits import AdaptiveLimit, TokenLimit
from hierindex.models.reasoning import THINKS, Stream, answer_in, begins_within, with_answer
from hierindex.models.record import (
    CUT,
    Call,
    Calls,
    Request,
    UnusableError,
    finish_reason,
    prompt_of,
    text_of,
)
from hierindex.threads import Pool, in_daemon_thread, pause, within

if TYPE_CHECKING:
    from hierindex.models.record import Response

ATTEMPTS = 5  # failed requests per prompt
UNUSABLE = 2  # answers per prompt; at temperature 0 they hardly change
LATER = "try again later, a build resumes where it stopped"
WAIT = wait_random_exponential(multiplier=0.5, max=20)
CONCURRENCY = settings.LLMSettings.llm_concurrency  # a local server handles few at a time
MAX_BUSY = 60.0  # seconds for which a service may reject all requests, or one prompt

NO_ANSWER = (
    "it wrote only reasoning and no answer; raise its limit of tokens (--llm-completion-tokens, in "
    "Python max_tokens of the model)"
)

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R", bound="Response")
Note = Callable[[Call], None]
"""Records a call."""

# By a model's name, whether a reply began within a thought; unknown before the first reply.
_begins_within: dict[str, bool] = {}
_cut = set[str]()  # names of models whose server seemed to cut a prompt


@dataclass
class Attempts:
    """The failed attempts at one prompt."""

    n_failed: int = 0
    n_unusable: int = 0
    busy_since: float | None = None

    def may_go_on(self, error: BaseException) -> bool:
        """Count a failed attempt; return whether another one may succeed.

        Raises
        ------
        RequestError
            If the service has been too busy for this prompt for a long time, but not for others.
        """
        if isinstance(error, UnusableError):
            self.n_unusable += 1
            return error.again and self.n_unusable < UNUSABLE
        if _is_busy(error):
            now = time.monotonic()
            self.busy_since = now if self.busy_since is None else self.busy_since
            seconds = now - self.busy_since
            if seconds + error.failure.pause > MAX_BUSY:
                reason = f"it {was_busy(seconds, error.failure)}"
                raise RequestError(error.model, replace(error.failure, reason=reason)) from error
            return True
        self.n_failed += 1
        is_passing = isinstance(error, RequestError) and error.failure.kind == "again"
        return is_passing and self.n_failed < ATTEMPTS


def _is_busy(error: BaseException | None) -> TypeGuard[RequestError]:
    return isinstance(error, RequestError) and error.failure.kind == "busy"


def was_busy(seconds: float, failure: Failure) -> str:
    """Return a clause on why a busy service is not asked again."""
    asks = f" and asks for a pause of {failure.pause:.0f} s" if failure.pause else ""
    return f"was busy for {seconds:.0f} s: {failure.reason}{asks}; {LATER}"


@dataclass(eq=False)
class LanguageModel:
    """A language model with limits that all its users share.

    Parameters
    ----------
    llm : LLM
        The model, used without changes; see `without_retries`.
    limit : AdaptiveLimit
        Limit on requests in flight; a stream counts until its first chunk.
    timeout : float
        Seconds per request, or until the next chunk of a stream. A request that times out keeps
        its thread until the server ends it, so five threads may work on one prompt.
    wait : wait_base
        Tenacity's wait between attempts.
    tokens : TokenLimit, optional
        Budget of the requests; streams are not counted.
    has_answered : bool
        Whether the service was ever reachable; if so, a refused connection is retried.
    """

    llm: LLM
    limit: AdaptiveLimit
    timeout: float = inf
    wait: wait_base = WAIT
    tokens: TokenLimit | None = None
    has_answered: bool = False
    pool: Pool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.pool = Pool(self.limit.most)  # of requests that an event loop waits for

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.llm.metadata.model_name

    def complete(self, prompt: str, note: Note, check: Callable[[Any], T], **options: Any) -> T:
        """Return the checked response to a prompt; see `ask`.

        `check` gets the response with its thoughts.
        """
        return self._sent(prompt, partial(self.llm.complete, prompt, **options), note, check)[1]

    def ask(self, prompt: str, send: Callable[[], R], note: Note) -> R:
        """Send a request with retries; record every attempt; return the response without thoughts.

        Parameters
        ----------
        prompt : str
            For the record and the token budget.
        send : callable
            Sends the request.
        note : callable

        Raises
        ------
        RequestError
            If this prompt gets no answer, or only thoughts.
        ModelError
            If no prompt will get an answer.
        LimitError
            If the request might exceed the token budget; it is not sent.
        UnusableError
            Of `complete`, if the check still raises it on the last attempt.
        """
        check: Callable[[R], R] = partial(self._answer, prompt)
        return self._sent(prompt, send, note, check)[1]

    def stream(self, prompt: str, send: Callable[[], Iterator[R]], note: Note) -> Iterator[R]:
        """Yield the chunks of a response like `ask`; errors after the first one are not retried."""

        def begin() -> tuple[Iterator[R], R | None]:
            pieces = send()
            for first in pieces:
                return pieces, first
            raise ValueError("The stream is empty")

        sent = self._sent(prompt, begin, note, lambda begun: begun, is_stream=True)
        request, (pieces, piece) = sent
        request.response, stream = None, Stream(prompt, self._begins_within)
        with self._watched(request, note):
            while piece is not None:
                yield stream.read(request.heard(piece), piece.delta or "")
                piece = within(self.timeout, partial(next, pieces, None))
            last = stream.end(request.response)
            yield self._checked(last, stream.reply, prompt, request.finish)

    @property
    def _begins_within(self) -> bool | None:
        """Return whether a reply is expected to continue a thought of the chat template."""
        return _begins_within.get(self.name, True if THINKS.search(self.name) else None)

    def _answer(self, prompt: str, response: R) -> R:
        said = text_of(response)
        if (answer := answer_in(said, prompt)) != said:
            response = with_answer(response, answer)
        return self._checked(response, said, prompt, finish_reason(response))

    def _checked(self, answer: R, said: str, prompt: str, finish: str | None) -> R:
        """Raise RequestError if a reply is empty, or was cut off, after removing its thoughts."""
        begins = _begins_within.get(self.name, False) or begins_within(said, prompt)
        _begins_within[self.name] = begins
        if (said.strip() or finish in CUT) and not text_of(answer).strip():
            raise RequestError(f"LLM {self.name!r}", Failure("text", NO_ANSWER))
        return answer

    def _sent(
        self,
        prompt: str,
        send: Callable[[], S],
        note: Note,
        check: Callable[[S], T],
        *,
        is_stream: bool = False,
    ) -> tuple[Request, T]:
        """Return the successful attempt and its checked result."""

        def attempt() -> tuple[Request, T]:
            request = Request(prompt)
            reserved = nullcontext() if self.tokens is None else self.tokens.reserved(request)
            with reserved, self.limit.slot(), self._watched(request, note):
                request.response = got = within(self.timeout, send)
                request.goes_on = is_stream
                return request, check(got)

        retry = retry_if_exception(Attempts().may_go_on)
        return Retrying(retry=retry, wait=self._pause, sleep=pause, reraise=True)(attempt)

    def _pause(self, state: RetryCallState) -> float:
        """Return the seconds until the next attempt; `limit` waits for a busy service."""
        error = None if state.outcome is None else state.outcome.exception()
        return 0.0 if _is_busy(error) else self.wait(state)

    @contextmanager
    def _watched(self, request: Request, note: Note) -> Iterator[None]:
        """Classify the errors of a request, and record it when it has ended."""
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
                self._warn_of_cut(request.call)

    def _warn_of_cut(self, call: Call) -> None:
        """Warn once if fewer tokens were read than the prompt has words.

        In the tokenizers of all known models, each word has at least one token. Their
        counts differ from LlamaIndex's: Qwen's counts for Chinese are half as large.
        """
        n_words = len(call.prompt.split())
        if 0 < call.prompt_tokens < n_words and self.name not in _cut:
            _cut.add(self.name)
            warnings.warn(
                f"LLM {self.name!r} read {call.prompt_tokens} tokens of a prompt of {n_words} "
                "words, so its server seems to cut prompts. Give it a larger window (num_ctx of "
                "Ollama, --ctx-size of llama.cpp), or ask with a smaller --token-budget.",
                WindowWarning,
                stacklevel=2,
            )

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


class ServedLLM(FunctionCallingLLM):
    """A LlamaIndex model whose requests go through the `LanguageModel` of the user's model.

    It has the metadata, prompts and callbacks of the user's model, and none of its other settings.
    Async methods run the sync ones in threads. Structured answers are requested by tool calls if
    the model supports them, otherwise in the prompt.
    """

    language_model: LanguageModel = Field(exclude=True, repr=False)
    records: tuple[Calls, ...] = Field(default=(), exclude=True, repr=False)

    @classmethod
    def class_name(cls) -> str:
        """Return the name for events."""
        return "served_llm"

    @property
    def metadata(self) -> LLMMetadata:
        """Metadata of the user's model."""
        return self.language_model.llm.metadata

    def _through(self, way: Callable[..., T], method: str, /, *args: Any, **options: Any) -> T:
        send = partial(getattr(self.language_model.llm, method), *args, **options)
        return way(self.language_model, prompt_of(*args, **options), send, self._note)

    async def _ain_pool(self, method: str, /, *args: Any, **options: Any) -> Any:
        ask = partial(self._through, LanguageModel.ask, method, *args, **options)
        return await in_daemon_thread(ask, self.language_model.pool)

    async def _astream(self, method: str, /, *args: Any, **options: Any) -> AsyncIterator[Any]:
        pieces = self._through(LanguageModel.stream, method, *args, **options)

        async def gen() -> AsyncIterator[Any]:
            while (piece := await in_daemon_thread(partial(next, pieces, None))) is not None:
                yield piece

        return gen()

    complete: ClassVar[Any] = partialmethod(_through, LanguageModel.ask, "complete")
    chat: ClassVar[Any] = partialmethod(_through, LanguageModel.ask, "chat")
    chat_with_tools: ClassVar[Any] = partialmethod(_through, LanguageModel.ask, "chat_with_tools")
    stream_complete: ClassVar[Any] = partialmethod(
        _through, LanguageModel.stream, "stream_complete"
    )
    stream_chat: ClassVar[Any] = partialmethod(_through, LanguageModel.stream, "stream_chat")
    stream_chat_with_tools: ClassVar[Any] = partialmethod(
        _through, LanguageModel.stream, "stream_chat_with_tools"
    )
    acomplete: ClassVar[Any] = partialmethod(_ain_pool, "complete")
    achat: ClassVar[Any] = partialmethod(_ain_pool, "chat")
    achat_with_tools: ClassVar[Any] = partialmethod(_ain_pool, "chat_with_tools")
    astream_complete: ClassVar[Any] = partialmethod(_astream, "stream_complete")
    astream_chat: ClassVar[Any] = partialmethod(_astream, "stream_chat")
    astream_chat_with_tools: ClassVar[Any] = partialmethod(_astream, "stream_chat_with_tools")

    def get_tool_calls_from_response(self, *args: Any, **options: Any) -> Any:
        """Return the tool calls in a response, as the user's model does."""
        llm: Any = self.language_model.llm
        return llm.get_tool_calls_from_response(*args, **options)

    def _prepare_chat_with_tools(self, *args: Any, **options: Any) -> dict[str, Any]:
        raise NotImplementedError  # the user's model does

    def _note(self, call: Call) -> None:
        for record in self.records:
            record.add(call)


def with_retries(llm: LLM, calls: Calls | None = None, *, concurrency: int | None = None) -> LLM:
    """Return a model whose requests go through a `LanguageModel`, without client retries.

    Parameters
    ----------
    llm : LLM
        If it is a `ServedLLM`, the new model shares its limits.
    calls : Calls, optional
        An additional record of its calls.
    concurrency : int, optional
        Maximum requests in flight; 4 by default.

    Returns
    -------
    LLM
        A `ServedLLM`, or a `StructuredLLM` of one. A request that fails for good raises
        `RequestError`, or `ModelError` if no other request would succeed.
    """
    if isinstance(llm, StructuredLLM):  # the model inside it sends the requests
        return llm.model_copy(update={"llm": with_retries(llm.llm, calls, concurrency=concurrency)})
    records = () if calls is None else (calls,)
    if isinstance(llm, ServedLLM):
        model, records = llm.language_model, (*llm.records, *records)
    else:
        limit = AdaptiveLimit(concurrency or CONCURRENCY)
        model = LanguageModel(without_retries(llm), limit, _timeout(llm), WAIT)
    if concurrency not in (None, model.limit.most):
        model = replace(model, limit=AdaptiveLimit(concurrency))
    own = {name: getattr(llm, name) for name in LLM.model_fields}
    return ServedLLM(**own, language_model=model, records=records)


def language_model_of(llm: LLM) -> LanguageModel:
    """Return the `LanguageModel` of a served model."""
    return cast(ServedLLM, llm.llm if isinstance(llm, StructuredLLM) else llm).language_model


def without_retries(llm: LLM, timeout: float = inf) -> LLM:
    """Return a model, or a copy of it, that does not retry, with a timeout of at most `timeout`.

    The model's own retries would not be counted as requests. A client that is already created keeps
    its settings.
    """
    changes: dict[str, Any] = {}
    if getattr(llm, "max_retries", 0):
        changes["max_retries"] = 0
    if (getattr(llm, "timeout", None) or 0) > timeout:
        changes["timeout"] = timeout
    return llm.model_copy(update=changes) if changes else llm


def _timeout(llm: LLM) -> float:
    """Return the timeout in a model's settings; local models have none."""
    named = (getattr(llm, name, None) for name in ("timeout", "request_timeout"))
    return next((seconds for seconds in named if seconds and is_number(seconds)), inf)
