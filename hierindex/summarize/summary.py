"""The protocol of summarisers, with their arguments and results."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hierindex.cache.cache import Cache
from hierindex.cache.values import Texts
from hierindex.core.arrays import Floats2d
from hierindex.models.record import Usage
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

    def trimmed(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """Drop the last sentences if the joined text exceeds the budget."""
        kept = list(sentences)
        while len(kept) > 1 and self.count([" ".join(s.text for s in kept)])[0] > self.max_tokens:
            kept.pop()
        return kept


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

    `source_similarity` is the share of sentences that are similar to their sources, 1 for verbatim
    text, None if not measured. `title` is empty unless a language model wrote one. `completion` is
    the key of the completion that it was made of.
    """

    text: str
    claims: tuple[Claim, ...]
    kind: Kind
    usage: Usage = field(default_factory=Usage)
    source_similarity: float | None = 1.0
    title: str = ""
    completion: str = ""

    @property
    def details(self) -> str:
        """Kind, similarity to the sources, claims and title as JSON, the argument of `recalled`."""
        return json.dumps([self.kind, self.source_similarity, self.claims, self.title])

    @classmethod
    def recalled(cls, text: str, details: str) -> Self:
        """Restore a cached summary from its text and details."""
        kind, similarity, found, *titles = json.loads(details)  # up to 0.4 without a title
        claims = tuple(
            Claim(at, to, tuple(Excerpt(*excerpt) for excerpt in excerpts), verbatim)
            for at, to, excerpts, verbatim in found
        )
        return cls(text, claims, kind, Usage(cached_summaries=1), similarity, *titles)


@runtime_checkable
class Summarizer(Protocol):
    """Protocol of objects that write one summary for each group of a level.

    `to_dict` must hold all settings that determine a summary, and no credentials; it is hashed
    into the ids of summaries. Besides these, a summary may depend only on the budget and on the
    sentences of its group: their texts, their positions in their children, and which of them
    share a document. It must not depend on the names of documents or on other groups.
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


def join_sentences(sentences: Sequence[Sentence], kind: Kind) -> Summary:
    """Join sentences into a summary with verbatim claims.

    >>> from hierindex.text.sentences import split_sentences
    >>> join_sentences(split_sentences("One.    Two."), "extractive").text
    'One. Two.'
    """
    claims, at = [], 0
    for sentence in sentences:
        claims.append(Claim(at, at + len(sentence.text), (sentence.excerpt,)))
        at += len(sentence.text) + 1
    return Summary(" ".join(sentence.text for sentence in sentences), tuple(claims), kind)
