"""From texts to a language model's rewrites: recalled, asked for, halved, given up.

The tasks of one event loop pull texts, as many at once as may be in flight; they share one
`Service`, with its limits, and what the build has spent.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from llama_index.core.base.llms.types import CompletionResponse

from hierindex.errors import LimitError, ModelError
from hierindex.llm.checks import UnusableError
from hierindex.llm.failures import RequestError
from hierindex.llm.record import Calls
from hierindex.llm.service import Service
from hierindex.llm.usage import Usage
from hierindex.summarize.checked import checked
from hierindex.summarize.sentences import split_sentences
from hierindex.summarize.summary import Resources
from hierindex.summarize.two_stage import Rewrite, of_each

PATIENCE = 8  # texts that fail one after the other for the service's failures
MAX_HALVINGS = 4  # of one text: what is too long in sixteen parts is too long for another reason

Complete = Callable[[str], Awaitable[CompletionResponse]]
"""Sends a prompt."""


@dataclass
class Requests:
    """The requests of one level, as `LLMRewriter` wants them; `resources.usage` grows with each."""

    service: Service
    complete: Complete
    resources: Resources
    prompt: Callable[[str], str]
    key: Callable[[str], str]
    max_tokens: int
    deadline: float | None
    record: Path | None
    stopped: LimitError | None = None
    n_failed: int = 0  # texts, one after the other
    last_failure: str = ""

    async def rewrites(self, texts: Sequence[str]) -> list[Rewrite]:
        """One rewrite for each text, in order; what is there twice is asked for once.

        Raises
        ------
        LimitError
            If tokens or time are used up. Of tokens, what is in flight is waited for; of time,
            it is lost.
        ModelError
            If the service refuses, or fails again and again.
        """
        if self._seconds_left() == 0:
            raise self._stop(self._over())
        distinct = list(dict.fromkeys(texts))
        done: dict[str, Rewrite] = {}
        left = iter(distinct)

        async def work() -> None:
            for text in left:
                done[text] = await self._rewrite(text)
                self.resources.progress("summarize", len(done), len(distinct), self._cost())

        try:
            async with asyncio.timeout(self._seconds_left()), asyncio.TaskGroup() as tasks:
                for _ in range(min(self.service.limit.most, len(distinct))):
                    tasks.create_task(work())
        except BaseExceptionGroup as failures:  # the first cancels the others
            raise failures.exceptions[0] from failures.exceptions[0].__cause__
        except TimeoutError:
            self.stopped = self._over()
        if self.stopped is not None:
            raise self._stop(self.stopped)
        if distinct and self.n_failed == len(distinct) and not self.service.has_answered:
            raise self._given_up()
        return of_each(texts, done)

    async def _rewrite(self, text: str, n_halvings: int = 0) -> Rewrite:
        """A text's rewrite: an earlier one, or the model's; of halves, if it is too long."""
        key, completions = self.key(text), self.resources.completions
        if completions is not None:
            known = await asyncio.to_thread(completions.recall, key)
            if known is not None:
                return Rewrite(known, Usage(cached_summaries=1))
        if self.stopped:
            return Rewrite(None)
        rewrite = await self._asked_for(text, n_halvings)
        if rewrite.text is not None and completions is not None:
            await asyncio.to_thread(completions.keep, key, rewrite.text)
        return rewrite

    async def _asked_for(self, text: str, n_halvings: int) -> Rewrite:
        """The model's rewrite, or why there is none."""
        calls = Calls(self.service.name, self.record)
        try:
            written = await self._written(text, calls)
        except LimitError as error:
            self.stopped = error
            return Rewrite(None, calls.usage)
        except UnusableError as error:
            return Rewrite(None, calls.usage, str(error))
        except RequestError as error:
            if error.failure.kind == "length" and n_halvings < MAX_HALVINGS:
                return _with(calls.usage, await self._rewritten_in_halves(text, n_halvings + 1))
            if error.failure.kind in ("again", "busy"):  # or it is the text's
                self._count_failure(error.failure.reason)
            return Rewrite(None, calls.usage, error.failure.reason)
        self.n_failed = 0
        return Rewrite(written, calls.usage)

    async def _written(self, text: str, calls: Calls) -> str:
        """The model's summary of a text; what it costs is spent, whatever comes of it."""
        prompt = self.prompt(text)

        def check(response: CompletionResponse) -> str:
            return checked(response, prompt, text, self.max_tokens)

        try:
            return await self.service.aask(prompt, partial(self.complete, prompt), calls.add, check)
        finally:
            self.resources.usage += calls.usage

    async def _rewritten_in_halves(self, text: str, n_halvings: int) -> Rewrite:
        """The rewrite of the rewrites of a text's halves."""
        usage, written = Usage(), list[str]()
        for half in _halves(text):
            rewrite = await self._rewrite(half, n_halvings)
            usage = _both(usage, rewrite.usage)
            if rewrite.text is None:
                return Rewrite(None, usage, rewrite.reason)
            written.append(rewrite.text)
        joined = "\n\n".join(written)
        if len(joined) >= len(text):
            return Rewrite(None, usage, "it is too long for the model, which does not shorten it")
        return _with(usage, await self._rewrite(joined, n_halvings))

    def _count_failure(self, reason: str) -> None:
        """Give up a service that fails text after text."""
        self.n_failed, self.last_failure = self.n_failed + 1, reason
        if self.n_failed >= PATIENCE:
            raise self._given_up()

    def _given_up(self) -> ModelError:
        return ModelError(
            f"LLM {self.service.name!r} failed for {self.n_failed} texts one after the other, each "
            f"tried again and again; last, {self.last_failure}."
        )

    def _seconds_left(self) -> float | None:
        if self.deadline is None:
            return None
        left = self.resources.started + self.deadline - time.monotonic()
        return max(0.0, left)

    def _over(self) -> LimitError:
        return LimitError(f"the time it may take, {self.deadline:g} s, is over")

    def _stop(self, limit: LimitError) -> LimitError:
        return LimitError(
            f"LLM {self.service.name!r} stopped at its limit, after {self._cost()}: {limit}; the "
            "next build of the index goes on from there."
        )

    def _cost(self) -> str:
        usage = self.resources.usage
        return (
            f"{usage.llm_calls:,} calls, {usage.prompt_tokens + usage.completion_tokens:,} tokens"
        )


def _with(usage: Usage, rewrite: Rewrite) -> Rewrite:
    """The rewrite, with what was spent before."""
    return replace(rewrite, usage=_both(usage, rewrite.usage))


def _both(usage: Usage, other: Usage) -> Usage:
    """What parts of one summary cost; it is cached if all of them are."""
    total = usage + other
    cached = bool(total.cached_summaries and not total.llm_calls)
    return replace(total, cached_summaries=int(cached))


def _halves(text: str) -> list[str]:
    """Two runs of whole sentences of about one length; of one sentence, its two halves."""
    ends = [sentence.quote.to for sentence in split_sentences(text)][:-1]
    middle = min(ends, key=lambda end: abs(end - len(text) // 2), default=len(text) // 2)
    return [half for half in (text[:middle].strip(), text[middle:].strip()) if half]
