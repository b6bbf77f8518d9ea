import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import seeds, unit_vectors, vectors

from hierindex.core.membership import groups_of, one_hot
from hierindex.core.partition import Partition, partition
from hierindex.errors import InputError


@given(vectors(least_rows=1), st.integers(1, 210), seeds())
def test_every_row_has_a_part_and_no_part_is_too_large(X, max_rows, seed):
    parts = partition(X, max_rows=max_rows, seed=seed)
    assert parts.part.shape == (len(X),)
    assert np.array_equal(np.unique(parts.part), np.arange(parts.n_parts))
    assert np.bincount(parts.part).max() <= max_rows
    if len(X) <= max_rows:
        assert parts.n_parts == 1


@given(vectors(least_rows=1), st.integers(1, 60), seeds())
def test_rows_that_were_split_are_assigned_to_their_own_part(X, max_rows, seed):
    parts = partition(X, max_rows=max_rows, seed=seed)
    assigned = parts.assign(X)
    for row in np.flatnonzero(assigned != parts.part):
        # Too many rows that are all but equal for one part.
        alike = X @ X[row] > 1 - 1e-5
        assert alike[parts.part == parts.part[row]].all()
        assert alike.sum() > 1


@given(
    vectors(1, 80, least_dims=2, shapes=["noise", "blobs", "collinear"]),
    st.integers(1, 40),
    seeds(),
)
def test_permuted_rows_permute_the_parts(X, max_rows, seed):
    assume(len(np.unique(X, axis=0)) == len(X))
    order = np.random.default_rng(seed).permutation(len(X))
    shuffled = partition(X[order], max_rows=max_rows, seed=seed)
    parts = partition(X, max_rows=max_rows, seed=seed)
    assert np.array_equal(shuffled.part, parts.part[order])
    assert np.array_equal(shuffled.centroids, parts.centroids)


def test_blobs_are_kept_together():
    X, blob = unit_vectors("blobs", 400, 16), np.arange(400) % 4
    parts = partition(X, max_rows=150)
    assert all(np.ptp(blob[group]) == 0 for group in groups_of(one_hot(parts.part)))


def test_later_rows_go_where_like_rows_went():
    X = unit_vectors("blobs", 400, 16)
    parts = partition(X[:300], max_rows=110)
    near = {(blob, part) for blob, part in zip(np.arange(300) % 4, parts.part, strict=True)}
    later = parts.assign(X[300:])
    assert {*zip(np.arange(300, 400) % 4, later, strict=True)} <= near


def test_parts_are_split_again_until_they_are_small_enough():
    X = unit_vectors("noise", 3000, 8)
    parts = partition(X, max_rows=10)
    assert np.bincount(parts.part).max() <= 10
    depth, node = 0, len(parts.parent) - 1
    while (node := parts.parent[node]) >= 0:
        depth += 1
    assert depth >= 2  # 64 parts of 3000 rows are too large
    assert np.array_equal(parts.assign(X), parts.part)


@pytest.mark.parametrize("n", [1, 2, 13, 14])
def test_equal_rows_come_apart_where_one_part_cannot_hold_them(n):
    parts = partition(unit_vectors("identical", n, 4), max_rows=4)
    assert parts.n_parts == -(-n // 4)
    assert parts.assign(unit_vectors("identical", n, 4)).tolist() == [0] * n


def test_rows_that_differ_by_a_rounding_come_apart_too():
    X = np.array([[0.95820814, 0.2860719], [0.9582244, 0.2860175]], dtype=np.float32)
    parts = partition(np.repeat(X, [3, 2], axis=0), max_rows=2)
    assert np.bincount(parts.part).max() <= 2
    assert parts.n_parts == 3


def test_centroids_are_unit_vectors_and_parents_come_first():
    parts = partition(unit_vectors("noise", 500, 8), max_rows=20)
    np.testing.assert_allclose(np.linalg.norm(parts.centroids, axis=1), 1)
    assert parts.parent[0] == -1
    assert (parts.parent < np.arange(len(parts.parent))).all()


def test_a_partition_is_made_of_arrays_that_can_be_kept():
    parts = partition(unit_vectors("noise", 500, 8), max_rows=50)
    kept = Partition(np.empty(0, int), parts.centroids.copy(), parts.parent.copy())
    later = unit_vectors("noise", 100, 8, seed=1)
    assert np.array_equal(kept.assign(later), parts.assign(later))


@pytest.mark.parametrize(
    ("n", "max_rows", "message"),
    [
        (3, 0, "max_rows must be a whole number of at least 1, got 0."),
        (0, 3, "There are no rows to split."),
    ],
)
def test_errors(n, max_rows, message):
    with pytest.raises(InputError) as error:
        partition(unit_vectors("noise", n, 3), max_rows=max_rows)
    assert str(error.value) == message


def test_rows_of_other_dimensions_are_not_assigned():
    with pytest.raises(InputError, match="Rows must be of 8 dimensions, got 3"):
        partition(unit_vectors("noise", 5, 8)).assign(unit_vectors("noise", 5, 3))


def test_a_seed_is_not_negative():
    with pytest.raises(InputError, match="seed must be a whole number of at least 0, got -1"):
        partition(unit_vectors("noise", 5, 8), seed=-1)
