import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import seeds, token_counts, unit_vectors, vectors

from hierindex.core.salience import (
    DAMPING,
    NEAR_DUPLICATE,
    SHORT,
    lexrank,
    opening,
    select_sentences,
    topicality,
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


@given(vectors(least_rows=1))
def test_lexrank_of_any_vectors_is_a_distribution(S):
    p = lexrank(csr_array(np.abs(S).astype(np.float64)), np.ones(len(S)))
    assert (p > 0).all()
    assert p.sum() == pytest.approx(1)


def test_what_is_like_others_ranks_above_what_is_not():
    S = np.zeros((9, 4))
    S[:, 0], S[4] = 1, np.eye(4)[3]
    p = lexrank(csr_array(S), np.ones(9))
    assert np.argmin(p) == 4
    assert np.delete(p, 4) == pytest.approx(np.delete(p, 4)[0])


def test_without_a_graph_the_walk_is_where_it_starts():
    restart = np.array([3.0, 1.0])
    assert lexrank(csr_array(np.eye(2)), restart) == pytest.approx([0.75, 0.25])
    assert lexrank(csr_array(np.zeros((2, 1))), restart) == pytest.approx([0.75, 0.25])


@pytest.mark.parametrize(
    ("document", "expected"),
    [([], []), ([5], [1]), ([2, 2, 2], [1, 1 / 2, 1 / 3]), ([1, 0, 1, 0], [1, 1, 1 / 2, 1 / 2])],
)
def test_openings(document, expected):
    assert opening(np.array(document, dtype=np.int64)) == pytest.approx(expected)


@given(vectors(), st.integers(1, 6), seeds())
def test_topicality_is_the_mean_weight_of_words_that_the_part_repeats(X, n_parts, seed):
    X = np.abs(X) > 0.3
    rng = np.random.default_rng(seed)
    part, n_words = rng.integers(-1, n_parts, len(X)), X.sum(axis=1) + rng.integers(1, 9, len(X))
    found = topicality(csr_array(X.astype(np.float64)), part, n_words)
    assert found.shape == (len(X),)
    of = {p: X[part == p].sum(axis=0) for p in part.tolist()}  # sentences with each word
    for i, p in enumerate(part.tolist()):
        weights = [
            np.log(of[p][w]) * (1 + np.log(len(of) / sum(has[w] > 0 for has in of.values())))
            for w in np.flatnonzero(X[i])
        ]
        share = np.mean([weight > 0 for weight in weights] or [0])
        assert found[i] == pytest.approx(sum(weights) / n_words[i] * share)


def select(S, n_tokens, relevance, part=None, size=None, **options):
    """By default there is one part, and parts are as large as their tokens."""
    part = np.zeros(len(n_tokens), dtype=np.int64) if part is None else part
    size = np.bincount(part, weights=n_tokens) if size is None else size
    return select_sentences(S, n_tokens, relevance, part=part, size=size, **options)


def selected(S, n_tokens, *, redundancy=0.3, **options):
    """By likeness to the sum."""
    towards = S @ np.asarray(S.sum(axis=0), dtype=np.float64).ravel()
    return select(S, n_tokens, towards, redundancy=redundancy, **options)


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


@given(texts(), st.integers(1, 6), seeds())
def test_the_chosen_ascend_differ_and_fill_the_budget_and_no_part_is_left_out(text, n_parts, seed):
    S, n_tokens, budget = text
    part = np.random.default_rng(seed).integers(n_parts, size=len(S))
    chosen = selected(S, n_tokens, budget=budget, part=part)
    left = budget - n_tokens[chosen].sum()
    assert left >= 0
    assert (np.diff(chosen) > 0).all()
    likeness = (S @ S[chosen].T).astype(np.float64)
    told = likeness.max(axis=1, initial=-1) >= NEAR_DUPLICATE - 1e-6
    assert (np.delete(n_tokens, chosen) > left)[~np.delete(told, chosen)].all()
    likeness[chosen, np.arange(len(chosen))] = -1
    assert (likeness[chosen] < NEAR_DUPLICATE + 1e-6).all()
    if n_parts * n_tokens.max(initial=0) <= budget:
        assert {*part[chosen]} >= {*part[~told]}


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(0, 20))
def test_parts_have_sentences_in_proportion_to_their_sizes(size, budget):
    """As d'Hondt has it: no part has a better claim to another's last sentence, but its first."""
    n_parts, size = len(size), np.array(size)
    part = np.arange(20 * n_parts) % n_parts
    S, ones = np.eye(len(part)), np.ones(len(part), dtype=np.int64)
    chosen = select(S, ones, 0.1 * ones, redundancy=0.3, budget=budget, part=part, size=size)
    taken = np.bincount(part[chosen], minlength=n_parts)
    assert taken.sum() == budget
    assert taken.max() <= 1 or taken.min() >= 1
    assert size[taken == 0].max(initial=0) <= size[taken > 0].min(initial=30)
    more = taken > 1
    assert ((size / np.maximum(taken, 1))[more, None] >= (size / (taken + 1))[taken > 0]).all()


@pytest.mark.parametrize(
    ("n_tokens", "budget", "size", "expected"),
    [
        pytest.param([5, 5, 5, 5, 5, 5], 15, None, [0, 2, 4], id="one of each"),
        pytest.param(
            [9, 5, 5, 5, 5, 5], 24, None, [0, 1, 2, 4], id="the part of most tokens first"
        ),
        pytest.param([5] * 6, 10, [1, 2, 3], [2, 4], id="the largest first"),
        pytest.param([5] * 6, 20, [1, 1, 3], [0, 2, 4, 5], id="two of the largest"),
        pytest.param([5] * 6, 25, [1, 9, 3], [0, 2, 3, 4, 5], id="a part that has no more"),
        pytest.param([99, 50, 5, 5, 5, 5], 150, None, [1, 2, 3, 4, 5], id="a short one first"),
        pytest.param([99, 51, 5, 5, 5, 5], 150, None, [0, 2, 3, 4, 5], id="none is short"),
        pytest.param([SHORT + 1, SHORT, 5, 5, 5, 5], 44, None, [1, 2, 4], id="short enough"),
        pytest.param([99, 99, 5, 5, 5, 5], 20, None, [2, 3, 4, 5], id="none fits"),
    ],
)
def test_sentences_of_three_parts(n_tokens, budget, size, expected):
    """Of two sentences each, the first of which is more relevant."""
    chosen = select(
        np.eye(6),
        np.array(n_tokens),
        np.array([0.9, 0.5] * 3),
        redundancy=0.3,
        budget=budget,
        part=np.repeat([0, 1, 2], 2),
        size=None if size is None else np.array(size),
    )
    assert chosen.tolist() == expected


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
    chosen = select(S, ones, S @ towards, budget=n_chosen, redundancy=redundancy)
    assert chosen.tolist() == maximal_marginal_relevance(S, n_chosen, towards, redundancy)


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
