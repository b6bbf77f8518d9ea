"""Rewrites of extracts by a model, and the check of their sentences."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from hierindex.models.record import Usage
from hierindex.node import Grounding
from hierindex.summarize.facts import Facts
from hierindex.summarize.grounding import judged
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
            _claims(kept),
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


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.before * bool(i) + piece.text for i, piece in enumerate(pieces))


def _claims(pieces: Sequence[Piece]) -> tuple[Claim, ...]:
    claims = []
    for i, piece in enumerate(pieces):
        to = len(_text(pieces[: i + 1]))
        excerpts = [piece.repeats] if piece.repeats else [s.excerpt for s in piece.sources]
        at = to - len(piece.text)
        claims.append(Claim(at, to, tuple(excerpts), verbatim=piece.repeats is not None))
    return tuple(claims)


def _repeated(text: str, extract: Sequence[Sentence]) -> Excerpt | None:
    """Return the excerpt of a source that contains the sentence verbatim, or None."""
    for source in extract:
        if (at := source.text.find(text)) >= 0:
            start = source.at + at
            return source.excerpt._replace(at=start, to=start + len(text))
    return None
