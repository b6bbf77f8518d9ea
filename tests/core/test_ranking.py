from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import seeds, unit_vectors

from hierindex.core.ranking import (
    MarginalRelevance,
    diversified,
    reading_order,
    reciprocal_ranks,
    soft_maximum,
)


@pytest.mark.parametrize(
    ("relevance", "document", "start", "expected"),
    [
        pytest.param([], [], [], [], id="none"),
        pytest.param([1], [7], [3], [0], id="one"),
        pytest.param([1, 2, 3], [0, 0, 0], [9, 5, 7], [1, 2, 0], id="by place within one"),
        pytest.param([1, 5, 4], [0, 1, 0], [0, 0, 1], [1, 0, 2], id="the best document first"),
        pytest.param([2, 2], [1, 0], [0, 0], [1, 0], id="the lower number of two as good"),
        pytest.param([1, 2], [0, 0], [4, 4], [0, 1], id="one place"),
    ],
)
def test_reading_order(relevance, document, start, expected):
    order = reading_order(
        np.array(relevance, dtype=float), np.array(document, dtype=int), np.array(start, dtype=int)
    )
    assert order.tolist() == expected


@given(seeds(), st.integers(0, 30), st.integers(1, 5))
def test_a_document_is_read_in_one_go_and_forwards(seed, n, n_documents):
    rng = np.random.default_rng(seed)
    relevance, start = rng.normal(size=n).round(1), rng.integers(0, 9, size=n)
    document = rng.integers(n_documents, size=n)
    order = reading_order(relevance, document, start)
    assert sorted(order) == list(range(n))
    runs = [
        document[i]
        for at, i in enumerate(order)
        if not at or document[order[at - 1]] != document[i]
    ]
    assert len(runs) == len(set(document.tolist()))
    best = [relevance[document == d].max() for d in runs]
    assert best == sorted(best, reverse=True)
    assert all(start[a] <= start[b] for a, b in pairwise(order) if document[a] == document[b])


@given(seeds(), st.integers(0, 12), st.integers(0, 15), st.sampled_from([0.0, 0.4, 1.0]))
def test_what_was_chosen_counts_by_the_likest_of_it(seed, n_rows, n, redundancy):
    relevance = np.random.default_rng(seed).normal(size=n_rows)
    S = unit_vectors("noise", n_rows, 4, seed)
    rows, scores = diversified(S, relevance, n, redundancy)
    assert len(rows) == len(scores) == min(n, n_rows)
    for i, (row, score) in enumerate(zip(rows, scores, strict=True)):
        likest = (S @ S[rows[:i]].T).max(axis=1) if i else 0
        marginal = (1 - redundancy) * relevance - redundancy * likest
        assert score == pytest.approx(marginal[row])
        assert np.delete(marginal, rows[:i]).max() <= score + 1e-8


def test_dense_and_sparse_vectors_are_as_alike():
    S = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    for X in (S, csr_array(S)):
        marginal = MarginalRelevance(X, np.array([0.0, 2.0, 0.0]), 0.5)
        assert marginal.choose(np.ones(3, bool)) == (1, 1.0)
        assert marginal.likeness == pytest.approx([0.6, 1, 0.8])


def test_of_equal_rows_the_first_is_chosen():
    assert diversified(np.ones((3, 1)), np.zeros(3), 2, 0.5) == ([0, 1], [0.0, -0.5])


@pytest.mark.parametrize(
    ("rankings", "order"),
    [
        pytest.param([[], []], [], id="nothing"),
        pytest.param([["a", "b"], []], ["a", "b"], id="one alone"),
        pytest.param([["a", "b"], ["b", "a"]], ["a", "b"], id="as good"),
        pytest.param([["a", "b", "c"], ["c", "b", "d"]], ["c", "b", "a", "d"], id="both"),
    ],
)
def test_what_is_high_in_both_rankings_is_first(rankings, order):
    scores = reciprocal_ranks(rankings, [0.5, 0.5])
    assert sorted(scores, key=lambda item: -scores[item]) == order
    assert all(0 < score <= 1 for score in scores.values())


def test_a_soft_maximum_is_at_least_the_score_itself():
    scores = np.array([0.0, 0.0, -900.0])
    assert soft_maximum(scores, np.ones((3, 3)))[:2] == pytest.approx([np.log(2)] * 2)
    assert soft_maximum(scores, np.eye(3)).tolist() == [0, 0, -900]
