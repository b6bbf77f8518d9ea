"""Choice of the passages that answer a question: runs of consecutive sentences."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arrays import Floats1d, Floats2d, Ints1d

# Chosen by tests/benchmarks/facts.py.
LIKENESS, WORDS, TYPE, PLACE = 0.25, 0.6, 0.2, 0.015
ANOTHER = 0.6  # lost by a sentence about another number, as station 15 for station 12
OWN = 0.7  # weight of a sentence's own likeness beside that of the likelier neighbour
AROUND = {1: 0.5, -1: 0.3, 2: 0.25}  # weight of a word by how many sentences before it stands
KNOWN = 0.4  # share of the weight of words that lose it once a chosen sentence has them
WEAKER = 0.5  # a sentence that is so much less relevant than the best is not chosen
MOST_PASSAGES = 3

Mask = NDArray[np.bool_]


def word_weights(has: Mask) -> Floats1d:
    """Weigh the words of a question by how few sentences have them; the sum is 1.

    `has` is (n_sentences, n_words): whether a sentence has a word.

    >>> word_weights(np.array([[True, False], [True, True], [True, False]])).round(2).tolist()
    [0.38, 0.62]
    """
    rarity = np.log(1 + len(has) / (1 + has.sum(axis=0)))
    return np.asarray(rarity / max(float(rarity.sum()), np.finfo(np.float64).tiny))


def words_around(has: Mask, node: Ints1d) -> Floats2d:
    """Return how much of each word a sentence has, its neighbours in the same node included.

    Parameters
    ----------
    has : (n_sentences, n_words) bool
    node : (n_sentences,) int

    Returns
    -------
    (n_sentences, n_words) float64 in [0, 1]

    Examples
    --------
    >>> words_around(np.array([[True], [False], [False]]), np.zeros(3, dtype=int)).ravel().tolist()
    [1.0, 0.5, 0.25]
    """
    own = has.astype(np.float64)
    around = [weight * _moved(own, node, by) for by, weight in AROUND.items()]
    return np.asarray(np.maximum.reduce([own, *around]))


def relevance(
    likeness: Floats1d,
    words: Floats1d,
    of_type: Mask,
    another: Mask,
    place: Ints1d,
    node: Ints1d,
) -> Floats1d:
    """Score sentences as answers to a question.

    Parameters
    ----------
    likeness : (n_sentences,) floats
        Calibrated similarity to the question, see `hierindex.core.calibration.Scale`.
    words : (n_sentences,) floats in [0, 1]
        Weight of the question's words in and around a sentence.
    of_type : (n_sentences,) bool
        Whether a sentence has what the question asks for, such as a number.
    another : (n_sentences,) bool
        Whether a sentence is about another number than that of the question.
    place : (n_sentences,) int
        Rank of a sentence's node in the search, from 0.
    node : (n_sentences,) int

    Returns
    -------
    (n_sentences,) float64
    """
    column = likeness[:, None]
    beside = np.maximum(_moved(column, node, 1, -np.inf), _moved(column, node, -1, -np.inf))[:, 0]
    beside = np.where(np.isfinite(beside), beside, likeness)
    near = OWN * likeness + (1 - OWN) * beside
    lost = ANOTHER * another + PLACE * place
    return np.asarray(LIKENESS * near + WORDS * words + TYPE * of_type - lost)


def select_passages(
    scores: Floats1d,
    has: Mask,
    weights: Floats1d,
    n_tokens: Ints1d,
    needs: Sequence[Sequence[int]],
    joined: Mask,
    *,
    budget: int,
) -> list[tuple[int, int]]:
    """Choose the best sentences that make up at most three runs within a token budget.

    Parameters
    ----------
    scores : (n_sentences,) floats
        From `relevance`; -inf for sentences that answer nothing on their own.
    has : (n_sentences, n_words) bool
        Words that a chosen sentence has count less.
    weights : (n_words,) floats
        From `word_weights`.
    n_tokens : (n_sentences,) int
    needs : sequence of sequence of int
        The sentences without which each cannot be read; they are chosen with it.
    joined : (n_sentences,) bool
        Whether a sentence directly follows the one before it.
    budget : int

    Returns
    -------
    list[(int, int)]
        First and last sentence of each run, in order; empty if no sentence fits.

    Examples
    --------
    >>> scores, has = np.array([0.1, 0.9, -np.inf, 0.2]), np.zeros((4, 1), dtype=bool)
    >>> joined = np.array([False, True, True, True])
    >>> needs, options = [(), (0,), (), ()], {"budget": 10}
    >>> select_passages(scores, has, np.ones(1), np.full(4, 5), needs, joined, **options)
    [(0, 1)]
    """
    chosen = np.zeros(len(scores), dtype=bool)
    while True:
        known = has[chosen].any(axis=0)
        now = np.where(chosen, -np.inf, scores - KNOWN * WORDS * (has & known) @ weights)
        for i in np.argsort(-now, kind="stable"):
            if not now[i] >= max(scores) - WEAKER or np.isneginf(now[i]):
                return _runs(chosen, joined)
            more = chosen.copy()
            more[[i, *needs[i]]] = True
            if n_tokens[more].sum() <= budget and len(_runs(more, joined)) <= MOST_PASSAGES:
                chosen = more
                break
        else:
            return _runs(chosen, joined)


def _runs(chosen: Mask, joined: Mask) -> list[tuple[int, int]]:
    """Return the first and last of each run of chosen sentences that follow one another."""
    runs: list[tuple[int, int]] = []
    for i in map(int, np.flatnonzero(chosen)):
        if runs and runs[-1][1] == i - 1 and joined[i]:
            runs[-1] = runs[-1][0], i
        else:
            runs.append((i, i))
    return runs


def _moved(x: Floats2d, node: Ints1d, by: int, missing: float = 0.0) -> Floats2d:
    """Return, for each sentence, the row of the one `by` places before it in the same node."""
    rows = np.arange(len(x)) - by
    within = (rows >= 0) & (rows < len(x))
    rows = np.where(within, rows, 0)
    within &= node[rows] == node
    return np.where(within[:, None], x[rows], missing)
