"""Any LlamaIndex language model as the abstractive stage."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.llms import LLM
from llama_index.core.utils import get_tokenizer
from tenacity import AsyncRetrying, Retrying
from tenacity.wait import wait_base

from hierindex.errors import InputError, ModelError
from hierindex.llm import WAIT, refusal, retrying, service_errors
from hierindex.progress import Progress, silent
from hierindex.summarize.prompts import SUMMARY_PROMPT, summary_prompt
from hierindex.summarize.summary import Usage
from hierindex.summarize.two_stage import Rewrite

CONCURRENCY = 4  # requests in flight; a local server handles few at a time


class LLMRewriter:
    """Summaries by a language model, with bounded concurrency and retries.

    Parameters
    ----------
    llm : LLM
        Any. Switch its own retries off, so that `llm_calls` counts every request.
    concurrency : int
        Most requests in flight at once.
    prompt : str
        With the fields `{text}`, `{fence}` and `{n_words}`.
    wait : wait_base
        Tenacity's wait between attempts.

    Raises
    ------
    ModelError
        While rewriting, if the service cannot be reached or refuses the request. What
        fails otherwise (429, 5xx, a timeout) is tried again; then its text is None.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        concurrency: int = CONCURRENCY,
        prompt: str = SUMMARY_PROMPT,
        wait: wait_base = WAIT,
    ) -> None:
        if concurrency < 1:
            raise InputError(f"concurrency must be at least 1, got {concurrency}.")
        self.llm = llm
        self.concurrency = concurrency
        self.prompt = prompt
        self.wait = wait

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.llm.metadata.model_name

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes a rewrite; no address and no key."""
        temperature = getattr(self.llm, "temperature", None)
        return {"llm": self.name, "temperature": temperature, "prompt": self.prompt}

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """One rewrite for each text, in order; `max_tokens` bounds the words that are asked for."""
        rewrites = []
        with ThreadPoolExecutor(self.concurrency) as pool:
            futures = [pool.submit(self._ask, text, max_tokens) for text in texts]
            try:
                for future in futures:
                    rewrites.append(future.result())
                    progress("summarize", len(rewrites), len(texts))
            finally:
                pool.shutdown(cancel_futures=True)  # after a failure, those not yet sent
        return rewrites

    async def arewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """As `rewrite`, by the model's own async calls."""
        gate = asyncio.Semaphore(self.concurrency)
        n_done = 0

        async def ask(text: str) -> Rewrite:
            nonlocal n_done
            async with gate:
                rewrite = await self._aask(text, max_tokens)
            n_done += 1
            progress("summarize", n_done, len(texts))
            return rewrite

        try:
            async with asyncio.TaskGroup() as tasks:  # the first failure for good cancels the rest
                asked = [tasks.create_task(ask(text)) for text in texts]
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return [task.result() for task in asked]

    def _ask(self, text: str, max_tokens: int) -> Rewrite:
        prompt = summary_prompt(text, max_tokens=max_tokens, template=self.prompt)
        attempts = Retrying(**retrying(self.wait))
        try:
            return self._rewrite(prompt, attempts(self.llm.complete, prompt), attempts)
        except service_errors() as error:
            return self._failed(error, attempts)

    async def _aask(self, text: str, max_tokens: int) -> Rewrite:
        prompt = summary_prompt(text, max_tokens=max_tokens, template=self.prompt)
        attempts = AsyncRetrying(**retrying(self.wait))
        try:
            return self._rewrite(prompt, await attempts(self.llm.acomplete, prompt), attempts)
        except service_errors() as error:
            return self._failed(error, attempts)

    def _rewrite(
        self, prompt: str, response: CompletionResponse, attempts: Retrying | AsyncRetrying
    ) -> Rewrite:
        told = response.additional_kwargs  # the service's own count, where it gives one
        usage = Usage(
            llm_calls=attempts.statistics["attempt_number"],
            prompt_tokens=told.get("prompt_tokens") or len(get_tokenizer()(prompt)),
            completion_tokens=told.get("completion_tokens") or len(get_tokenizer()(response.text)),
        )
        return Rewrite(response.text.strip() or None, usage)

    def _failed(self, error: Exception, attempts: Retrying | AsyncRetrying) -> Rewrite:
        if reason := refusal(error):
            raise ModelError(f"LLM {self.name!r} cannot be used: {reason}.") from error
        return Rewrite(None, Usage(llm_calls=attempts.statistics["attempt_number"]))
