"""What a summariser takes and gives."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hierindex.cache.texts import TextCache
from hierindex.core.membership import Floats2d
from hierindex.llm.usage import Usage
from hierindex.progress import Progress, silent
from hierindex.summarize.claims import Claim, Excerpt
from hierindex.summarize.sentences import Sentence

Kind = Literal["extractive", "abstractive", "extractive_fallback"]

Group = Sequence[Sentence]
"""All sentences of a group's children, in reading order."""

CountTokens = Callable[[Sequence[str]], NDArray[np.int64]]
"""Tokens of each text, (n_texts,)."""


@dataclass(frozen=True)
class Budget:
    """At most `max_tokens` tokens a summary, as `count` counts them."""

    max_tokens: int
    count: CountTokens

    def costs(self, sentences: Sequence[Sentence]) -> NDArray[np.int64]:
        """Tokens of each sentence, (n_sentences,), with the blank that joins it to the others."""
        return self.count([f" {sentence.text}" for sentence in sentences])

    def trimmed(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The sentences without the last ones, if joined they cost more than one by one."""
        kept = list(sentences)
        while len(kept) > 1 and self.count([" ".join(s.text for s in kept)])[0] > self.max_tokens:
            kept.pop()
        return kept


@dataclass
class Resources:
    """What one build lends to its summariser, level after level.

    `embed` gives unit vectors (n_texts, n_dims) of the tree's embedding model, None where
    there is none; `usage` is what the build has spent so far, and `started` when it began, as
    `time.monotonic` tells.
    """

    progress: Progress = silent
    completions: TextCache | None = None
    embed: Callable[[Sequence[str]], Floats2d] | None = None
    usage: Usage = field(default_factory=Usage)
    started: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Summary:
    """A parent's text; `claims` cover its sentences in order.

    `grounding` is the share of them that their sources support; None where that was not
    looked at.
    """

    text: str
    claims: tuple[Claim, ...]
    kind: Kind
    usage: Usage = field(default_factory=Usage)
    grounding: float | None = 1.0

    @property
    def details(self) -> str:
        """All but the text and what it cost, as JSON; see `recalled`."""
        return json.dumps([self.kind, self.grounding, self.claims])

    @classmethod
    def recalled(cls, text: str, details: str) -> Self:
        """The summary of this text and these details, at no cost."""
        kind, grounding, found = json.loads(details)
        claims = tuple(
            Claim(at, to, tuple(Excerpt(*excerpt) for excerpt in excerpts), verbatim)
            for at, to, excerpts, verbatim in found
        )
        return cls(text, claims, kind, Usage(cached_summaries=1), grounding)


@runtime_checkable
class Summarizer(Protocol):
    """Writes one summary for each group of a level, in order.

    `name` is what an index reports. `to_dict` holds everything that shapes a summary and no
    credentials; it is hashed into the summaries' ids. A summary may depend on nothing else but
    the budget and, of its group's sentences, their texts, their places in their children and
    which of them are of the same document: the same group gives the same summary under any
    name of its documents, beside any other groups and in any build.
    """

    @property
    def name(self) -> str:
        """Name of the model or method."""

    def to_dict(self) -> dict[str, Any]:
        """Everything that shapes a summary's text."""

    def summarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """One summary for each group, in order, each within the budget."""

    async def asummarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """As `summarize`, without blocking the event loop."""


def join_sentences(sentences: Sequence[Sentence], kind: Kind) -> Summary:
    """Sentences as one text, each a verbatim claim.

    >>> from hierindex.summarize.sentences import split_sentences
    >>> join_sentences(split_sentences("One.    Two."), "extractive").text
    'One. Two.'
    """
    claims, at = [], 0
    for sentence in sentences:
        claims.append(Claim(at, at + len(sentence.text), (sentence.excerpt,)))
        at += len(sentence.text) + 1
    return Summary(" ".join(sentence.text for sentence in sentences), tuple(claims), kind)
