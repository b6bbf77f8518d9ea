"""Rewrites of a level's texts by a language model, with a cache and halving of long texts."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from llama_index.core.base.llms.types import CompletionResponse

from hierindex.errors import LimitError, ModelError
from hierindex.models.failures import RequestError
from hierindex.models.llm import LanguageModel
from hierindex.models.record import Calls, UnusableError, Usage
from hierindex.summarize.replies import checked
from hierindex.summarize.rewrites import Rewrite, of_each
from hierindex.summarize.summary import Resources, with_title
from hierindex.text.sentences import split_sentences
from hierindex.threads import each

if TYPE_CHECKING:
    from hierindex.summarize.llm import LLMRewriter

PATIENCE = 8  # consecutive texts that fail because of the service, before it is given up
MAX_HALVINGS = 4  # of one text; if a sixteenth is still too long, there is another cause


@dataclass
class Requests:
    """The requests of one level; adds what they cost to `resources.usage`."""

    rewriter: "LLMRewriter"
    model: LanguageModel
    max_tokens: int
    resources: Resources
    stopped: LimitError | None = None
    n_failed: int = 0  # consecutive texts
    _lock: Lock = field(default_factory=Lock)

    def rewrites(self, texts: Sequence[str]) -> list[Rewrite]:
        """Return one rewrite for each text, in order; equal texts share a request.

        Raises
        ------
        LimitError
            If the token limit is reached, after the requests in flight have ended, or if the
            deadline has passed, which abandons them.
        ModelError
            If the service refuses, or fails repeatedly.
        """
        deadline, left = self.rewriter.deadline, None
        over = LimitError(f"the deadline of {deadline or 0:g} s is over")
        if deadline is not None:
            left = self.resources.started + deadline - time.monotonic()
            if left <= 0:
                raise self._stop(over)
        distinct = list(dict.fromkeys(texts))
        done: dict[str, Rewrite] = {}

        def rewrite(text: str) -> None:
            rewritten = self._rewrite(text)
            with self._lock:
                done[text] = rewritten
                self.resources.progress("summarize", len(done), len(distinct), self._cost())

        try:
            each([partial(rewrite, text) for text in distinct], self.model.limit.most, left)
        except TimeoutError:
            self.stopped = over
        if self.stopped is not None:
            raise self._stop(self.stopped)
        if distinct and self.n_failed == len(distinct) and not self.model.has_answered:
            raise self._given_up(next(filter(None, (done[text].reason for text in distinct))))
        return of_each(texts, done)

    def _rewrite(self, text: str, n_halvings: int = 0) -> Rewrite:
        """Return the cached rewrite of a text, or request and cache it."""
        key, completions = self.rewriter.key_of(text, self.max_tokens), self.resources.completions
        if (known := completions.recall(key)) is not None:
            title, written = self.rewriter.split(known)
            return Rewrite(written, Usage(cached_summaries=1), title=title, key=key)
        if self.stopped:
            return Rewrite(None)
        rewrite = self._asked_for(text, n_halvings)
        if rewrite.text is not None:
            completions.keep(key, with_title(rewrite.title, rewrite.text))
            rewrite = replace(rewrite, key=key)
        return rewrite

    def _asked_for(self, text: str, n_halvings: int) -> Rewrite:
        calls = Calls(self.model.name, self.rewriter.record)
        try:
            title, written = self._written(text, calls)
        except LimitError as error:
            self.stopped = error
            return Rewrite(None, calls.usage)
        except UnusableError as error:
            return Rewrite(None, calls.usage, str(error))
        except RequestError as error:
            kind, reason = error.failure.kind, error.failure.reason
            if kind == "length" and n_halvings < MAX_HALVINGS:
                return self._rewritten_in_halves(text, n_halvings + 1, calls.usage)
            if kind in ("again", "busy"):  # not caused by the text
                with self._lock:
                    self.n_failed += 1
                if self.n_failed >= PATIENCE:
                    raise self._given_up(reason) from error
            return Rewrite(None, calls.usage, reason)
        self.n_failed = 0
        return Rewrite(written, calls.usage, title=title)

    def _written(self, text: str, calls: Calls) -> tuple[str, str]:
        """Return the model's title and summary of a text; the cost counts even if it fails."""
        prompt = self.rewriter.prompt_of(text, self.max_tokens)
        options, split = self.rewriter.options(self.max_tokens), self.rewriter.split

        def check(response: CompletionResponse) -> tuple[str, str]:
            return checked(response, prompt, text, self.max_tokens, split)

        try:
            return self.model.complete(prompt, calls.add, check, **options)
        finally:
            with self._lock:
                self.resources.usage += calls.usage

    def _rewritten_in_halves(self, text: str, n_halvings: int, usage: Usage) -> Rewrite:
        """Rewrite the halves of a text, then rewrite their joined rewrites."""
        written = list[str]()
        for half in _halves(text):
            rewrite = self._rewrite(half, n_halvings)
            usage += rewrite.usage
            if rewrite.text is None:
                return replace(rewrite, usage=usage)
            written.append(rewrite.text)
        joined = "\n\n".join(written)
        if len(joined) >= len(text):
            return Rewrite(None, usage, "it is too long for the model, which did not shorten it")
        rewrite = self._rewrite(joined, n_halvings)
        return replace(rewrite, usage=usage + rewrite.usage)

    def _given_up(self, reason: str) -> ModelError:
        return ModelError(
            f"LLM {self.model.name!r} failed for {self.n_failed} texts in a row, each after "
            f"several attempts; the last failure: {reason}."
        )

    def _stop(self, limit: LimitError) -> LimitError:
        return LimitError(
            f"LLM {self.model.name!r} stopped at its limit after {self._cost()}: {limit}; the "
            "next build of the index continues from there."
        )

    def _cost(self) -> str:
        usage = self.resources.usage
        n_tokens = usage.prompt_tokens + usage.completion_tokens
        return f"{usage.llm_calls:,} calls, {n_tokens:,} tokens"


def _halves(text: str) -> list[str]:
    """Split a text in half at the end of a sentence, or anywhere if it is a single one."""
    ends = [sentence.to for sentence in split_sentences(text)][:-1]
    middle = min(ends, key=lambda end: abs(end - len(text) // 2), default=len(text) // 2)
    return [half for half in (text[:middle].strip(), text[middle:].strip()) if half]
