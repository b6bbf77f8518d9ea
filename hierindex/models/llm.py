"""Access to language models: clients of servers, and limits, retries, checks and records.

A `LanguageModel` sends the requests of any LlamaIndex model. It uses the model's sync methods, in
daemon threads. So no event loop or async client is used, and Ctrl-C does not wait for an answer.
"""

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from threading import Condition, Semaphore
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
from llama_index.core.llms import LLM
from llama_index.core.utils import get_tokenizer
from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.wait import wait_random_exponential

from hierindex.errors import HierindexError, LimitError, ModelError, WindowWarning
from hierindex.models.failures import (
    TIMED_OUT,
    Failure,
    RequestError,
    error_of,
    failure_of,
    reason_in,
    request_errors,
)
from hierindex.models.reasoning import THINKS, Stream, answer_in, begins_within, with_answer
from hierindex.models.record import (
    CUT,
    Call,
    Request,
    finish_reason,
    text_of,
)
from hierindex.settings import LLMSettings
from hierindex.threads import pause, wait_until, within

if TYPE_CHECKING:
    from hierindex.models.record import Response

ATTEMPTS = 5  # failed requests per prompt
MOST_ATTEMPTS = {
    "again": ATTEMPTS,
    "busy": 12,  # with pauses, about a minute
    "unusable": 2,  # at temperature 0, answers hardly change
}
"""Attempts per prompt that may fail in this way."""
WAIT = wait_random_exponential(multiplier=0.5, max=20)
MAX_PAUSE = 60.0  # seconds; a service that asks for more is not waited for
TIMEOUT = LLMSettings.llm_timeout
CONCURRENCY = LLMSettings.llm_concurrency  # a local server handles few at a time

KEY = "HIERINDEX_LLM_API_KEY"  # not OpenAI's variable, whose key must not reach other servers
CONTEXT_WINDOW = 8192
SHAPING = ("temperature", "system_prompt", "reasoning_effort", "top_p", "seed", "max_tokens")
SECRET = re.compile("(?i)key|token|secret|password|credential|header|url|base")

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


def load_llm(
    model: str, base_url: str, *, timeout: float = TIMEOUT, completion_tokens: int | None = None
) -> LLM:
    """Load a model of an OpenAI-compatible server, with the key from `HIERINDEX_LLM_API_KEY`.

    Parameters
    ----------
    model : str
    base_url : str
        For example `http://localhost:8000/v1`.
    timeout : float
        Seconds per request.
    completion_tokens : int, optional
        Maximum number of tokens in an answer, reasoning included; by default the caller chooses.
        The model's window is taken to be at least twice as large.

    Returns
    -------
    LLM
        Its client does not retry; `LLMSettings` does.

    Raises
    ------
    ModelError
        If `llama-index-llms-openai-like` is not installed.
    """
    try:
        from llama_index.llms.openai_like import OpenAILike
    except ModuleNotFoundError as error:
        raise ModelError("Language models require `pip install 'hierindex[llm]'`.") from error
    made: Callable[..., LLM] = OpenAILike  # whose parameters type checkers do not see
    return made(
        model=model,
        api_base=base_url,
        api_key=os.environ.get(KEY, "none"),
        is_chat_model=True,
        context_window=max(CONTEXT_WINDOW, 2 * (completion_tokens or 0)),
        timeout=timeout,
        max_tokens=completion_tokens,
        max_retries=0,
        http_client=httpx.Client(
            follow_redirects=True, limits=httpx.Limits(), event_hooks={"response": [show_error]}
        ),
    )


def show_error(response: httpx.Response) -> None:
    """Set an error status if a response with status 200 has an error as body, as from LM Studio."""
    if response.is_success and "json" in response.headers.get("Content-Type", ""):
        response.read()
        with suppress(ValueError, AttributeError):
            if not response.json().get("choices") and reason_in(response.json()):
                response.status_code = 500


def shaping(llm: LLM) -> dict[str, Any]:
    """Return the settings that affect a model's answers, without addresses and secrets."""
    described = {key: getattr(llm, key, None) for key in SHAPING}
    extra = getattr(llm, "additional_kwargs", None) or {}
    described |= {key: value for key, value in extra.items() if not SECRET.search(key)}
    return {key: value for key, value in described.items() if value is not None}


@dataclass(eq=False)
class TokenLimit:
    """A token budget that threads share.

    The maximum cost of a request is reserved before it is sent and replaced by its actual cost
    afterwards. It stays if the request timed out, as the service may answer it all the same.

    Parameters
    ----------
    most : int
    spent : int
        Tokens that are already spent.
    completion_tokens : int
        Maximum number of tokens in an answer.
    """

    most: int
    spent: int = 0
    completion_tokens: int = 0
    _ratio: float = field(default=1.0, init=False)  # largest, of the service's count to ours
    _reserved: int = field(default=0, init=False)
    _settled: Condition = field(default_factory=Condition, init=False)

    def reserve(self, prompt: str) -> Note:
        """Reserve the maximum cost of a request; return a function that settles it by its call.

        Raises
        ------
        LimitError
            If the tokens are not available even after all requests in flight have ended.
        """
        counted = len(get_tokenizer()(prompt)) or 1
        at_most = int(counted * self._ratio) + 1 + self.completion_tokens

        def is_decided() -> bool:
            return self._holds(at_most) or not self._reserved

        def settle(call: Call) -> None:
            cost = call.prompt_tokens + call.completion_tokens
            with self._settled:
                self._reserved -= at_most
                self.spent += at_most if call.fault == TIMED_OUT else cost
                self._ratio = max(self._ratio, call.prompt_tokens / counted)
                self._settled.notify_all()

        with self._settled:
            wait_until(partial(self._settled.wait_for, is_decided))
            if not self._holds(at_most):
                raise LimitError(
                    f"{self.spent:,} of the {self.most:,} tokens of the budget are spent and the "
                    f"next request may take {at_most:,}"
                )
            self._reserved += at_most
        return settle

    def _holds(self, n_tokens: int) -> bool:
        return self.spent + self._reserved + n_tokens <= self.most


@dataclass(eq=False)
class LanguageModel:
    """A language model with limits that all its users share.

    Parameters
    ----------
    llm : LLM
        The model, used without changes; see `without_retries`.
    concurrency : int
        Maximum number of requests in flight. A stream counts until its first chunk. A request that
        is retried counts until its last attempt, so that a busy service gets fewer requests.
    timeout : float
        Seconds per request, or until the next chunk of a stream. A request that times out keeps
        its thread until the server ends it, so five threads may work on one prompt.
    tokens : TokenLimit, optional
        Budget of the requests; streams are not counted.
    has_answered : bool
        Whether the service was ever reachable; if so, a refused connection is retried.
    """

    llm: LLM
    concurrency: int = CONCURRENCY
    timeout: float = inf
    tokens: TokenLimit | None = None
    has_answered: bool = False

    def __post_init__(self) -> None:
        """Make the semaphore of requests in flight."""
        self._free = Semaphore(self.concurrency)

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.llm.metadata.model_name

    def complete(self, prompt: str, note: Note, check: Callable[[Any], T], **options: Any) -> T:
        """Return the checked response to a prompt; see `ask`.

        `check` gets the response with its thoughts.
        """
        return self._sent(
            Request(prompt), partial(self.llm.complete, prompt, **options), note, check
        )

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
        """

        def answer(response: R) -> R:
            said = text_of(response)
            if (answer := answer_in(said)) != said:
                response = with_answer(response, answer)
            return self._checked(response, said, finish_reason(response))

        return self._sent(Request(prompt), send, note, answer)

    def stream(self, prompt: str, send: Callable[[], Iterator[R]], note: Note) -> Iterator[R]:
        """Yield the chunks of a response like `ask`; errors after the first one are not retried."""
        request = Request(prompt)

        def begin() -> tuple[Iterator[R], R | None]:
            pieces = send()
            for first in pieces:
                return pieces, first
            raise ValueError("The stream is empty")

        def begun(found: tuple[Iterator[R], R | None]) -> tuple[Iterator[R], R | None]:
            request.goes_on = True
            return found

        pieces, piece = self._sent(request, begin, note, begun)
        thinks = THINKS.search(self.name) is not None
        stream = Stream(_begins_within.get(self.name, thinks))
        with self._watched(request, note):
            while piece is not None:
                request.response, request.finish = piece, finish_reason(piece) or request.finish
                yield stream.read(piece, piece.delta or "")
                piece = within(self.timeout, partial(next, pieces, None))
            last = stream.end(request.response)
            yield self._checked(last, stream.reply, request.finish)

    def _checked(self, answer: R, said: str, finish: str | None) -> R:
        """Raise RequestError if nothing is left of a reply without its thoughts."""
        _begins_within[self.name] = _begins_within.get(self.name, False) or begins_within(said)
        if (said.strip() or finish in CUT) and not text_of(answer).strip():
            raise RequestError(f"LLM {self.name!r}", Failure("text", NO_ANSWER))
        return answer

    def _sent(
        self, request: Request, send: Callable[[], S], note: Note, check: Callable[[S], T]
    ) -> T:
        """Return the checked result of the first attempt that succeeds."""
        failed = Counter[str]()

        def may_go_on(error: BaseException) -> bool:
            if not isinstance(error, RequestError):
                return False
            kind, pause = error.failure.kind, error.failure.pause
            failed[kind] += 1
            return failed[kind] < MOST_ATTEMPTS.get(kind, 1) and pause <= MAX_PAUSE

        def attempt() -> T:
            notes = [note] if self.tokens is None else [note, self.tokens.reserve(request.prompt)]
            with self._watched(request, *notes):
                request.response = got = within(self.timeout, send)
                return check(got)

        retry = retry_if_exception(may_go_on)
        wait_until(lambda seconds: self._free.acquire(timeout=seconds))
        try:
            return Retrying(retry=retry, wait=_seconds, sleep=pause, reraise=True)(attempt)
        finally:
            self._free.release()

    @contextmanager
    def _watched(self, request: Request, *notes: Note) -> Iterator[None]:
        """Classify the errors of a request, and record it when it has ended."""
        request.response, request.goes_on, fault = None, False, None
        try:
            yield
        except HierindexError as error:
            fault = error.failure.reason if isinstance(error, RequestError) else str(error)
            raise
        except request_errors() as error:
            failure = failure_of(error)
            if failure.kind == "gone" and self.has_answered:
                failure = replace(failure, kind="again")
            fault = failure.reason
            raise error_of(f"LLM {self.name!r}", failure) from error
        finally:
            self.has_answered |= request.response is not None
            if not request.goes_on:
                call = Call.of(request.prompt, request.response, fault, request.finish)
                for note in (*notes, self._warn_of_cut):
                    note(call)

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


def _seconds(state: RetryCallState) -> float:
    """Return the seconds until the next attempt, at least what the service asks for."""
    error = None if state.outcome is None else state.outcome.exception()
    return max(WAIT(state), error.failure.pause if isinstance(error, RequestError) else 0.0)
