"""The protocol of summarisers, with their arguments and results."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hierindex.cache import Cache, Texts
from hierindex.core.arrays import Floats2d
from hierindex.models.record import Usage
from hierindex.node import Grounding
from hierindex.progress import Progress, silent
from hierindex.summarize.claims import Claim
from hierindex.text.sentences import Excerpt, Sentence

NOTHING_KEPT = Texts(Cache())

Kind = Literal["extractive", "abstractive", "extractive_fallback"]

Group = Sequence[Sentence]
"""All sentences of a group's children, in reading order."""

CountTokens = Callable[[Sequence[str]], NDArray[np.int64]]
"""A function that counts the tokens of each text, (n_texts,)."""


@dataclass(frozen=True)
class Budget:
    """Maximum number of tokens in a summary, counted by `count`."""

    max_tokens: int
    count: CountTokens

    def costs(self, sentences: Sequence[Sentence]) -> NDArray[np.int64]:
        """Count the tokens of each sentence and the blank before it, (n_sentences,).

        A sentence of more than half of the budget may be alone, and then have more tokens.
        """
        costs = self.count([f" {sentence.text}" for sentence in sentences])
        long = np.flatnonzero(2 * costs > self.max_tokens)
        costs[long] = np.maximum(
            costs[long], self.count([sentences[i].text for i in long.tolist()])
        )
        return costs

    def trimmed(self, sentences: Sequence[Sentence], names: Sequence[str] = ()) -> list[Sentence]:
        """Drop the last sentences, but for the first, until the joined text fits."""
        kept = list(sentences)
        while kept[1:] and not self.fits(joined(kept, names)[0]):
            kept.pop()
        return kept

    def fits(self, text: str) -> bool:
        """Return whether a text is within the budget."""
        return bool(self.count([text])[0] <= self.max_tokens)

    def beside(self, names: Sequence[str]) -> "Budget":
        """Return what is left beside a list of names; all, if too little for sentences is left."""
        used = int(self.count(["\n".join(names)])[0]) + 2 * len(names) if names else 0
        left = self.max_tokens - used
        return replace(self, max_tokens=left if 4 * left >= self.max_tokens else self.max_tokens)


@dataclass
class Resources:
    """Resources that a build shares with its summariser across levels.

    `embed` returns unit vectors (n_texts, n_dims) of the tree's embedding model. `usage` is what
    the build has spent so far, and `started` the time when it began, by `time.monotonic`.
    """

    progress: Progress = silent
    completions: Texts = NOTHING_KEPT
    embed: Callable[[Sequence[str]], Floats2d] | None = None
    usage: Usage = field(default_factory=Usage)
    started: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Summary:
    """The text of a parent, with one claim per sentence in order.

    `grounding` is of what a model wrote. `title` is empty unless a language model wrote one.
    `completions` are the keys of those that it was made of.
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
        """Kind, grounding, claims and title as JSON, the argument of `recalled`."""
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
        checked = Grounding.of_json(grounding)
        return cls(text, claims, kind, Usage(cached_summaries=1), checked, title)


@runtime_checkable
class Summarizer(Protocol):
    """Protocol of objects that write one summary for each group of a level.

    `to_dict` must hold all settings that determine a summary, and no credentials; it is hashed
    into the ids of summaries. Besides these, a summary may depend only on the budget and on the
    sentences of its group: their texts, kinds, sections and positions in their children, the names
    and sizes of these, and which sentences share a document. It must not depend on the ids of
    documents or on other groups.
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
    """Return an answer that `checked.split_title` splits into this title and text."""
    return f"Title: {title}\n{text}" if title else text


def joined(sentences: Sequence[Sentence], names: Iterable[str] = ()) -> tuple[str, list[int]]:
    r"""Return a text of sentences, and where each begins in it.

    Parameters
    ----------
    sentences : Sequence[Sentence]
        In the order of their children.
    names : Iterable[str]
        Of children, each once and in order. With names, the text is a list, with a line for each.

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
            text += " " if i != of[0] else ""
            starts[i] = at + len(text)
            text += sentences[i].text
        lines.append(text)
        at += len(text) + 1
    return "\n".join(lines), starts


def names_of(group: Group) -> list[str]:
    """Return the names of the children of a group, each once; none within a document."""
    return [*filter(None, dict.fromkeys(sentence.name for sentence in group))]


def join_sentences(sentences: Sequence[Sentence], names: Iterable[str] = ()) -> Summary:
    """Join sentences into an extractive summary; see `joined`."""
    text, starts = joined(sentences, names)
    claims = sorted(
        Claim(at, at + len(sentence.text), (sentence.excerpt,))
        for at, sentence in zip(starts, sentences, strict=True)
    )
    return Summary(text, tuple(claims), "extractive")
