"""Runs of sentences that an answer quotes, as passages."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hierindex.core.context import places_of
from hierindex.core.membership import Floats1d, Ints1d
from hierindex.core.passages import select_passages, word_weights
from hierindex.core.ranking import reading_order
from hierindex.respond.legible import Pool
from hierindex.respond.quoted import Passage, citation_of
from hierindex.summarize.summary import Budget


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
