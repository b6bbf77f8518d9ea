import numpy as np
import pytest
from hypothesis import assume, given
from scipy.sparse import csr_array
from strategies import seeds, unit_vectors, vectors

from hierindex.core import relevance
from hierindex.core.relevance import DAMPING, MOST_DENSE, centroid_similarity, lexrank, opening


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
    monkeypatch.setattr(relevance, "MOST_DENSE", len(S))
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
