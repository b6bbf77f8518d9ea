import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import seeds, unit_vectors, vectors

from hierindex.core.membership import groups_of, one_hot
from hierindex.core.mixture import MAX_SPLIT, partition


@given(vectors(least_rows=1), st.integers(1, 210), seeds())
def test_every_row_has_a_part_and_no_part_is_too_large(X, max_rows, seed):
    part = partition(X, max_rows=max_rows, seed=seed)
    assert part.shape == (len(X),)
    assert np.array_equal(np.unique(part), np.arange(part.max() + 1))
    assert np.bincount(part).max() <= max_rows
    if len(X) <= max_rows:
        assert not part.any()


@given(
    vectors(1, 80, least_dims=2, shapes=["noise", "blobs", "collinear"]),
    st.integers(1, 40),
    seeds(),
)
def test_permuted_rows_permute_the_parts(X, max_rows, seed):
    assume(len(np.unique(X, axis=0)) == len(X))
    order = np.random.default_rng(seed).permutation(len(X))
    shuffled = partition(X[order], max_rows=max_rows, seed=seed)
    assert np.array_equal(shuffled, partition(X, max_rows=max_rows, seed=seed)[order])


def test_blobs_are_kept_together():
    X, blob = unit_vectors("blobs", 400, 16), np.arange(400) % 4
    groups = groups_of(one_hot(partition(X, max_rows=150)))
    assert all(np.ptp(blob[group]) == 0 for group in groups)


def test_parts_are_split_again_until_they_are_small_enough():
    X = unit_vectors("noise", 3000, 8)
    n_rows = np.bincount(partition(X, max_rows=10))
    assert len(n_rows) > MAX_SPLIT
    assert n_rows.max() <= 10


@pytest.mark.parametrize("n", [1, 2, 13, 14])
def test_equal_rows_come_apart_where_one_part_cannot_hold_them(n):
    part = partition(unit_vectors("identical", n, 4), max_rows=4)
    assert len(np.unique(part)) == -(-n // 4)


@pytest.mark.parametrize("least", [1e-20, 1e-30])
def test_rows_that_are_nearest_to_one_centroid_come_apart_too(least):
    X = np.array([[1.0, 0.0], [1.0, least]])
    n_rows = np.bincount(partition(np.repeat(X, [3, 2], axis=0), max_rows=2))
    assert n_rows.max() <= 2
    assert len(n_rows) == 3


def test_rows_that_differ_by_a_rounding_come_apart_too():
    X = np.array([[0.95820814, 0.2860719], [0.9582244, 0.2860175]], dtype=np.float32)
    n_rows = np.bincount(partition(np.repeat(X, [3, 2], axis=0), max_rows=2))
    assert n_rows.max() <= 2
    assert len(n_rows) == 3
