"""Two-stage summaries: extracts of each group, rewritten by a model."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np

from hierindex.core.arguments import is_number, require
from hierindex.errors import FallbackWarning, InputError, SummaryError
from hierindex.models.record import Usage
from hierindex.summarize.claims import Claim
from hierindex.summarize.extractive import (
    ExtractiveSummarizer,
    Extractor,
    SalientSentences,
    beginning,
)
from hierindex.summarize.grounding import (
    EmbeddingGrounding,
    Grounding,
    Support,
    has_other_number,
    numbers_in,
    support_by_words,
)
from hierindex.summarize.summary import (
    Budget,
    Group,
    Resources,
    Summary,
    joined,
    names_of,
)
from hierindex.text.sentences import Excerpt, Sentence, split_sentences

EXTRACT_TOKENS = 900  # fits the 1,024 of bart-large-cnn; about RAPTOR's input per summary
DIGITS = 3  # of the similarity to the sources
BY_EMBEDDING = EmbeddingGrounding()


@dataclass(frozen=True)
class Rewrite:
    """A model's summary of one text; `text` is None if it failed for `reason`.

    `title` is empty if the model was not asked for one. `key` is that of its completion in the
    cache, if it was made of a single one.
    """

    text: str | None
    usage: Usage = field(default_factory=Usage)
    reason: str | None = None
    title: str = ""
    key: str = ""


def of_each(texts: Sequence[str], rewrites: Mapping[str, Rewrite]) -> list[Rewrite]:
    """Return the rewrite of each text; repetitions of a text count as cached."""
    seen, listed = set[str](), []
    for text in texts:
        rewrite = rewrites[text]
        if text in seen:
            usage = Usage(cached_summaries=int(rewrite.text is not None))
            rewrite = replace(rewrite, usage=usage)
        seen.add(text)
        listed.append(rewrite)
    return listed


class Rewriter(Protocol):
    """Protocol of objects that summarise texts in their own words."""

    @property
    def name(self) -> str:
        """Name of the model."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine a rewrite."""

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """Return one rewrite for each text, in order, of at most about `max_tokens` tokens."""


class TwoStageSummarizer:
    """A summariser that extracts the salient sentences of each group and rewrites them.

    Parameters
    ----------
    rewriter : Rewriter
        `Seq2SeqRewriter` or `LLMRewriter`.
    extractor : Extractor, optional
        `SalientSentences` by default.
    extract_tokens : int, optional
        Maximum tokens of an extract; None passes all sentences of a group to the model.
    strict : bool
        Whether a failed rewrite raises an error. Otherwise the extract is used instead, marked
        `extractive_fallback`, with a `FallbackWarning`.
    grounding : Grounding, optional
        Finds the sources of each sentence and judges whether they are similar to it, by default
        `EmbeddingGrounding()`. A sentence with a number that the rewritten text does not have never
        counts as similar. With None, and outside of a hierarchy, sources are found by their words
        and not judged.
    min_grounding : float in [0, 1], optional
        Share of a rewrite's sentences that must be similar to their sources; below it, the rewrite
        fails. It has no effect outside of a hierarchy, where nothing is judged.

    Raises
    ------
    InputError
        If an argument is invalid.
    SummaryError
        While summarising, if `strict` is set and a rewrite fails.
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
        if not hasattr(rewriter, "rewrite"):
            raise InputError(
                "rewriter must be a Seq2SeqRewriter or an LLMRewriter, got "
                f"{type(rewriter).__name__}."
            )
        within = min_grounding is None or (is_number(min_grounding) and 0 <= min_grounding <= 1)
        require(within, "min_grounding", "a number in [0, 1]", min_grounding)
        if min_grounding is not None and grounding is None:
            raise InputError("min_grounding needs a grounding; pass one or omit it.")
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
        """Return the settings that determine a summary's text."""
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
        """Return one summary for each group, in order, each within the budget."""
        resources = resources or Resources()
        extracts, texts = self._extracts(groups, budget)
        rewrites = self.rewriter.rewrite(texts, max_tokens=budget.max_tokens, resources=resources)
        return self._summaries(groups, extracts, rewrites, budget, resources)

    def _extracts(
        self, groups: Sequence[Group], budget: Budget
    ) -> tuple[list[list[Sentence]], list[str]]:
        extracts = list(map(list, groups))
        if self.extract_tokens is not None:
            within = Budget(self.extract_tokens, budget.count)
            extracts = self.extractor.extract(groups, within)
        names = map(names_of, groups)
        return extracts, [joined(*each)[0] for each in zip(extracts, names, strict=True)]

    def _summaries(
        self,
        groups: Sequence[Group],
        extracts: Sequence[list[Sentence]],
        rewrites: Sequence[Rewrite],
        budget: Budget,
        resources: Resources,
    ) -> list[Summary]:
        summaries = self._with_sources(extracts, rewrites, budget, resources)
        faults = map(self._fault, rewrites, summaries)
        failed = {i: fault for i, fault in enumerate(faults) if fault}
        if failed:
            self._report(failed, extracts)
        fallback = ExtractiveSummarizer(self.extractor).summarize(
            [groups[i] for i in failed], budget
        )
        for i, summary in zip(failed, fallback, strict=True):
            usage = rewrites[i].usage + Usage(fallbacks=1)
            summaries[i] = replace(summary, kind="extractive_fallback", usage=usage)
        return cast(list[Summary], summaries)

    def _with_sources(
        self,
        extracts: Sequence[list[Sentence]],
        rewrites: Sequence[Rewrite],
        budget: Budget,
        resources: Resources,
    ) -> list[Summary | None]:
        """Convert rewrites to summaries with sources, or to None if they are empty."""
        texts = [_leading(split_sentences(rewrite.text or ""), budget) for rewrite in rewrites]
        written = [i for i, sentences in enumerate(texts) if sentences]
        pairs = [([s.text for s in texts[i]], [s.text for s in extracts[i]]) for i in written]
        if self.grounding is None or resources.embed is None:
            supports = support_by_words(pairs)
        else:
            supports = self.grounding.support(pairs, resources.embed)
        summaries: list[Summary | None] = [None] * len(rewrites)
        for i, support in zip(written, supports, strict=True):
            summaries[i] = _summary(texts[i], extracts[i], support, rewrites[i])
        return summaries

    def _fault(self, rewrite: Rewrite, summary: Summary | None) -> str | None:
        if summary is None:
            return rewrite.reason or "it was empty"
        least = 0 if self.min_grounding is None else round(self.min_grounding, DIGITS)
        is_carried = summary.source_similarity is None or summary.source_similarity >= least
        return None if is_carried else "too few of its sentences are similar to its sources"

    def _report(self, failed: dict[int, str], extracts: Sequence[list[Sentence]]) -> None:
        first = next(iter(failed))
        source = extracts[first][0].quote.source
        group = f"the group of {source.document!r} at {source.start}" if source else "a group"
        if self.strict:
            raise SummaryError(
                f"{self.name} gave no summary for {group}: {failed[first]}; strict is set."
            )
        reasons = ", ".join(f"{n} {why}" for why, n in Counter(failed.values()).most_common(3))
        warnings.warn(
            f"{self.name} gave no summary for {len(failed)} of {len(extracts)} groups (first: "
            f"{group}; {reasons}); their extracts are used instead, marked extractive_fallback.",
            FallbackWarning,
            stacklevel=4,
        )


def _summary(
    written: Sequence[Sentence], extract: Sequence[Sentence], support: Support, rewrite: Rewrite
) -> Summary:
    """Return the summary of these sentences, with what they repeat or are most similar to.

    It keeps the line breaks between them, so that it is split in the same way if it is recalled.
    """
    repeated = [_repeated(sentence.text, extract) for sentence in written]
    sources = [tuple(extract[row].excerpt for row in rows) for rows in support.sources]
    first = written[0].at
    claims = tuple(
        Claim(s.at - first, s.to - first, (repeat,) if repeat else excerpts, verbatim=bool(repeat))
        for s, repeat, excerpts in zip(written, repeated, sources, strict=True)
    )
    similarity = None
    if support.carried is not None:
        known = numbers_in("\n".join(source.text for source in extract))
        strange = np.array([has_other_number(sentence.text, known) for sentence in written])
        carried = (support.carried | np.array([claim.verbatim for claim in claims])) & ~strange
        similarity = round(float(carried.mean()), DIGITS)
    return Summary(
        (rewrite.text or "")[first : written[-1].to],
        claims,
        "abstractive",
        rewrite.usage,
        similarity,
        rewrite.title,
        rewrite.key,
    )


def _repeated(text: str, extract: Sequence[Sentence]) -> Excerpt | None:
    """Return the excerpt of a source that contains the sentence verbatim, or None."""
    for source in extract:
        if (at := source.text.find(text)) >= 0:
            start = source.at + at
            return source.excerpt._replace(at=start, to=start + len(text))
    return None


def _leading(sentences: list[Sentence], budget: Budget) -> list[Sentence]:
    """Return the first sentences that fit the budget, or the beginning of the first."""
    n = int((np.cumsum(budget.costs(sentences)) <= budget.max_tokens).sum())
    if not n:
        return [beginning(each, budget) for each in sentences[:1]]
    return budget.trimmed(sentences[:n])
