"""Two-stage summaries: extracts of each group, rewritten by a model and checked."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np

from hierindex.core.arguments import require
from hierindex.errors import FallbackWarning, SummaryError
from hierindex.models.record import Usage
from hierindex.node import SHOWN, Grounding
from hierindex.summarize.extractive import (
    ExtractiveSummarizer,
    Extractor,
    SalientSentences,
    beginning,
)
from hierindex.summarize.facts import Facts
from hierindex.summarize.grounding import judged
from hierindex.summarize.summary import Budget, Claim, Group, Resources, Summary, joined, names_of
from hierindex.text.sentences import Excerpt, Sentence, split_sentences
from hierindex.unsafe import beginning as beginning_of

EXTRACT_TOKENS = 900  # fits the 1,024 of bart-large-cnn; about RAPTOR's input per summary
UNSUPPORTED = ("extract", "drop", "keep", "fail")


@dataclass(frozen=True)
class Rewrite:
    """A model's summary of one text.

    Attributes
    ----------
    text : str or None
        None if the model failed.
    usage : Usage
    reason : str or None
        Why the model failed.
    title : str
        The title that the model wrote, or "".
    key : str
        Cache key of the completion; "" if there is none.
    """

    text: str | None
    usage: Usage = field(default_factory=Usage)
    reason: str | None = None
    title: str = ""
    key: str = ""


class Rewriter(Protocol):
    """Protocol for objects that rewrite texts as summaries."""

    @property
    def name(self) -> str:
        """Name of the model."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine a rewrite."""

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """Return one rewrite for each text, in order. Each has at most about `max_tokens` tokens.

        The texts are distinct.
        """


@dataclass
class Piece:
    """A sentence of a rewrite, the characters before it, and the outcome of its check.

    `sources` are the most similar sentences of the extract, best first. If the sentence is
    verbatim, `repeats` is the part of the extract that it repeats. `fault` says why no source
    supports it; "" if one does.
    """

    before: str
    text: str
    sources: Sequence[Sentence] = ()
    repeats: Excerpt | None = None
    fault: str = ""
    outcome: str = "supported"


class Draft:
    """A rewrite whose sentences are being checked against the extract."""

    def __init__(self, rewrite: Rewrite, sentences: Group, extract: Group, given: str) -> None:
        ends = [sentence.to for sentence in sentences]
        self.extract = extract
        self.given = given
        self.pieces: list[Piece] = [
            Piece((rewrite.text or "")[end : s.at], s.text)
            for end, s in zip(ends[:1] + ends, sentences, strict=False)
        ]
        self.usage: Usage = rewrite.usage
        self.title: str = rewrite.title
        self.keys: list[str] = [rewrite.key] * bool(rewrite.key)
        self.reason: str = rewrite.reason or "it was empty"

    @property
    def place(self) -> str:
        """The rewritten group, as named in messages."""
        source = self.extract[0].quote.source
        return f"the group of {source.document!r} at {source.start}" if source else "a group"

    @property
    def unsupported(self) -> list[Piece]:
        """The sentences that no source supports."""
        return [piece for piece in self.pieces if piece.outcome == "unsupported"]

    def correct(self, piece: Piece, other: "Draft") -> None:
        """Replace a sentence by the corrected one if that is supported; always add the cost."""
        self.usage += other.usage
        self.keys += other.keys
        said = {each.text for each in self.pieces}
        for corrected in other.pieces:
            if not corrected.fault and corrected.text not in said:
                piece.text, piece.sources = corrected.text, corrected.sources
                piece.repeats, piece.outcome = corrected.repeats, "corrected"

    def summary(self, unsupported: str, budget: Budget) -> Summary | None:
        """Return the summary of the remaining sentences, or None if none remains."""
        said = {piece.text for piece in self.pieces}
        for piece in self.unsupported:
            source = piece.sources[0]
            if unsupported == "keep":
                piece.sources = ()
            elif unsupported == "drop" or source.text in said or not budget.fits(source.text):
                piece.outcome = "dropped"
            else:
                said.add(source.text)
                piece.text, piece.repeats, piece.outcome = source.text, source.excerpt, "replaced"
        kept = [piece for piece in self.pieces if piece.outcome != "dropped"]
        while kept[1:] and not budget.fits(_joined(kept)[0]):
            kept.pop().outcome = "cut"
        if not kept:
            self.reason = "none of its sentences is supported" if self.pieces else self.reason
            return None
        checked = [piece for piece in self.pieces if piece.outcome != "cut"]
        counts = Counter(piece.outcome for piece in checked)
        faults = dict.fromkeys(piece.fault for piece in checked if piece.fault)
        return Summary(
            *_joined(kept),
            "abstractive",
            self.usage,
            Grounding(**counts, faults=tuple(faults)),
            self.title,
            tuple(self.keys),
        )


def judge(drafts: Sequence[Draft], resources: Resources) -> None:
    """Check the sentences of drafts, and drop titles with numbers that the extract lacks."""
    written = [draft for draft in drafts if draft.pieces]
    pairs = [([p.text for p in d.pieces], [s.text for s in d.extract]) for d in written]
    verdicts = judged(pairs, resources.embed, [draft.given for draft in written])
    for draft, of_draft in zip(written, verdicts, strict=True):
        for piece, verdict in zip(draft.pieces, of_draft, strict=True):
            piece.sources = [draft.extract[row] for row in verdict.sources]
            piece.repeats = _repeated(piece.text, draft.extract)
            if verdict.fault and piece.repeats is None:
                piece.fault, piece.outcome = verdict.fault, "unsupported"
        if draft.title and "numbers" in Facts(draft.given).lack(draft.title):
            draft.title = ""


def _joined(pieces: Sequence[Piece]) -> tuple[str, tuple[Claim, ...]]:
    """Join sentences to the text of a summary; return it and a claim for each sentence."""
    text, claims = "", list[Claim]()
    for piece in pieces:
        text += piece.before if claims else ""
        at = len(text)
        text += piece.text
        excerpts = [piece.repeats] if piece.repeats else [s.excerpt for s in piece.sources]
        is_verbatim = piece.repeats is not None
        claims.append(Claim(at, len(text), tuple(excerpts), is_verbatim))
    return text, tuple(claims)


def _repeated(text: str, extract: Sequence[Sentence]) -> Excerpt | None:
    """Return the excerpt of a source that contains the sentence verbatim, or None."""
    for source in extract:
        if (at := source.text.find(text)) >= 0:
            start = source.at + at
            return source.excerpt._replace(at=start, to=start + len(text))
    return None


class TwoStageSummarizer:
    """A summariser that extracts the salient sentences of each group and rewrites them.

    Each rewritten sentence is checked against the extract that the model read: the extract must
    contain its numbers, units, names and quoted words, and a similar sentence. A
    language model is asked once to correct an unsupported sentence.

    Parameters
    ----------
    rewriter : Rewriter
        `Seq2SeqRewriter` or `LLMRewriter`.
    extractor : Extractor, optional
        `SalientSentences` by default.
    extract_tokens : int, optional
        Maximum number of tokens in an extract, 900 by default; if None, the model gets all
        sentences of a group.
    strict : bool
        Whether a failed rewrite raises SummaryError. By default an extract is used instead, with
        kind "extractive_fallback" and a `FallbackWarning`.
    unsupported : {"extract", "drop", "keep", "fail"}
        What to do with a sentence that is still unsupported: replace it with the most similar
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
    Called without `resources`, a summariser has no embedding model, and similarity is not checked.
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
        distinct = list(dict.fromkeys(texts))
        written = self._rewritten(distinct, budget.max_tokens, resources)
        rewrites, drafts = dict(zip(distinct, written, strict=True)), list[Draft]()
        for text, extract in zip(texts, extracts, strict=True):
            rewrite = rewrites[text]
            sentences = _leading(split_sentences(rewrite.text or ""), budget)
            drafts.append(Draft(rewrite, sentences, extract, text))
            rewrites[text] = replace(rewrite, usage=Usage(cached_summaries=1))  # for its repetition
        judge(drafts, resources)
        self._correct(drafts, budget, resources)
        return self._summaries(groups, drafts, budget)

    def _rewritten(
        self, texts: Sequence[str], max_tokens: int, resources: Resources
    ) -> list[Rewrite]:
        """Return one rewrite for each text; in a rehearsal, only a language model's are known."""
        if not resources.is_rehearsal:
            return self.rewriter.rewrite(texts, max_tokens=max_tokens, resources=resources)
        expected = getattr(self.rewriter, "expected", lambda text, *_: Rewrite(text))
        return [expected(text, max_tokens, resources) for text in texts]

    def _correct(self, drafts: Sequence[Draft], budget: Budget, resources: Resources) -> None:
        """Let the model correct unsupported sentences, if it can."""
        wrong = [(draft, piece) for draft in drafts for piece in draft.unsupported]
        correct = getattr(self.rewriter, "correct", None)  # of a language model
        if not wrong or correct is None or resources.is_rehearsal:
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
            first = drafts[failed[0]]
            if self.strict:
                raise SummaryError(
                    f"{self.name} gave no summary for {first.place}: {first.reason}; strict is set."
                )
            warnings.warn(
                f"{self.name} gave no summary for {len(failed)} of {len(drafts)} groups (first: "
                f"{first.place}; {first.reason}); their extracts are used instead, marked "
                "extractive_fallback.",
                FallbackWarning,
                stacklevel=3,
            )
        fallback = ExtractiveSummarizer(self.extractor).summarize(
            [groups[i] for i in failed], budget
        )
        for i, summary in zip(failed, fallback, strict=True):
            usage = drafts[i].usage + Usage(fallbacks=1)
            summaries[i] = replace(summary, kind="extractive_fallback", usage=usage)
        return cast(list[Summary], summaries)


def _leading(sentences: list[Sentence], budget: Budget) -> list[Sentence]:
    """Return the first sentences that fit the budget, or the beginning of the first one."""
    n = int((np.cumsum(budget.costs(sentences)) <= budget.max_tokens).sum())
    if not n:
        return [beginning(each, budget) for each in sentences[:1]]
    return budget.trimmed(sentences[:n])
