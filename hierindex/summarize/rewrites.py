"""Rewrites of extracts by a model, and the check of their sentences."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from hierindex.models.record import Usage
from hierindex.node import Grounding
from hierindex.summarize.facts import Facts
from hierindex.summarize.grounding import Verdict, judged
from hierindex.summarize.summary import Budget, Claim, Group, Resources, Summary
from hierindex.text.sentences import Excerpt, Sentence


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
        "" if the model was not asked for a title.
    key : str
        Cache key of the completion; "" if the text combines several completions.
    """

    text: str | None
    usage: Usage = field(default_factory=Usage)
    reason: str | None = None
    title: str = ""
    key: str = ""


def of_each(texts: Sequence[str], rewrites: Mapping[str, Rewrite]) -> list[Rewrite]:
    """Return the rewrite of each text; repeated texts count as cached."""
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
    """Protocol of objects that rewrite texts as summaries."""

    @property
    def name(self) -> str:
        """Name of the model."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine a rewrite."""

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """Return one rewrite for each text, in order, of at most about `max_tokens` tokens."""


@dataclass
class Piece:
    """A sentence of a rewrite, the characters before it, and the outcome of its check.

    `sources` are the indices of the most similar sentences of the extract, best first. If the
    sentence is verbatim, `repeats` is the part of the extract that it repeats.
    """

    before: str
    text: str
    sources: Sequence[int] = ()
    repeats: Excerpt | None = None
    fault: str = ""
    outcome: str = "supported"

    @property
    def is_unsupported(self) -> bool:
        """Whether no source supports the sentence, even after a correction."""
        return bool(self.fault) and self.outcome == "supported"


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

    def judge(self, verdicts: Sequence[Verdict]) -> None:
        """Store the verdict on each sentence."""
        for piece, verdict in zip(self.pieces, verdicts, strict=True):
            piece.sources = verdict.sources
            piece.repeats = _repeated(piece.text, self.extract)
            piece.fault = "" if piece.repeats else verdict.fault

    def claim(self, i: int) -> tuple[str, str, list[str]]:
        """Return a sentence, its fault, and the texts of its sources."""
        piece = self.pieces[i]
        return piece.text, piece.fault, [self.extract[row].text for row in piece.sources]

    def correct(self, i: int, other: "Draft") -> None:
        """Replace a sentence by the corrected one if that is supported; always add the cost."""
        self.usage += other.usage
        self.keys += other.keys
        before, fault = self.pieces[i].before, self.pieces[i].fault
        for piece in other.pieces:
            if not piece.fault and all(piece.text != each.text for each in self.pieces):
                self.pieces[i] = replace(piece, before=before, fault=fault, outcome="corrected")

    def summary(self, unsupported: str, budget: Budget) -> Summary | None:
        """Return the summary of the remaining sentences, or None if none remains."""
        kept = list[Piece]()
        said = {piece.text for piece in self.pieces}
        for piece in self.pieces:
            if piece.is_unsupported and unsupported != "keep":
                source = self.extract[piece.sources[0]]
                piece.outcome = "dropped"
                is_new = source.text not in said and budget.fits(source.text)
                if unsupported == "extract" and is_new:
                    said.add(source.text)
                    piece.text, piece.repeats = source.text, source.excerpt
                    piece.outcome = "replaced"
            elif piece.is_unsupported:
                piece.outcome, piece.sources = "unsupported", ()
            kept += [piece] * (piece.outcome != "dropped")
        while kept[1:] and not budget.fits(_text(kept)):
            kept.pop().outcome = "cut"
        if not kept:
            self.reason = "none of its sentences is supported" if self.pieces else self.reason
            return None
        checked = [piece for piece in self.pieces if piece.outcome != "cut"]
        counts = Counter(piece.outcome for piece in checked)
        faults = dict.fromkeys(piece.fault for piece in checked if piece.fault)
        return Summary(
            _text(kept),
            self._claims(kept),
            "abstractive",
            self.usage,
            Grounding(**counts, faults=tuple(faults)),
            self.title,
            tuple(self.keys),
        )

    def _claims(self, kept: Sequence[Piece]) -> tuple[Claim, ...]:
        claims, at = [], 0
        for i, piece in enumerate(kept):
            at += len(piece.before) if i else 0
            excerpts = tuple(self.extract[row].excerpt for row in piece.sources)
            to = at + len(piece.text)
            found = (piece.repeats,) if piece.repeats else excerpts
            claims.append(Claim(at, to, found, verbatim=bool(piece.repeats)))
            at = to
        return tuple(claims)


def judge(drafts: Sequence[Draft], resources: Resources) -> None:
    """Check the sentences of drafts, and drop titles with numbers that the extract lacks."""
    written = [draft for draft in drafts if draft.pieces]
    pairs = [([p.text for p in d.pieces], [s.text for s in d.extract]) for d in written]
    verdicts = judged(pairs, resources.embed, [draft.given for draft in written])
    for draft, each in zip(written, verdicts, strict=True):
        draft.judge(each)
        if draft.title and "numbers" in Facts(draft.given).lack(draft.title):
            draft.title = ""


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.before * bool(i) + piece.text for i, piece in enumerate(pieces))


def _repeated(text: str, extract: Sequence[Sentence]) -> Excerpt | None:
    """Return the excerpt of a source that contains the sentence verbatim, or None."""
    for source in extract:
        if (at := source.text.find(text)) >= 0:
            start = source.at + at
            return source.excerpt._replace(at=start, to=start + len(text))
    return None
