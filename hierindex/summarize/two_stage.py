"""Extractive, then abstractive: a model rewrites the extract of each group."""

import asyncio
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from hierindex.errors import FallbackWarning, SummaryError
from hierindex.summarize.extractive import (
    ExtractiveSummarizer,
    Extractor,
    SalientSentences,
    fitting_sentences,
)
from hierindex.summarize.sentences import Sentence, split_sentences
from hierindex.summarize.summary import (
    Budget,
    Group,
    Resources,
    Summary,
    Usage,
    join_sentences,
)
from hierindex.summarize.vectors import tf_idf

EXTRACT_TOKENS = 900  # within the 1,024 that bart-large-cnn reads, and RAPTOR's 900-odd per summary


@dataclass(frozen=True)
class Rewrite:
    """A model's summary of one text; `text` is None where it failed for good, for a `reason`."""

    text: str | None
    usage: Usage = field(default_factory=Usage)
    reason: str | None = None


class Rewriter(Protocol):
    """Summarises texts in its own words, in order."""

    @property
    def name(self) -> str:
        """Name of the model."""

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes a rewrite."""

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """One rewrite for each text, in order, of about `max_tokens` tokens at most."""

    async def arewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """As `rewrite`, without blocking the event loop."""


class TwoStageSummarizer:
    """Extract the salient sentences of each group, then let a model rewrite them.

    Parameters
    ----------
    rewriter : Rewriter
        `Seq2SeqRewriter` or `LLMRewriter`.
    extractor : Extractor, optional
        `SalientSentences` on TF-IDF vectors by default.
    extract_tokens : int, optional
        Tokens of an extract; None hands the model all sentences of a group.
    strict : bool
        Whether a failed rewrite is an error. Otherwise the extract stands in its place,
        marked `extractive_fallback`, counted and warned of.

    Raises
    ------
    SummaryError
        While summarising, if `strict` and a rewrite fails for good.
    """

    def __init__(
        self,
        rewriter: Rewriter,
        extractor: Extractor | None = None,
        *,
        extract_tokens: int | None = EXTRACT_TOKENS,
        strict: bool = False,
    ) -> None:
        self.rewriter = rewriter
        self.extractor = SalientSentences() if extractor is None else extractor
        self.extract_tokens = extract_tokens
        self.strict = strict

    @property
    def name(self) -> str:
        """Name of the rewriting model."""
        return self.rewriter.name

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes a summary's text."""
        return {
            "type": "two_stage",
            "extractor": self.extractor.to_dict(),
            "extract_tokens": self.extract_tokens,
            "rewriter": self.rewriter.to_dict(),
        }

    def summarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """One summary for each group, in order, each within the budget."""
        extracts = self._extracts(groups, budget)
        texts = [join_sentences(extract, "extractive").text for extract in extracts]
        rewrites = self.rewriter.rewrite(texts, max_tokens=budget.max_tokens, resources=resources)
        return self._summaries(extracts, rewrites, budget)

    async def asummarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """As `summarize`, without blocking the event loop."""
        extracts = await asyncio.to_thread(self._extracts, groups, budget)
        texts = [join_sentences(extract, "extractive").text for extract in extracts]
        rewrites = await self.rewriter.arewrite(
            texts, max_tokens=budget.max_tokens, resources=resources
        )
        return await asyncio.to_thread(self._summaries, extracts, rewrites, budget)

    def _extracts(self, groups: Sequence[Group], budget: Budget) -> list[list[Sentence]]:
        if self.extract_tokens is None:
            return [list(group) for group in groups]
        return self.extractor.extract(groups, Budget(self.extract_tokens, budget.count))

    def _summaries(
        self, extracts: Sequence[list[Sentence]], rewrites: Sequence[Rewrite], budget: Budget
    ) -> list[Summary]:
        summaries = [
            _supported(rewrite, extract, budget)
            for rewrite, extract in zip(rewrites, extracts, strict=True)
        ]
        if failed := [i for i, summary in enumerate(summaries) if summary is None]:
            self._tell(failed, extracts)
        fallback = ExtractiveSummarizer(self.extractor).summarize(
            [extracts[i] for i in failed], budget
        )
        for i, summary in zip(failed, fallback, strict=True):
            usage = rewrites[i].usage + Usage(fallbacks=1)
            summaries[i] = replace(summary, kind="extractive_fallback", usage=usage)
        return [summary for summary in summaries if summary is not None]

    def _tell(self, failed: list[int], extracts: Sequence[list[Sentence]]) -> None:
        source = extracts[failed[0]][0].quote.source
        place = f"of {source.document!r} at {source.start}" if source else "of an unknown place"
        group = f"the group {place}"
        if self.strict:
            raise SummaryError(f"{self.name} gave no summary for {group}; strict is set.")
        warnings.warn(
            f"{self.name} gave no summary for {len(failed)} of {len(extracts)} groups (first: "
            f"{group}); their extracts stand in its place, marked extractive_fallback.",
            FallbackWarning,
            stacklevel=4,
        )


def _supported(rewrite: Rewrite, extract: Sequence[Sentence], budget: Budget) -> Summary | None:
    """The rewrite's sentences within the budget, each with the source that supports it best."""
    sentences = _leading(split_sentences(rewrite.text or ""), budget)
    if not sentences:
        return None
    S = tf_idf([s.text for s in [*sentences, *extract]])
    likeness = (S[: len(sentences)] @ S[len(sentences) :].T).toarray()
    supported = [
        Sentence(
            sentence.text,
            sentence.quote._replace(source=extract[best].quote.source, verbatim=False),
        )
        for sentence, best in zip(sentences, np.argmax(likeness, axis=1), strict=True)
    ]
    return replace(join_sentences(supported, "abstractive"), usage=rewrite.usage)


def _leading(sentences: list[Sentence], budget: Budget) -> list[Sentence]:
    """As many sentences from the start as the budget holds; of the first, as much as it holds."""
    if not sentences:
        return []
    pieces = fitting_sentences(sentences, budget)
    total = np.cumsum(budget.costs(pieces))
    return budget.trimmed(pieces[: max(1, int((total <= budget.max_tokens).sum()))])
