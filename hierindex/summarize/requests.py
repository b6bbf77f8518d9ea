"""From texts to a language model's rewrites: each asked, checked, tried again, split, given up.

The tasks of one event loop pull texts, as many at once as may be in flight. What is shared
between them, the limits and what was spent, stands in one object.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.utils import get_tokenizer
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_base

from hierindex.errors import LimitError, ModelError
from hierindex.llm import (
    ATTEMPTS,
    is_filtered,
    is_too_long,
    refusal,
    retry_after,
    service_errors,
    status_of,
)
from hierindex.summarize.limit import AdaptiveLimit, TokenLimit
from hierindex.summarize.output import UnusableError, checked, finish_reason
from hierindex.summarize.sentences import split_sentences
from hierindex.summarize.summary import Resources, Usage
from hierindex.summarize.two_stage import Rewrite

Complete = Callable[[str], Awaitable[CompletionResponse]]

UNUSABLE = 2  # answers to one prompt; at temperature 0 a third would be no other
PATIENCE = 8  # texts that fail before the first that does not
MAX_PAUSE = 300.0  # seconds that a service may ask to be left alone
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError)
"""What clients raise where an answer is not what they expect: a proxy's page, for one."""


class _PassingError(Exception):
    """The service failed, and may not fail again."""


class _TooLongError(Exception):
    """The prompt is longer than the model reads."""


@dataclass(frozen=True)
class Terms:
    """What a language model is asked, and under which limits; see `LLMRewriter`."""

    name: str
    prompt: Callable[[str], str]
    key: Callable[[str], str]
    max_tokens: int
    completion_tokens: int
    concurrency: int
    timeout: float | None
    deadline: float | None
    token_limit: int | None
    wait: wait_base
    record: Path | None


@dataclass
class _Bill:
    """What the requests for one text have cost so far."""

    usage: Usage = field(default_factory=Usage)


@dataclass
class Requests:
    """The requests of one level.

    Parameters
    ----------
    terms : Terms
    complete : Complete
        Sends a prompt.
    resources : Resources
        Whose `usage` grows with every request.
    """

    terms: Terms
    complete: Complete
    resources: Resources
    stopped: LimitError | None = None
    n_written: int = 0
    n_failed: int = 0
    limit: AdaptiveLimit = field(init=False)
    tokens: TokenLimit | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        usage = self.resources.usage
        self.limit = AdaptiveLimit(self.terms.concurrency)
        if self.terms.token_limit is not None:
            spent = usage.prompt_tokens + usage.completion_tokens
            self.tokens = TokenLimit(self.terms.token_limit, spent)

    async def rewrites(self, texts: Sequence[str]) -> list[Rewrite]:
        """One rewrite for each text, in order.

        Raises
        ------
        LimitError
            If tokens or time are used up; what was sent before is answered and kept.
        ModelError
            If the service refuses, or answers nothing at all.
        """
        done: dict[int, Rewrite] = {}
        left = iter(enumerate(texts))

        async def work() -> None:
            for i, text in left:
                done[i] = await self._rewrite(text)
                self.resources.progress("summarize", len(done), len(texts), self._cost())

        try:
            async with asyncio.timeout(self._seconds_left()), asyncio.TaskGroup() as tasks:
                for _ in range(min(self.terms.concurrency, len(texts))):
                    tasks.create_task(work())
        except BaseExceptionGroup as failures:  # the first cancels the others
            raise failures.exceptions[0] from None
        except TimeoutError:
            self.stopped = LimitError(f"the {self.terms.deadline:g} seconds are over")
        if self.stopped is not None:
            raise LimitError(
                f"LLM {self.terms.name!r} stopped at its limit: {self.stopped}; what it wrote is "
                "kept with an index, so build again with a higher limit."
            )
        return [done[i] for i in range(len(texts))]

    async def _rewrite(self, text: str) -> Rewrite:
        """A text's rewrite: an earlier one, or the model's; of halves, if it is too long."""
        key, completions = self.terms.key(text), self.resources.completions
        if completions is not None and (known := completions.recall(key)) is not None:
            return Rewrite(known, Usage(cached_summaries=1))
        if self.stopped:
            return Rewrite(None)
        bill = _Bill()
        try:
            written = await self._written(text, bill)
        except _TooLongError:
            return _with(bill.usage, await self._rewritten_in_halves(text))
        except LimitError as error:
            self.stopped = error
            return Rewrite(None, bill.usage)
        except (_PassingError, UnusableError) as error:
            self._failed(error)
            return Rewrite(None, bill.usage, str(error))
        self.n_written += 1
        if completions is not None:
            completions.keep(key, written)
        return Rewrite(written, bill.usage)

    async def _rewritten_in_halves(self, text: str) -> Rewrite:
        """The rewrite of the rewrites of a text's halves."""
        halves = _halves(text)
        if len(halves) < 2:
            return Rewrite(None, Usage(), "it is too long for the model")
        rewrites = [await self._rewrite(half) for half in halves]
        usage = _sum(rewrite.usage for rewrite in rewrites)
        joined = "\n\n".join(rewrite.text or "" for rewrite in rewrites)
        if lost := next((rewrite for rewrite in rewrites if rewrite.text is None), None):
            return Rewrite(None, usage, lost.reason)
        if len(joined) >= len(text):
            return Rewrite(None, usage, "it is too long for the model, which does not shorten it")
        return _with(usage, await self._rewrite(joined))

    async def _written(self, text: str, bill: _Bill) -> str:
        """What the model wrote, tried again where that may help."""
        n_unusable = 0

        def again(error: BaseException) -> bool:
            nonlocal n_unusable
            if isinstance(error, UnusableError):
                n_unusable += 1
                return error.again and n_unusable < UNUSABLE
            return isinstance(error, _PassingError)

        attempts = AsyncRetrying(
            retry=retry_if_exception(again),
            stop=stop_after_attempt(ATTEMPTS),
            wait=self.terms.wait,
            reraise=True,
        )
        return await attempts(self._asked, text, bill)

    async def _asked(self, text: str, bill: _Bill) -> str:
        """What the model wrote in answer to one request, if it is a summary."""
        prompt, terms = self.terms.prompt(text), self.terms
        async with self.limit.slot():
            reserved = await self._reserve(prompt)
            spent = Usage(llm_calls=1)
            try:
                response = await self._answered(prompt)
                spent += _tokens(prompt, response)
            finally:
                bill.usage += spent
                self.resources.usage += spent
                if self.tokens is not None:
                    await self.tokens.settle(
                        reserved, spent.prompt_tokens + spent.completion_tokens
                    )
        self.limit.answered()
        fault = None
        try:
            return checked(response, prompt, text, terms.max_tokens)
        except UnusableError as error:
            fault = str(error)
            raise
        finally:
            self._note(prompt, response, spent, fault)

    async def _reserve(self, prompt: str) -> int:
        """Reserve the most that a request can cost."""
        if self.tokens is None:
            return 0
        n_tokens = len(get_tokenizer()(prompt)) + self.terms.completion_tokens
        await self.tokens.reserve(n_tokens)
        return n_tokens

    async def _answered(self, prompt: str) -> CompletionResponse:
        """The service's response, its failures told apart."""
        sent = time.monotonic()
        try:
            return await asyncio.wait_for(self.complete(prompt), self.terms.timeout)
        except UNREADABLE as error:
            raise _PassingError(f"the answer cannot be read ({error})") from error
        except service_errors() as error:
            raise self._meaning(error, sent) from error

    def _meaning(self, error: Exception, sent: float) -> Exception:
        """What a failure means for the text, and for all others."""
        if is_too_long(error):
            return _TooLongError()
        if is_filtered(error):
            return UnusableError("the service refuses this text", again=False)
        if reason := refusal(error):
            return ModelError(f"LLM {self.terms.name!r} cannot be used: {reason}.")
        status = status_of(error)
        if status == 429:
            if (wait := retry_after(error)) > MAX_PAUSE:
                return ModelError(
                    f"LLM {self.terms.name!r} asks not to be asked for {wait:.0f} seconds; what it "
                    "wrote is kept with an index, build again then."
                )
            self.limit.slow_down(sent, wait)
        if status is not None:
            return _PassingError(f"the service answered with HTTP status {status}")
        timed_out = isinstance(error, TimeoutError) or "timed out" in str(error).lower()
        return _PassingError("the service did not answer in time" if timed_out else f"{error}")

    def _failed(self, error: Exception) -> None:
        """Give up a service that has not answered one of many texts."""
        self.n_failed += isinstance(error, _PassingError)
        if self.n_failed >= PATIENCE and not self.n_written:
            raise ModelError(
                f"LLM {self.terms.name!r} answered none of {self.n_failed} texts, each tried "
                f"{ATTEMPTS} times; last, {error}."
            )

    def _seconds_left(self) -> float | None:
        if self.terms.deadline is None:
            return None
        return max(0.0, self.resources.started + self.terms.deadline - time.monotonic())

    def _cost(self) -> str:
        usage = self.resources.usage
        return (
            f"{usage.llm_calls:,} calls, {usage.prompt_tokens + usage.completion_tokens:,} tokens"
        )

    def _note(
        self, prompt: str, response: CompletionResponse, usage: Usage, fault: str | None
    ) -> None:
        """Record a request and its answer, where that is asked for."""
        if self.terms.record is None:
            return
        line = {
            "model": self.terms.name,
            "prompt": prompt,
            "completion": response.text,
            "finish_reason": finish_reason(response),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "fault": fault,
        }
        with self.terms.record.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _tokens(prompt: str, response: CompletionResponse) -> Usage:
    """The service's own count, where it gives one."""
    told = response.additional_kwargs
    return Usage(
        prompt_tokens=told.get("prompt_tokens") or len(get_tokenizer()(prompt)),
        completion_tokens=told.get("completion_tokens")
        or len(get_tokenizer()(response.text or "")),
    )


def _with(usage: Usage, rewrite: Rewrite) -> Rewrite:
    """The rewrite, with what was spent before."""
    return replace(rewrite, usage=_sum([usage, rewrite.usage]))


def _sum(parts: Iterable[Usage]) -> Usage:
    """What parts of one summary cost; it is cached if all of them are."""
    total = sum(parts, Usage())
    return replace(
        total, cached_summaries=int(bool(total.cached_summaries and not total.llm_calls))
    )


def _halves(text: str) -> list[str]:
    """Two runs of whole sentences of about one length; of one sentence, its two halves."""
    ends = [sentence.quote.to for sentence in split_sentences(text)][:-1]
    middle = min(ends, key=lambda end: abs(end - len(text) // 2), default=len(text) // 2)
    return [half for half in (text[:middle].strip(), text[middle:].strip()) if half]
