"""Extractive, then abstractive: a model rewrites the extract of each group."""

import asyncio
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]

from hierindex.core.arguments import is_number, require
from hierindex.errors import FallbackWarning, InputError, SummaryError
from hierindex.llm.usage import Usage
from hierindex.summarize.claims import Excerpt
from hierindex.summarize.events import SummaryFallback
from hierindex.summarize.extractive import (
    ExtractiveSummarizer,
    Extractor,
    SalientSentences,
    fitting_sentences,
)
from hierindex.summarize.grounding import EmbeddingGrounding, Grounding, Support, support_by_words
from hierindex.summarize.sentences import Sentence, split_sentences
from hierindex.summarize.summary import Budget, Group, Resources, Summary, join_sentences

EXTRACT_TOKENS = 900  # within the 1,024 that bart-large-cnn reads, and RAPTOR's 900-odd per summary
DIGITS = 3  # of a share
BY_EMBEDDING = EmbeddingGrounding()

dispatcher = get_dispatcher(__name__)


@dataclass(frozen=True)
class Rewrite:
    """A model's summary of one text; `text` is None where it failed for good, for a `reason`."""

    text: str | None
    usage: Usage = field(default_factory=Usage)
    reason: str | None = None


def of_each(texts: Sequence[str], rewrites: Mapping[str, Rewrite]) -> list[Rewrite]:
    """The rewrite of each text; one that is there twice was paid for once."""
    seen, found = set[str](), []
    for text in texts:
        rewrite = rewrites[text]
        if text in seen:
            usage = Usage(cached_summaries=int(rewrite.text is not None))
            rewrite = replace(rewrite, usage=usage)
        seen.add(text)
        found.append(rewrite)
    return found


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
        `SalientSentences` by default.
    extract_tokens : int, optional
        Tokens of an extract; None hands the model all sentences of a group.
    strict : bool
        Whether a failed rewrite is an error. Otherwise the extract stands in its place,
        marked `extractive_fallback`, counted and warned of.
    grounding : Grounding, optional
        Looks for the sources of each sentence; None finds them by their words, and leaves open
        whether they carry it. By default `EmbeddingGrounding()`, with the tree's own model.
    min_grounding : float in [0, 1], optional
        Share of a rewrite's sentences that must be supported, or it counts as failed.

    Raises
    ------
    InputError
        If an argument is not what it must be.
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
        grounding: Grounding | None = BY_EMBEDDING,
        min_grounding: float | None = None,
    ) -> None:
        if not hasattr(rewriter, "arewrite"):
            raise InputError(
                "rewriter must be a Seq2SeqRewriter or an LLMRewriter, got "
                f"{type(rewriter).__name__}."
            )
        within = min_grounding is None or (is_number(min_grounding) and 0 <= min_grounding <= 1)
        require(within, "min_grounding", "a number in [0, 1]", min_grounding)
        if min_grounding is not None and grounding is None:
            raise InputError("min_grounding needs a grounding.")
        self.rewriter = rewriter
        self.extractor = SalientSentences() if extractor is None else extractor
        self.extract_tokens = extract_tokens
        self.strict = strict
        self.grounding = grounding
        self.min_grounding = min_grounding

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
            "grounding": None if self.grounding is None else self.grounding.to_dict(),
            "min_grounding": self.min_grounding,
        }

    def summarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """One summary for each group, in order, each within the budget."""
        resources = resources or Resources()
        extracts, texts = self._extracts(groups, budget)
        rewrites = self.rewriter.rewrite(texts, max_tokens=budget.max_tokens, resources=resources)
        return self._summaries(extracts, rewrites, budget, resources)

    async def asummarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """As `summarize`, without blocking the event loop."""
        resources = resources or Resources()
        extracts, texts = await asyncio.to_thread(self._extracts, groups, budget)
        rewrites = await self.rewriter.arewrite(
            texts, max_tokens=budget.max_tokens, resources=resources
        )
        return await asyncio.to_thread(self._summaries, extracts, rewrites, budget, resources)

    def _extracts(
        self, groups: Sequence[Group], budget: Budget
    ) -> tuple[list[list[Sentence]], list[str]]:
        """What the model is given of each group, as sentences and as texts."""
        extracts = list(map(list, groups))
        if self.extract_tokens is not None:
            within = Budget(self.extract_tokens, budget.count)
            extracts = self.extractor.extract(groups, within)
        return extracts, [" ".join(s.text for s in extract) for extract in extracts]

    def _summaries(
        self,
        extracts: Sequence[list[Sentence]],
        rewrites: Sequence[Rewrite],
        budget: Budget,
        resources: Resources,
    ) -> list[Summary]:
        summaries = self._supported(extracts, rewrites, budget, resources)
        faults = map(self._fault, rewrites, summaries)
        failed = {i: fault for i, fault in enumerate(faults) if fault}
        if failed:
            self._tell(failed, extracts)
        fallback = ExtractiveSummarizer(self.extractor).summarize(
            [extracts[i] for i in failed], budget
        )
        for i, summary in zip(failed, fallback, strict=True):
            usage = rewrites[i].usage + Usage(fallbacks=1)
            summaries[i] = replace(summary, kind="extractive_fallback", usage=usage)
        return cast(list[Summary], summaries)

    def _supported(
        self,
        extracts: Sequence[list[Sentence]],
        rewrites: Sequence[Rewrite],
        budget: Budget,
        resources: Resources,
    ) -> list[Summary | None]:
        """The rewrites as summaries, each sentence with its sources; None of what is empty."""
        told = [_leading(split_sentences(rewrite.text or ""), budget) for rewrite in rewrites]
        written = [i for i, sentences in enumerate(told) if sentences]
        pairs = [([s.text for s in told[i]], [s.text for s in extracts[i]]) for i in written]
        if self.grounding is None:
            supports = support_by_words(pairs)
        else:
            supports = self.grounding.support(pairs, resources.embed)
        summaries: list[Summary | None] = [None] * len(rewrites)
        for i, support in zip(written, supports, strict=True):
            summaries[i] = _with_sources(told[i], extracts[i], support, rewrites[i].usage)
        return summaries

    def _fault(self, rewrite: Rewrite, summary: Summary | None) -> str | None:
        """Why a rewrite failed; None if it did not."""
        if summary is None:
            return rewrite.reason or "it was empty"
        least = 0 if self.min_grounding is None else round(self.min_grounding, DIGITS)
        is_carried = summary.grounding is None or summary.grounding >= least
        return None if is_carried else "its sources do not support it"

    def _tell(self, failed: dict[int, str], extracts: Sequence[list[Sentence]]) -> None:
        first = next(iter(failed))
        source = extracts[first][0].quote.source
        place = f"of {source.document!r} at {source.start}" if source else "of an unknown place"
        group = f"the group {place}"
        for i, reason in failed.items():
            at = extracts[i][0].quote.source
            document, start = (None, None) if at is None else (at.document, at.start)
            event = SummaryFallback(
                summarizer=self.name, reason=reason, document=document, start=start
            )
            dispatcher.event(event)
        if self.strict:
            raise SummaryError(
                f"{self.name} gave no summary for {group}: {failed[first]}; strict is set."
            )
        reasons = ", ".join(f"{n} {why}" for why, n in Counter(failed.values()).most_common(3))
        warnings.warn(
            f"{self.name} gave no summary for {len(failed)} of {len(extracts)} groups (first: "
            f"{group}; {reasons}); their extracts stand in its place, marked extractive_fallback.",
            FallbackWarning,
            stacklevel=4,
        )


def _with_sources(
    told: Sequence[Sentence], extract: Sequence[Sentence], support: Support, usage: Usage
) -> Summary:
    """The sentences as a summary, each with what it repeats or stands on."""
    repeated = [_repeated(sentence.text, extract) for sentence in told]
    sources = [tuple(extract[row].excerpt for row in rows) for rows in support.sources]
    summary = join_sentences(told, "abstractive")
    claims = tuple(
        claim._replace(excerpts=(repeat,) if repeat else stands_on, verbatim=bool(repeat))
        for claim, repeat, stands_on in zip(summary.claims, repeated, sources, strict=True)
    )
    grounding = None
    if support.carried is not None:
        carried = support.carried | np.array([claim.verbatim for claim in claims])
        grounding = round(float(carried.mean()), DIGITS)
    return replace(summary, claims=claims, grounding=grounding, usage=usage)


def _repeated(text: str, extract: Sequence[Sentence]) -> Excerpt | None:
    """Where a source says a sentence in the same words; None if none does."""
    for source in extract:
        if (at := source.text.find(text)) >= 0:
            start = source.quote.at + at
            return source.excerpt._replace(at=start, to=start + len(text))
    return None


def _leading(sentences: list[Sentence], budget: Budget) -> list[Sentence]:
    """As many sentences from the start as the budget holds; of the first, as much as it holds."""
    if not sentences:
        return []
    pieces = fitting_sentences(sentences, budget)
    total = np.cumsum(budget.costs(pieces))
    return budget.trimmed(pieces[: max(1, int((total <= budget.max_tokens).sum()))])
