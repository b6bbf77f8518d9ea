"""One prompt asked of a language model: within its limits, its failures told apart, recorded."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.utils import get_tokenizer
from tenacity.wait import wait_base

from hierindex.errors import ModelError
from hierindex.llm import Failure, failure_of, service_errors
from hierindex.summarize.limit import AdaptiveLimit, TokenLimit
from hierindex.summarize.output import UnusableError, checked
from hierindex.summarize.summary import Resources, Usage
from hierindex.summarize.transcript import Transcript

Complete = Callable[[str], Awaitable[CompletionResponse]]

MAX_PAUSE = 300.0  # seconds in which a busy service may answer nothing
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError)
"""What clients raise where an answer is not what they expect: a proxy's page, for one."""


class ServiceError(Exception):
    """The service failed to answer a request; see `Failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.kind = failure.kind


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
    transcript: Transcript | None


@dataclass
class Bill:
    """What the requests for one text have cost so far."""

    usage: Usage = field(default_factory=Usage)


class Service:
    """A language model as one level's requests see it; see `Terms`.

    Parameters
    ----------
    terms : Terms
    complete : Complete
        Sends a prompt.
    resources : Resources
        Whose `usage` grows with every request.
    """

    def __init__(self, terms: Terms, complete: Complete, resources: Resources) -> None:
        self._terms = terms
        self._complete = complete
        self._resources = resources
        self._limit = AdaptiveLimit(terms.concurrency)
        spent = resources.usage.prompt_tokens + resources.usage.completion_tokens
        allowed = terms.token_limit
        self._tokens = None if allowed is None else TokenLimit(allowed, spent)
        self._told_by_counted = 1.0  # tokens of prompts, the service's count by ours

    async def rewritten(self, text: str, bill: Bill) -> str:
        """What the model wrote in answer to one request, which is noted on the bill.

        Raises
        ------
        UnusableError
            If that is no summary.
        ServiceError
            If there is no answer, for this text.
        ModelError
            If there will be none for any text.
        LimitError
            If the request might exceed the tokens; it is not sent.
        """
        prompt, terms = self._terms.prompt(text), self._terms
        counted = len(get_tokenizer()(prompt))
        at_most = int(counted * self._told_by_counted) + 1 + terms.completion_tokens
        if self._tokens is not None:
            await self._tokens.reserve(at_most)
        spent, response, fault, cost = Usage(llm_calls=1), None, None, 0
        try:
            async with self._limit.slot():
                cost = at_most  # of a request whose outcome is not known
                response = await self._answered(prompt)
            spent += _tokens(prompt, response)
            cost = spent.prompt_tokens + spent.completion_tokens
            self._told_by_counted = max(self._told_by_counted, spent.prompt_tokens / counted)
            return checked(response, prompt, text, terms.max_tokens)
        except (UnusableError, ServiceError, ModelError) as error:
            fault = str(error)
            raise
        finally:
            if cost:  # it was sent
                bill.usage += spent
                self._resources.usage += spent
                if terms.transcript is not None:
                    terms.transcript.add(terms.name, prompt, response, spent, fault)
            if self._tokens is not None:
                await self._tokens.settle(at_most, cost)

    async def _answered(self, prompt: str) -> CompletionResponse:
        """The service's response, its failures told apart."""
        sent = time.monotonic()
        try:
            response = await asyncio.wait_for(self._complete(prompt), self._terms.timeout)
        except UNREADABLE as error:
            reason = f"the answer cannot be read ({error})"
            raise ServiceError(Failure("again", reason)) from error
        except service_errors() as error:
            raise self._meaning(failure_of(error), sent) from error
        self._limit.answered()
        return response

    def _meaning(self, failure: Failure, sent: float) -> Exception:
        """What a failure means for all texts, or else for this one."""
        name = self._terms.name
        if failure.kind == "gone" and self.has_answered:  # it was there
            failure = replace(failure, kind="again")
        if failure.kind in ("gone", "final"):
            return ModelError(f"LLM {name!r} cannot be used: {failure.reason}.")
        if failure.kind == "busy":
            self._limit.slow_down(sent, failure.pause)
            since = self._limit.busy_since or sent
            if failure.pause > MAX_PAUSE or time.monotonic() - since > MAX_PAUSE:
                return ModelError(
                    f"LLM {name!r} is busy and asks not to be asked for {failure.pause:.0f} "
                    "seconds; what it wrote is kept with an index, build again later."
                )
        return ServiceError(failure)

    @property
    def has_answered(self) -> bool:
        """Whether it was ever of use, to this build."""
        return self._resources.usage.completion_tokens > 0


def _tokens(prompt: str, response: CompletionResponse) -> Usage:
    """The service's own count, where it gives one."""
    told = response.additional_kwargs
    return Usage(
        prompt_tokens=told.get("prompt_tokens") or len(get_tokenizer()(prompt)),
        completion_tokens=told.get("completion_tokens")
        or len(get_tokenizer()(response.text or "")),
    )
