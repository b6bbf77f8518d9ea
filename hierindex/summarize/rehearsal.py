"""A summariser that asks no model, but counts what it would ask."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from llama_index.core.utils import get_tokenizer

from hierindex.errors import InputError
from hierindex.llm.usage import Usage
from hierindex.summarize.extractive import ExtractiveSummarizer
from hierindex.summarize.grounding import Grounding, Pair, Support, support_by_words
from hierindex.summarize.known import Embed
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Resources, Summarizer
from hierindex.summarize.two_stage import Rewrite, Rewriter, TwoStageSummarizer, of_each


def rehearsed(summarizer: Summarizer) -> Summarizer:
    """The summariser with the same groups, extracts and ids, but without a rewriting model.

    What is known already stands where it would; for the rest, the extract's beginning. Its
    usage has the requests that would be sent, the tokens of their prompts, and the most that
    the answers may have.

    Raises
    ------
    InputError
        If it is of another kind, that would have to be asked.
    """
    if isinstance(summarizer, ExtractiveSummarizer):
        return summarizer
    if not isinstance(summarizer, TwoStageSummarizer):
        raise InputError(
            f"What {type(summarizer).__name__} would cost is not known: only extractive summaries "
            "and those of a TwoStageSummarizer can be rehearsed."
        )
    rehearsal = copy(summarizer)
    rehearsal.rewriter = _Rehearsal(summarizer.rewriter)
    rehearsal.grounding = summarizer.grounding and _Unlooked(summarizer.grounding)
    return rehearsal


class _Rehearsal:
    """Hands back what is known, or the text itself, and says what a rewrite would cost."""

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
            return Rewrite(known, Usage(cached_summaries=1))
        usage = Usage(
            llm_calls=1,
            prompt_tokens=len(get_tokenizer()(rewriter.prompt_of(text, max_tokens))),
            completion_tokens=rewriter.completion_tokens(max_tokens),
        )
        return Rewrite(text, usage)


class _Unlooked:
    """A grounding that embeds nothing."""

    def __init__(self, grounding: Grounding) -> None:
        self._grounding = grounding

    def to_dict(self) -> dict[str, Any]:
        return self._grounding.to_dict()

    def support(self, pairs: Sequence[Pair], embed: Embed | None) -> list[Support]:
        return support_by_words(pairs)
