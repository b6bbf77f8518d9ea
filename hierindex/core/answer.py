"""Which sentences answer a question, and whether any does."""

import numpy as np
from numpy.typing import NDArray

from hierindex.core.membership import Floats1d, Floats2d, Ints1d

TELLS = 1e-3  # cosine by which known answers are nearer than chance, or the model cannot tell


def calibrated(similarity: Floats1d, known: Floats2d) -> Floats1d:
    """Similarities to a question, from 0 for what chance brings to 1 for what answers have.

    (similarity - chance) / (answers - chance), where `answers` is the mean similarity of known
    questions to their answers and `chance` that to the answers of the others.

    Parameters
    ----------
    similarity : (n_sentences,) floats
    known : (n_known, n_known) floats
        Similarities, by the same model, of known questions, the rows, to known answers; answer i
        is that of question i, and n_known > 1.

    Returns
    -------
    (n_sentences,) float64
        Of any size, as an answer may be nearer than most. The same whatever the model's unit
        and zero of similarity are. All 1 where known answers are no nearer than chance: such a
        model cannot tell.

    Examples
    --------
    >>> known = np.array([[0.7, 0.2], [0.2, 0.9]])
    >>> calibrated(np.array([0.2, 0.5, 0.8]), known).round(2).tolist()
    [0.0, 0.5, 1.0]
    """
    n = len(known)
    answers = np.trace(known) / n
    chance = (known.sum() - np.trace(known)) / (n * (n - 1))
    if answers - chance < TELLS:
        return np.ones(len(similarity))
    return np.asarray((similarity - chance) / (answers - chance))


def shared_words(has: NDArray[np.bool_]) -> Floats1d:
    """Weight of the question's words that each sentence has: log(1 + n_sentences / df) each.

    Parameters
    ----------
    has : (n_sentences, n_words) bool
        Whether a sentence has a word of the question.

    Returns
    -------
    (n_sentences,) float64
        At least 0.

    Examples
    --------
    >>> shared_words(np.array([[True, False], [True, True]])).round(2).tolist()
    [0.69, 1.79]
    """
    df = np.maximum(has.sum(axis=0), 1)
    return np.asarray(has @ np.log(1 + len(has) / df), dtype=np.float64)


def reading_order(relevance: Floats1d, document: Ints1d, start: Floats1d) -> Ints1d:
    """Sentences in the order of their documents, that with the most relevant of all first.

    Parameters
    ----------
    relevance : (n,) floats
    document : (n,) int
        Equal for sentences of one document.
    start : (n,) floats
        Where a sentence begins in its document.

    Returns
    -------
    (n,) int64
        Row indices. Of documents that are as relevant, the one with the lower number is first.

    Examples
    --------
    >>> reading_order(np.array([2, 9, 3]), np.array([0, 1, 0]), np.array([5, 0, 1])).tolist()
    [1, 2, 0]
    """
    names, number = np.unique(document, return_inverse=True)
    best = np.full(len(names), -np.inf)
    np.maximum.at(best, number, relevance)
    return np.lexsort((start, number, -best[number]))
