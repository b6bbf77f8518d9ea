"""Passages that an answer without a language model quotes, made of runs of sentences."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arrays import Floats1d, Ints1d
from hierindex.core.context import places_of
from hierindex.core.passages import select_passages, word_weights
from hierindex.core.ranking import reading_order
from hierindex.node import Quote
from hierindex.respond.legible import Pool
from hierindex.summarize.summary import Budget


class Passage(NamedTuple):
    """Consecutive sentences as they stand in their document, and where.

    `citation` is a span as JSON, with those of copies as `also`, or None if it is not known.
    `lead` is what the answer says before them, and is not quoted.
    """

    text: str
    citation: dict[str, Any] | None
    lead: str = ""

    def shown(self, label: str = "") -> str:
        """Return the text after its lead and before a label.

        >>> Passage("It rained.", None, "Weather (50%):").shown("[1]")
        'Weather (50%): It rained. [1]'
        """
        return " ".join(filter(None, (self.lead, self.text, label)))


class Extract(NamedTuple):
    """The passages that answer best, in reading order, and the best of their sentences.

    `score` in [0, 1] tells how well it answers, see `ExtractiveSynthesizer`. `more` says what an
    overview leaves out. `missing` are the numbers, names and quoted words of the question that
    stand neither in the paragraphs of the passages nor in titles above them.
    """

    passages: list[Passage]
    best: str
    score: float
    more: str = ""
    missing: tuple[str, ...] = ()

    def answer(self, *, numbered: bool = True) -> str:
        """Return the passages, each with its number in brackets, and what is left out."""
        numbers = (f"[{i}]" if numbered else "" for i in range(1, len(self.passages) + 1))
        shown = [p.shown(number) for p, number in zip(self.passages, numbers, strict=True)]
        return "\n\n".join(filter(None, (*shown, self.more)))


NOTHING = Extract([], "", 0.0)


def citation_of(first: Quote, last: Quote) -> dict[str, Any] | None:
    """Return the span from one quote to another, with those of copies as `also`."""
    pairs = zip(first.sources, last.sources, strict=False)
    spans = [a._replace(end=b.end) for a, b in pairs if a.document == b.document]
    if not spans:
        return None
    length = spans[0].end - spans[0].start  # of a copy, too; what it lacks makes it longer
    source, *copies = [span.to_json() for span in spans if span.end - span.start == length]
    return {**source, "also": copies} if copies else source


def select_runs(
    pool: Pool, scores: Floats1d, has: NDArray[np.bool_], n_tokens: Ints1d, budget: Budget
) -> list[tuple[int, int]]:
    """Choose the runs of sentences to quote by `select_passages`, and count the text between them.

    If what the best cannot be read without does not fit, the best that needs nothing is alone;
    empty if there is none.
    """
    weights, room = word_weights(has), budget.max_tokens
    while room > 0:
        runs = select_passages(scores, has, weights, n_tokens, pool.needs, pool.joined, budget=room)
        joined = "\n\n".join(pool.text(*run) for run in runs)
        over = int(budget.count([joined])[0]) - budget.max_tokens
        if runs and over <= 0:
            return runs
        if not runs:
            break
        room -= over
    alone = np.where([len(needs) > 0 for needs in pool.needs], -np.inf, scores)
    best = int(alone.argmax())
    return [] if np.isneginf(alone[best]) else [(best, best)]


def passages_of(pool: Pool, runs: Sequence[tuple[int, int]], scores: Floats1d) -> list[Passage]:
    """Return the passages in reading order, the document with the best of them first."""
    best = np.array([scores[first : last + 1].max() for first, last in runs])
    sources = [pool.sentences[first].quote.source for first, _ in runs]
    spans = [(s.document, s.start, s.end) if s else (i, 0, 0) for i, s in enumerate(sources)]
    document, start, _ = places_of(spans)
    ends = [(pool.sentences[first].quote, pool.sentences[last].quote) for first, last in runs]
    return [
        Passage(pool.text(*runs[i]), citation_of(*ends[i]))
        for i in reading_order(best, document, start)
    ]
