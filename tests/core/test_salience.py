import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import seeds, token_counts, unit_vectors, vectors

from hierindex.core import salience
from hierindex.core.salience import (
    DAMPING,
    MOST_DENSE,
    NEAR_DUPLICATE,
    centroid_similarity,
    lexrank,
    opening,
    select_sentences,
)

REDUNDANCIES = st.sampled_from([0.0, 0.3, 0.9])


@given(vectors(), seeds())
def test_lexrank_is_stationary(S, seed):
    S = np.abs(S).astype(np.float64)
    restart = np.random.default_rng(seed).random(len(S)) + 0.01
    p = lexrank(csr_array(S), restart)
    assert p.shape == (len(S),)
    assert p.sum() == pytest.approx(1 if len(S) else 0)
    likeness = S @ S.T - np.diag(np.sum(S * S, axis=1))
    degree, start = likeness.sum(axis=1), restart / restart.sum()
    walk = np.where(degree > 1e-9, likeness / np.maximum(degree, 1e-9), start[:, None])
    assert p == pytest.approx(DAMPING * walk @ p + (1 - DAMPING) * start, abs=1e-9)


def test_many_sentences_rank_as_few_do(monkeypatch):
    S = np.abs(unit_vectors("noise", MOST_DENSE + 1, 8))
    S[3] = 0
    many = lexrank(csr_array(S))
    monkeypatch.setattr(salience, "MOST_DENSE", len(S))
    assert many == pytest.approx(lexrank(csr_array(S)))


@given(vectors(least_rows=1))
def test_lexrank_of_any_vectors_is_a_distribution(S):
    p = lexrank(csr_array(np.abs(S).astype(np.float64)))
    assert (p > 0).all()
    assert p.sum() == pytest.approx(1)


def test_what_is_like_others_ranks_above_what_is_not():
    S = np.zeros((9, 4))
    S[:, 0], S[4] = 1, np.eye(4)[3]
    p = lexrank(csr_array(S))
    assert np.argmin(p) == 4
    assert np.delete(p, 4) == pytest.approx(np.delete(p, 4)[0])


def test_without_a_graph_the_walk_is_where_it_starts():
    restart = np.array([3.0, 1.0])
    assert lexrank(csr_array(np.eye(2)), restart) == pytest.approx([0.75, 0.25])
    assert lexrank(csr_array(np.zeros((2, 1))), restart) == pytest.approx([0.75, 0.25])


@given(vectors())
def test_centroid_similarity_is_the_cosine_with_the_mean(S):
    S = S.astype(np.float64)
    found = centroid_similarity(S)
    assert found == pytest.approx(centroid_similarity(csr_array(S)))
    assume(len(S) and np.linalg.norm(S.mean(axis=0)) > 1e-3)
    mean = S.mean(axis=0)
    assert found == pytest.approx(S @ mean / np.linalg.norm(mean))


def test_sentences_that_cancel_out_are_near_no_centroid():
    assert centroid_similarity(np.array([[1.0], [-1.0]])).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("document", "expected"),
    [([], []), ([5], [1]), ([2, 2, 2], [1, 1 / 2, 1 / 3]), ([1, 0, 1, 0], [1, 1, 1 / 2, 1 / 2])],
)
def test_openings(document, expected):
    assert opening(np.array(document, dtype=np.int64)) == pytest.approx(expected)


def selected(S, n_tokens, *, redundancy=0.3, **options):
    """By likeness to the centroid."""
    towards = centroid_similarity(S.astype(np.float64))
    return select_sentences(S, n_tokens, towards, redundancy=redundancy, **options)


@st.composite
def texts(draw):
    """A text's sentences and their token counts, with a budget."""
    S = draw(vectors())
    return S, draw(token_counts(len(S))), draw(st.integers(0, 400))


def maximal_marginal_relevance(S, n_chosen, towards, redundancy):
    """Sentences chosen as the paper has it."""
    chosen = []
    while len(chosen) < n_chosen:
        score = [
            (1 - redundancy) * S[i] @ towards
            - redundancy * max((S[i] @ S[j] for j in chosen), default=0)
            for i in range(len(S))
        ]
        chosen.append(max(set(range(len(S))) - set(chosen), key=score.__getitem__))
    return sorted(chosen)


@given(texts())
def test_the_chosen_ascend_and_fill_the_budget(text):
    S, n_tokens, budget = text
    chosen = selected(S, n_tokens, budget=budget)
    left = budget - n_tokens[chosen].sum()
    assert left >= 0
    assert (np.diff(chosen) > 0).all()
    told = (S @ S[chosen].T).max(axis=1, initial=-1) >= NEAR_DUPLICATE - 1e-6
    assert (np.delete(n_tokens, chosen) > left)[~np.delete(told, chosen)].all()


@given(texts())
def test_no_two_of_the_chosen_are_near_duplicates(text):
    S, n_tokens, budget = text
    chosen = selected(S, n_tokens, budget=budget)
    likeness = (S[chosen] @ S[chosen].T).astype(np.float64)
    np.fill_diagonal(likeness, -1)
    assert (likeness < NEAR_DUPLICATE + 1e-6).all()
    assert len(chosen) or not (n_tokens <= budget).any()


@given(texts(), st.integers(1, 6), seeds())
def test_no_source_is_crowded_out(text, n_sources, seed):
    S, n_tokens, budget = text
    source = np.random.default_rng(seed).integers(-1, n_sources, size=len(S))
    chosen = selected(S, n_tokens, budget=budget, source=source)
    left = budget - n_tokens[chosen].sum()
    assert left >= 0
    share = budget / max(len(np.unique(source)), 1)
    told = (S @ S[chosen].T).max(axis=1, initial=-1) >= NEAR_DUPLICATE - 1e-6
    for poor in np.unique(source):
        spent = n_tokens[chosen][source[chosen] == poor].sum()
        waiting = (source == poor) & ~told & ~np.isin(np.arange(len(S)), chosen)
        if spent >= share or not waiting.any():
            continue
        for rich in np.unique(source[chosen]):  # no more than its share, but for its last sentence
            taken = n_tokens[chosen][source[chosen] == rich]
            fits = n_tokens[waiting].min() <= left
            assert not fits
            assert taken.sum() - taken.max() < share or (n_tokens[waiting] > left).all()


def test_one_source_is_all_sources():
    S, ones = unit_vectors("noise", 30, 8), np.ones(30, dtype=np.int64)
    alone = selected(S, ones, budget=7, source=0 * ones)
    assert np.array_equal(alone, selected(S, ones, budget=7))


def test_equal_sources_have_equal_shares():
    S, ones = unit_vectors("noise", 30, 8), np.ones(30, dtype=np.int64)
    source = np.arange(30) // 10
    relevance = np.where(source == 1, 1.0, 0.0)
    chosen = select_sentences(S, ones, relevance, redundancy=0.3, budget=6, source=source)
    assert np.bincount(source[chosen]).tolist() == [2, 2, 2]
    alone = select_sentences(S, ones, relevance, redundancy=0.3, budget=6)
    assert np.bincount(source[alone], minlength=3)[1] > 2


@given(texts())
def test_sparse_equals_dense(text):
    S, n_tokens, budget = text
    chosen = selected(csr_array(S), n_tokens, budget=budget)
    assert np.array_equal(chosen, selected(S, n_tokens, budget=budget))


@given(vectors(5, 20, least_dims=16, shapes=["noise"]), st.integers(2, 4), REDUNDANCIES, seeds())
def test_it_is_maximal_marginal_relevance(S, n_chosen, redundancy, seed):
    S, ones = S.astype(np.float64), np.ones(len(S), dtype=np.int64)
    assume(np.max(S @ S.T - np.eye(len(S))) < NEAR_DUPLICATE)
    towards = unit_vectors("noise", 1, S.shape[1], seed)[0]
    chosen = select_sentences(S, ones, S @ towards, budget=n_chosen, redundancy=redundancy)
    assert chosen.tolist() == maximal_marginal_relevance(S, n_chosen, towards, redundancy)


@given(vectors(least_rows=1, least_dims=2, shapes=["noise", "blobs"]), st.data())
def test_the_first_choice_is_the_most_relevant(S, data):
    i = data.draw(st.integers(0, len(S) - 1))
    ones = np.ones(len(S), dtype=np.int64)
    assume(np.sum(S @ S[i] > 1 - 1e-6) == 1)
    assert select_sentences(S, ones, S @ S[i], redundancy=0.3, budget=1).tolist() == [i]


@pytest.mark.parametrize(
    ("S", "n_tokens", "budget", "redundancy", "expected"),
    [
        pytest.param(np.empty((0, 2)), [], 9, 0.3, [], id="no sentences"),
        pytest.param([[1, 0]], [5], 5, 0.3, [0], id="one that just fits"),
        pytest.param([[1, 0]], [5], 4, 0.3, [], id="one that does not"),
        pytest.param([[1, 0]] * 4, [1] * 4, 2, 0.3, [0], id="identical"),
        pytest.param([[1, 0], [1, 0], [0.6, 0.8]], [1] * 3, 2, 0.3, [0, 2], id="redundant"),
        pytest.param(
            [[1, 0], [0.8, 0.6], [0, 1], [1, 0]], [1] * 4, 2, 0, [0, 1], id="redundancy allowed"
        ),
        pytest.param([[1, 0], [1, 0], [0, 1]], [9, 3, 3], 6, 0.3, [1, 2], id="too long"),
        pytest.param([[1.0], [-1.0]], [1, 1], 1, 0.3, [0], id="centroid of length 0"),
        pytest.param([[1, 0], [0, 1]], [0, 0], 0, 0.3, [0, 1], id="free sentences"),
    ],
)
def test_named_cases(S, n_tokens, budget, redundancy, expected):
    S, n_tokens = np.array(S, dtype=np.float64), np.array(n_tokens, dtype=np.int64)
    for form in (S, csr_array(S)):
        chosen = selected(form, n_tokens, budget=budget, redundancy=redundancy)
        assert chosen.tolist() == expected
