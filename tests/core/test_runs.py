import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds, unit_vectors, vectors

from hierindex.core.runs import gap_similarity, squared_lengths


@given(vectors(most_rows=30), st.integers(1, 35))
def test_every_run_has_the_squared_length_of_its_sum(X, longest):
    Q = squared_lengths(X, longest)
    assert Q.shape == (longest + 1, len(X))
    for length in range(longest + 1):
        for start in range(len(X)):
            rows = X[start : start + length].astype(np.float64)
            expected = (rows.sum(axis=0) ** 2).sum() if start + length <= len(X) else 0
            assert Q[length, start] == pytest.approx(expected, abs=1e-4)


@given(vectors(least_rows=1, most_rows=40), st.integers(1, 45))
def test_a_gap_is_as_similar_as_the_sums_on_its_sides(X, window):
    similarity = gap_similarity(X, window)
    assert similarity.shape == (len(X) - 1,)
    for gap in range(1, len(X)):
        before = X[max(gap - window, 0) : gap].astype(np.float64).sum(axis=0)
        after = X[gap : gap + window].astype(np.float64).sum(axis=0)
        length = np.linalg.norm(before) * np.linalg.norm(after)
        if length > 0.1:
            assert similarity[gap - 1] == pytest.approx(before @ after / length, abs=1e-3)


def test_a_side_that_cancels_out_is_like_nothing():
    X = np.array([[1, 0], [-1, 0], [1, 0], [1, 0.0]])
    assert gap_similarity(X, 2).tolist() == [0.0, 0.0, 0.0]


@given(st.integers(1, 64), st.integers(1, 6), seeds())
def test_what_nearly_cancels_out_is_like_nothing(d, window, seed):
    a = unit_vectors("noise", 1, d, seed)[0]
    X = (np.where(np.arange(12) % 2, -1, 1)[:, None] * a).astype(np.float32)
    X += 1e-6 * unit_vectors("noise", 12, d, seed + 1).astype(np.float32)
    similarity = gap_similarity(X, window)
    assert np.abs(similarity).max() <= 1
    if window % 2 == 0:
        assert not similarity[window - 1 : 12 - window].any()


@pytest.mark.parametrize("n", [0, 1])
def test_no_gaps(n):
    assert gap_similarity(unit_vectors("noise", n, 3)).tolist() == []
