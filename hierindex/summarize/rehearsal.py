"""Rehearsal of a summariser: counting its requests without sending them."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from llama_index.core.utils import get_tokenizer

from hierindex.errors import InputError
from hierindex.llm.record import Usage
from hierindex.summarize.extractive import ExtractiveSummarizer
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Resources, Summarizer
from hierindex.summarize.two_stage import Rewrite, Rewriter, TwoStageSummarizer, of_each


def rehearsed(summarizer: Summarizer) -> Summarizer:
    """Return a copy of the summariser that sends no requests.

    Groups and extracts stay the same. Cached rewrites are used; the beginning of the extract
    stands in for the others. The usage counts the requests that would be sent, the tokens of
    their prompts and the maximum tokens of their answers.

    Raises
    ------
    InputError
        If it is neither an `ExtractiveSummarizer` nor a `TwoStageSummarizer`.
    """
    if isinstance(summarizer, ExtractiveSummarizer):
        return summarizer
    if not isinstance(summarizer, TwoStageSummarizer):
        raise InputError(
            f"The cost of {type(summarizer).__name__} cannot be estimated; use an "
            "ExtractiveSummarizer or a TwoStageSummarizer."
        )
    rehearsal = copy(summarizer)
    rehearsal.rewriter = _Rehearsal(summarizer.rewriter)
    return rehearsal


class _Rehearsal:
    """A rewriter that returns cached rewrites, or else the text itself with the cost."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self.name = rewriter.name

    def to_dict(self) -> dict[str, Any]:
        return self._rewriter.to_dict()

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        distinct = dict.fromkeys(texts)
        return of_each(texts, {t: self._rewrite(t, max_tokens, resources) for t in distinct})

    async def arewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        return self.rewrite(texts, max_tokens=max_tokens, resources=resources)

    def _rewrite(self, text: str, max_tokens: int, resources: Resources | None) -> Rewrite:
        rewriter, completions = self._rewriter, resources and resources.completions
        if not isinstance(rewriter, LLMRewriter):
            return Rewrite(text)
        if completions and (known := completions.recall(rewriter.key_of(text, max_tokens))):
            title, written = rewriter.split(known)
            return Rewrite(written, Usage(cached_summaries=1), title=title)
        usage = Usage(
            llm_calls=1,
            prompt_tokens=len(get_tokenizer()(rewriter.prompt_of(text, max_tokens))),
            completion_tokens=rewriter.completion_tokens(max_tokens),
        )
        return Rewrite(text, usage)
