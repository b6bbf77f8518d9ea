"""The protocol of summarisers, with their arguments and results, and claims in rewrites."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hierindex.cache import Cache, Texts
from hierindex.core.arguments import Floats2d
from hierindex.models.record import Usage
from hierindex.node import Grounding, Quote
from hierindex.progress import Progress, silent
from hierindex.text.sentences import Excerpt, Sentence

NOTHING_KEPT = Texts(Cache())


class Claim(NamedTuple):
    """The part `text[at:to]` of a summary, and the excerpts of its children that support it.

    `excerpts` are sorted by similarity, best first. A verbatim claim has a single excerpt with the
    same characters; a claim that no source supports has none. Claims do not name documents, so
    they stay valid if documents are renamed.
    """

    at: int
    to: int
    excerpts: tuple[Excerpt, ...]
    verbatim: bool = True


def resolve_claims(
    claims: Sequence[Claim], children: Sequence[Sequence[Quote]]
) -> tuple[Quote, ...]:
    """Resolve the claims of a summary to quotes, using the quotes of its children.

    Parameters
    ----------
    claims : Sequence[Claim]
    children : Sequence[Sequence[Quote]]
        The quotes of each child.

    Returns
    -------
    tuple[Quote, ...]
        In the order of the claims. A verbatim claim gives one quote for each of the child's
        quotes that its excerpt overlaps, any other claim gives a single quote.

    Examples
    --------
    >>> from hierindex.node import Span
    >>> child = [Quote(0, 9, Span("a.txt", 100, 109))]
    >>> [quote] = resolve_claims([Claim(0, 4, (Excerpt(0, 5, 9),))], [child])
    >>> quote.at, quote.to, quote.source.start, quote.source.end
    (0, 4, 105, 109)
    """
    quotes: list[Quote] = []
    for claim in claims:
        parts = [part for e in claim.excerpts for part in _parts(e, children[e.child])]
        if claim.verbatim:
            moved = claim.at - claim.excerpts[0].at
            quotes += [part._replace(at=part.at + moved, to=part.to + moved) for part in parts]
        else:
            spans = tuple(dict.fromkeys(span for part in parts for span in part.sources))
            best = spans[0] if spans else None
            quotes.append(Quote(claim.at, claim.to, best, verbatim=False, also=spans[1:]))
    return tuple(quotes)


def _parts(excerpt: Excerpt, quotes: Sequence[Quote]) -> Iterator[Quote]:
    for quote in quotes:
        at, to = max(quote.at, excerpt.at), min(quote.to, excerpt.to)
        if at < to:
            yield quote.part(at, to)


Kind = Literal["extractive", "abstractive", "extractive_fallback"]

Group = Sequence[Sentence]
"""All sentences of a group's children, in reading order."""

CountTokens = Callable[[Sequence[str]], NDArray[np.int64]]
"""A function that counts the tokens of each text, (n_texts,)."""


@dataclass(frozen=True)
class Budget:
    """Maximum number of tokens in a summary.

    Attributes
    ----------
    max_tokens : int
    count : callable
        Maps a sequence of n texts to their token counts, int64 of shape (n,).
    """

    max_tokens: int
    count: CountTokens

    def costs(self, sentences: Sequence[Sentence]) -> NDArray[np.int64]:
        """Return the token count of each sentence with a leading space, shape (n_sentences,).

        A sentence longer than half of the budget may end up alone, with no space before it. So its
        cost is the higher of the counts with and without the space.
        """
        costs = self.count([f" {sentence.text}" for sentence in sentences])
        long = np.flatnonzero(2 * costs > self.max_tokens)
        costs[long] = np.maximum(
            costs[long], self.count([sentences[i].text for i in long.tolist()])
        )
        return costs

    def trimmed(self, sentences: Sequence[Sentence], names: Sequence[str] = ()) -> list[Sentence]:
        """Drop sentences from the end until the rest, plus the children's `names`, fits the budget.

        The first sentence is always kept.
        """
        kept = list(sentences)
        while kept[1:] and not self.fits(joined(kept, names)[0]):
            kept.pop()
        return kept

    def beginning(self, text: str) -> str:
        """Return the beginning of a text, halved (at a space if possible) until it fits."""
        while len(text) > 1 and not self.fits(text):
            half = text[: len(text) // 2]
            text = half.rpartition(" ")[0].rstrip() or half.rstrip()
        return text

    def fits(self, text: str) -> bool:
        """Return whether a text is within the budget."""
        return bool(self.count([text])[0] <= self.max_tokens)

    def without(self, names: Sequence[str]) -> "Budget":
        """Return the budget minus the tokens of `names`, or unchanged if little would remain."""
        used = int(self.count(["\n".join(names)])[0]) + 2 * len(names) if names else 0
        left = self.max_tokens - used
        return replace(self, max_tokens=left if 4 * left >= self.max_tokens else self.max_tokens)


@dataclass
class Resources:
    """Resources that a build shares with its summariser across levels.

    Attributes
    ----------
    progress : Progress
    completions : Texts
        Cache of a model's completions.
    embed : callable, optional
        Maps a sequence of texts to unit vectors of the tree's embedding model, (n_texts, n_dims);
        None if there is no model.
    usage : Usage
        Cost of the build so far; a summariser adds to it.
    n_unanswered : int
        Number of consecutive texts for which a model's service failed.
    is_rehearsal : bool
        Whether this is an estimate: no request is sent, and the usage of summaries counts the
        requests that would be sent.
    """

    progress: Progress = silent
    completions: Texts = NOTHING_KEPT
    embed: Callable[[Sequence[str]], Floats2d] | None = None
    usage: Usage = field(default_factory=Usage)
    n_unanswered: int = 0
    is_rehearsal: bool = False


@dataclass(frozen=True)
class Summary:
    """The summary of a group of nodes.

    Attributes
    ----------
    text : str
    claims : tuple of Claim
        One per sentence, in order.
    kind : {"extractive", "abstractive", "extractive_fallback"}
    usage : Usage
    grounding : Grounding, optional
        How many of the model's sentences are supported; None for an extract.
    title : str
        The title that a language model wrote, or "".
    completions : tuple of str
        Cache keys of the completions used in the summary.
    """

    text: str
    claims: tuple[Claim, ...]
    kind: Kind
    usage: Usage = field(default_factory=Usage)
    grounding: Grounding | None = None
    title: str = ""
    completions: tuple[str, ...] = ()

    @property
    def details(self) -> str:
        """Kind, grounding, claims and title as a JSON string, for `recalled()` to parse."""
        grounding = None if self.grounding is None else asdict(self.grounding)
        return json.dumps([self.kind, grounding, self.claims, self.title])

    @classmethod
    def recalled(cls, text: str, details: str) -> Self:
        """Restore a cached summary from its text and details."""
        kind, grounding, found, title = json.loads(details)
        claims = tuple(
            Claim(at, to, tuple(Excerpt(*excerpt) for excerpt in excerpts), verbatim)
            for at, to, excerpts, verbatim in found
        )
        checked = Grounding.from_json(grounding)
        return cls(text, claims, kind, Usage(cached_summaries=1), checked, title)


@runtime_checkable
class Summarizer(Protocol):
    """Protocol for objects that write one summary for each group of a level.

    `to_dict` must return all settings that determine a summary, and no credentials; it is hashed
    into the ids of summaries. In addition to these settings, a summary may depend only on the
    budget and on its group: the texts, kinds, sections and positions of the sentences, the
    names and sizes of the children, and which sentences share a document. It must not depend on
    document ids or on other groups.
    """

    @property
    def name(self) -> str:
        """Name of the model or method, for reports."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine a summary's text."""

    def summarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """Return one summary for each group, in order, each within the budget."""


def with_title(title: str, text: str) -> str:
    """Format a title and a text as an answer that `replies.split_title` splits again."""
    return f"Title: {title}\n{text}" if title else text


def joined(sentences: Sequence[Sentence], names: Iterable[str] = ()) -> tuple[str, list[int]]:
    r"""Join sentences to a text, each record on its own line; return it and their starts.

    Parameters
    ----------
    sentences : Sequence[Sentence]
        In the order of their children.
    names : Iterable[str]
        Names of children, each once and in order. With names, the text is a list with a line for
        each name.

    Examples
    --------
    >>> from hierindex.text.sentences import split_sentences
    >>> joined(split_sentences("It broke.  It fell."))
    ('It broke. It fell.', [0, 10])
    >>> joined(split_sentences("It broke. It fell.", name="The mill"), ["The mill", "The sea"])[0]
    'The mill: It broke. It fell.\nThe sea'
    """
    told = defaultdict[str, list[int]](list, {name: [] for name in names})
    for i, sentence in enumerate(sentences):
        told[sentence.name if sentence.name in told else ""].append(i)
    lines, starts, at = list[str](), [0] * len(sentences), 0
    for name, of in told.items():
        text = f"{name}: " if name and of else name
        for i in of:
            is_record = sentences[i].kind == "record" and not name
            text += ("\n" if is_record else " ") if i != of[0] else ""
            starts[i] = at + len(text)
            text += sentences[i].text
        lines.append(text)
        at += len(text) + 1
    return "\n".join(lines), starts


def names_of(group: Group) -> list[str]:
    """Return the distinct names of the children of a group; empty within a document."""
    return [*filter(None, dict.fromkeys(sentence.name for sentence in group))]


def join_sentences(sentences: Sequence[Sentence], names: Iterable[str] = ()) -> Summary:
    """Join sentences into an extractive summary; see `joined`."""
    text, starts = joined(sentences, names)
    claims = sorted(
        Claim(at, at + len(sentence.text), (sentence.excerpt,))
        for at, sentence in zip(starts, sentences, strict=True)
    )
    return Summary(text, tuple(claims), "extractive")
