"""Two-stage summaries: extracts of each group, rewritten by a model and checked."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from hierindex.core.arguments import require
from hierindex.errors import FallbackWarning, SummaryError
from hierindex.models.record import Usage
from hierindex.node import SHOWN
from hierindex.summarize.extractive import (
    ExtractiveSummarizer,
    Extractor,
    SalientSentences,
    beginning,
)
from hierindex.summarize.rewrites import Draft, Rewriter, judge
from hierindex.summarize.summary import (
    Budget,
    Group,
    Resources,
    Summary,
    joined,
    names_of,
)
from hierindex.text.sentences import Sentence, split_sentences
from hierindex.unsafe import beginning as beginning_of

EXTRACT_TOKENS = 900  # fits the 1,024 of bart-large-cnn; about RAPTOR's input per summary
UNSUPPORTED = ("extract", "drop", "keep", "fail")


class TwoStageSummarizer:
    """A summariser that extracts the salient sentences of each group and rewrites them.

    Each rewritten sentence is checked against the extract, the model's input: its numbers, units,
    names and quoted words must be in the extract, and a sentence of the extract must be similar to
    it. A language model is asked once to correct an unsupported sentence.

    Parameters
    ----------
    rewriter : Rewriter
        `Seq2SeqRewriter` or `LLMRewriter`.
    extractor : Extractor, optional
        `SalientSentences` by default.
    extract_tokens : int, optional
        Maximum tokens of an extract, 900 by default; None passes all sentences of a group to the
        model.
    strict : bool
        Whether a failed rewrite raises SummaryError. By default an extract is used instead, with
        kind "extractive_fallback" and a `FallbackWarning`.
    unsupported : {"extract", "drop", "keep", "fail"}
        What to do with a sentence that is still unsupported: replace it by the most similar
        sentence of the extract (the default), drop it, keep and mark it, or raise SummaryError.

    Raises
    ------
    InputError
        If an argument is invalid.
    SummaryError
        While summarising, if `strict` is set and a rewrite fails, or if a sentence is not
        supported and `unsupported` is "fail".

    Notes
    -----
    Outside of a hierarchy there is no embedding model, and similarity is not judged.
    """

    def __init__(
        self,
        rewriter: Rewriter,
        extractor: Extractor | None = None,
        *,
        extract_tokens: int | None = EXTRACT_TOKENS,
        strict: bool = False,
        unsupported: str = "extract",
    ) -> None:
        is_known = unsupported in UNSUPPORTED
        require(is_known, "unsupported", f"one of {', '.join(UNSUPPORTED)}", unsupported)
        self.rewriter = rewriter
        self.extractor: Extractor = SalientSentences() if extractor is None else extractor
        self.extract_tokens = extract_tokens
        self.strict = strict
        self.unsupported = unsupported

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
            "unsupported": self.unsupported,
        }

    def summarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """Return one summary for each group, in order, each within the budget."""
        resources = resources or Resources()
        extracts = list(map(list, groups))
        if self.extract_tokens is not None:
            within = Budget(self.extract_tokens, budget.count)
            extracts = self.extractor.extract(groups, within)
        names = map(names_of, groups)
        texts = [joined(*each)[0] for each in zip(extracts, names, strict=True)]
        rewrites = self.rewriter.rewrite(texts, max_tokens=budget.max_tokens, resources=resources)
        drafts = [
            Draft(rewrite, _leading(split_sentences(rewrite.text or ""), budget), extract, text)
            for rewrite, extract, text in zip(rewrites, extracts, texts, strict=True)
        ]
        judge(drafts, resources)
        self._correct(drafts, budget, resources)
        return self._summaries(groups, drafts, budget)

    def _correct(self, drafts: Sequence[Draft], budget: Budget, resources: Resources) -> None:
        """Let the model correct unsupported sentences, if it can."""
        wrong = [(draft, piece) for draft in drafts for piece in draft.unsupported]
        correct = getattr(self.rewriter, "correct", None)  # of a language model
        if not wrong or correct is None:
            return
        claims = [(piece.text, piece.fault, [s.text for s in piece.sources]) for _, piece in wrong]
        again = []
        for answer, (draft, _) in zip(correct(claims, resources), wrong, strict=True):
            first = [s for s in split_sentences(answer.text or "")[:1] if budget.fits(s.text)]
            again.append(Draft(answer, first, draft.extract, draft.given))
        judge(again, resources)
        for (draft, piece), other in zip(wrong, again, strict=True):
            draft.correct(piece, other)

    def _summaries(
        self, groups: Sequence[Group], drafts: Sequence[Draft], budget: Budget
    ) -> list[Summary]:
        for draft in drafts if self.unsupported == "fail" else ():
            for piece in draft.unsupported:
                raise SummaryError(
                    f"{self.name} wrote a sentence for {draft.place} that is not supported "
                    f"({piece.fault}): {beginning_of(piece.text, SHOWN)!r}."
                )
        summaries = [draft.summary(self.unsupported, budget) for draft in drafts]
        failed = [i for i, summary in enumerate(summaries) if summary is None]
        if failed:
            self._report(drafts[failed[0]], len(failed), len(drafts))
        fallback = ExtractiveSummarizer(self.extractor).summarize(
            [groups[i] for i in failed], budget
        )
        for i, summary in zip(failed, fallback, strict=True):
            usage = drafts[i].usage + Usage(fallbacks=1)
            summaries[i] = replace(summary, kind="extractive_fallback", usage=usage)
        return cast(list[Summary], summaries)

    def _report(self, first: Draft, n_failed: int, n_groups: int) -> None:
        if self.strict:
            raise SummaryError(
                f"{self.name} gave no summary for {first.place}: {first.reason}; strict is set."
            )
        warnings.warn(
            f"{self.name} gave no summary for {n_failed} of {n_groups} groups (first: "
            f"{first.place}; {first.reason}); their extracts are used instead, marked "
            "extractive_fallback.",
            FallbackWarning,
            stacklevel=4,
        )


def _leading(sentences: list[Sentence], budget: Budget) -> list[Sentence]:
    """Return the first sentences that fit the budget, or the beginning of the first one."""
    n = int((np.cumsum(budget.costs(sentences)) <= budget.max_tokens).sum())
    if not n:
        return [beginning(each, budget) for each in sentences[:1]]
    return budget.trimmed(sentences[:n])
