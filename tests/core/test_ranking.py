"""Scores in proportion, together and in context; what is chosen, and in which order it is read."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import read_only, seeds, unit_vectors

from hierindex.core.ranking import (
    DECAY,
    MarginalRelevance,
    Scale,
    blended,
    diversified,
    focus,
    in_context,
    nearness,
    reach,
    reading_order,
    reciprocal_ranks,
)

KNOWN = read_only(np.array([[0.7, 0.2], [0.2, 0.9]]))


@st.composite
def similarities(draw):
    """Those of up to 20 sentences, and those of known questions to known answers."""
    rng = np.random.default_rng(draw(seeds()))
    n_known = draw(st.integers(2, 12))
    known = rng.uniform(-0.2, 0.3, size=(n_known, n_known)) + 0.6 * np.eye(n_known)
    return read_only(rng.uniform(-1, 1, size=draw(st.integers(0, 20)))), read_only(known)


def test_chance_is_0_and_an_answer_1():
    assert Scale.of(KNOWN).shares(np.array([0.2, 0.8, 0.5, -0.4])) == pytest.approx([0, 1, 0.5, -1])


@given(similarities(), st.sampled_from([0.3, 1.0, 30.0]), st.sampled_from([-2.0, 0.0, 0.7]))
def test_the_models_unit_and_zero_do_not_matter(given, unit, zero):
    similarity, known = given
    expected = Scale.of(known).shares(similarity)
    found = Scale.of(unit * known + zero).shares(unit * similarity + zero)
    assert found == pytest.approx(expected)


@given(similarities())
def test_what_is_nearer_stays_nearer(given):
    similarity, known = given
    scores = Scale.of(known).shares(similarity)
    assert np.array_equal(np.argsort(scores, kind="stable"), np.argsort(similarity, kind="stable"))


@pytest.mark.parametrize(
    "known",
    [np.ones((2, 2)), np.zeros((3, 3)), 1 - np.eye(4)],
    ids=["all alike", "nothing alike", "answers further than chance"],
)
def test_a_model_that_cannot_tell_takes_all_for_answers(known):
    assert Scale.of(known).shares(np.array([-0.5, 0.0, 0.9])).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("own", "foreign", "threshold"),
    [(0.8, 0.2, 0.62), (1.0, 0.0, 0.7), (0.5, 0.5, 0.5), (0.2, -0.4, 0.02), (1, 1, 1)],
)
@pytest.mark.parametrize("n", [2, 20])
def test_a_threshold_lies_between_chance_and_known_support(n, own, foreign, threshold):
    known = np.where(np.eye(n, dtype=bool), own, foreign)
    assert Scale.of(known, nearest=True).similarity(0.7) == pytest.approx(threshold)


def test_chance_is_the_nearest_source_on_another_matter():
    known = np.array([[0.9, 0.1, 0.3], [0.1, 0.9, 0.5], [0.1, 0.1, 0.9]])
    chance = (0.3 + 0.5 + 0.1) / 3
    assert Scale.of(known, nearest=True) == pytest.approx((chance, 0.9))


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


@st.composite
def passages(draw, most=60):
    """Scores, documents, starts and ends; some scores alike, some passages in one place."""
    n, n_documents = draw(st.integers(0, most)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(seeds()))
    scores = rng.normal(size=n).round(draw(st.integers(0, 3))) * draw(st.sampled_from([1, 50]))
    start = rng.integers(0, 5_000, size=n).astype(float)
    length = rng.integers(draw(st.sampled_from([0, 100])), 600, size=n)
    document = rng.integers(n_documents, size=n)
    return tuple(map(read_only, (scores, document, start, start + length)))


def rows(n, document=0):
    """Places of n passages of 10 characters, one after the other."""
    start = np.arange(n) * 10.0
    return np.full(n, document), start, start + 10


@given(passages())
def test_blended_scores_are_standardised(given):
    scores, _, start, _ = given
    found = blended(scores, start)
    assert found.shape == scores.shape
    if found.any():
        assert found.mean() == pytest.approx(0, abs=1e-9)
        assert found.std() == pytest.approx(1)


@given(passages(), st.sampled_from([1e-3, 1.0, 50.0]), st.sampled_from([-2.0, 0.0, 7.0]))
def test_the_unit_of_a_score_does_not_matter(given, unit, zero):
    dense, _, lexical, _ = given
    expected = blended(dense, lexical)
    assert blended(unit * dense + zero, lexical) == pytest.approx(expected, abs=1e-6)
    assert blended(dense, unit * lexical + zero) == pytest.approx(expected, abs=1e-6)


def test_words_that_nobody_uses_change_nothing():
    dense = np.array([0.1, 0.7, 0.4])
    assert blended(dense, np.zeros(3)) == pytest.approx((dense - dense.mean()) / dense.std())


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_scores_that_are_all_alike_say_nothing(n):
    assert blended(np.full(n, 0.3), np.full(n, 8.0)).tolist() == [0.0] * n


@given(passages())
def test_nearness_is_symmetric_and_within_documents(given):
    _, document, start, end = given
    K = nearness(document, start, end)
    assert np.array_equal(K, K.T)
    assert (np.diag(K) == 1).all()
    assert ((K >= 0) & (K <= 1)).all()
    assert not K[document[:, None] != document].any()


def test_nearness_fades_with_each_passage():
    assert nearness(*rows(4))[0] == pytest.approx([1, DECAY, DECAY**2, DECAY**3])


def test_passages_without_length_do_not_count_as_short_ones():
    document, start, end = rows(3)
    K = nearness(np.append(document, -1), np.append(start, 0), np.append(end, 0))
    assert K[:3, :3] == pytest.approx(nearness(document, start, end))
    assert K[3].tolist() == [0, 0, 0, 1]


@given(passages())
def test_context_raises_and_depends_on_no_order(given):
    scores, document, *places = given
    K = nearness(document, *places)
    found = in_context(scores, document, K)
    assert found.shape == scores.shape
    assert np.isfinite(found).all()
    assert (found >= scores - 1e-9 * np.abs(scores)).all()
    if len(scores):
        assert 1 - 1e-9 <= reach(scores, K) <= len(scores) + 1e-9
        assert 0.5 <= focus(scores, document) <= 1
    back = np.arange(len(scores))[::-1]
    again = in_context(scores[back], document[back], K[back][:, back])
    assert again == pytest.approx(found[back])


@given(passages())
def test_alone_in_its_document_a_passage_keeps_its_score(given):
    scores, document, start, end = given
    alone = np.arange(len(document))
    K = nearness(alone, start, end)
    assert in_context(scores, alone, K) == pytest.approx(scores)
    if len(scores):
        assert reach(scores, K) == pytest.approx(1)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_of_few_passages(n):
    scores = np.arange(n, dtype=float)
    assert in_context(scores, np.arange(n), np.eye(n)).tolist() == pytest.approx(scores.tolist())


@given(passages())
def test_of_passages_in_one_place_the_order_stays(given):
    scores, document, *_ = given
    found = in_context(scores, document, nearness(document, 0 * scores, 0 * scores))
    for each in set(document.tolist()):
        here = document == each
        assert (np.diff(found[here][np.argsort(scores[here])]) >= -1e-9).all()


def test_the_best_passage_stays_ahead_of_its_neighbours():
    scores = np.array([0.0, 0.5, 3.0, 0.5, 0.0])
    document, *places = rows(5)
    assert in_context(scores, document, nearness(document, *places)).argmax() == 2


def two_documents(n):
    """Places of n passages in each."""
    return tuple(map(np.concatenate, zip(rows(n), rows(n, document=1), strict=True)))


def test_beside_a_good_passage_one_ranks_above_its_equal_elsewhere():
    document, start, end = two_documents(2)
    K = nearness(document, start, end)
    found = in_context(np.array([3.0, 1.0, -1.0, 1.0]), document, K)
    assert found[1] > found[3] > 1.0


def test_of_equals_that_of_the_better_document_is_first():
    document, start, end = two_documents(40)
    scores = np.full(80, -1.0)
    scores[[0, 40]], scores[79] = 2, 1  # and too far off to be near
    found = in_context(scores, document, nearness(document, start, end))
    assert found[40] > found[0]


@pytest.mark.parametrize(
    ("document", "second"),
    [((0, 0, 0, 0, 0, 0), 1), ((0, 0, 1, 2, 3, 4), 2)],
    ids=["one", "several"],
)
def test_a_stretch_is_read_on_where_one_document_is_meant(document, second):
    scores, start = np.array([2.0, 1.0, 1.7, 1.7, 1.7, 1.7]), np.array([0, 1, 20, 40, 60, 80])
    K = nearness(np.array(document), start, start + 1)
    found = in_context(scores, np.array(document), K)
    assert np.argsort(-found, kind="stable")[:2].tolist() == [0, second]


def test_focus_is_on_one_document_on_several_or_between():
    scores = np.array([1.0, 1.0, 1.0, 1.0])
    assert focus(scores, np.zeros(4)) == pytest.approx(1)
    assert focus(scores, np.array([0, 0, 1, 1])) == 0.5
    assert focus(np.array([2.0, 2, 2, 1]), np.array([0, 0, 0, 1])) == pytest.approx(0.61, abs=0.01)
    assert focus(scores, np.arange(4)) == 0.5
    assert focus(np.array([50.0, 0, 0, 0]), np.arange(4)) == pytest.approx(1)


def test_relevance_that_is_spread_reaches_further_than_relevance_in_one_place():
    K = nearness(*rows(20))
    spread, peaked = np.zeros(20), np.zeros(20)
    spread[5:10], peaked[7] = 3, 6
    assert 1 < reach(peaked, K) < reach(spread, K)


def test_what_is_far_below_the_rest_keeps_its_score():
    assert in_context(np.array([0.0, -5e3]), np.arange(2), np.eye(2)).tolist() == [0, -5e3]
