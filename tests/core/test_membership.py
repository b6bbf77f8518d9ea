import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import memberships, seeds, unit_vectors, vectors

from hierindex.core.membership import (
    centroids,
    from_groups,
    groups_of,
    normalised,
    one_hot,
    strongest_parent,
    weighted_groups,
)
from hierindex.errors import InputError

A, B = np.array([0, 1]), np.array([1, 2])
HALF = np.array([0.5, 0.5])
ONE = np.array([1.0])


@given(st.lists(st.integers(-3, 3)))
def test_one_hot_groups_equal_labels_in_order_of_their_first_row(labels):
    M = one_hot(np.array(labels, dtype=np.int64))
    groups = groups_of(M)
    first_rows = [labels.index(label) for label in dict.fromkeys(labels)]
    assert [group[0] for group in groups] == first_rows
    assert all(len({labels[row] for row in group}) == 1 for group in groups)
    assert (M.sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("groups", "weights", "expected"),
    [
        pytest.param([A, B[1:]], [HALF, ONE], [[1, 0], [1, 0], [0, 1]], id="rows sum to 1"),
        pytest.param([A, A, B[1:]], [HALF, HALF, ONE], [[1, 0], [1, 0], [0, 1]], id="same rows"),
        pytest.param([A, A[:1], B], [HALF, ONE, HALF], [[1, 0], [0.5, 0.5], [0, 1]], id="single"),
        pytest.param([B, A], [HALF, HALF], [[1, 0], [0.5, 0.5], [0, 1]], id="columns sorted"),
    ],
)
def test_from_groups(groups, weights, expected):
    assert from_groups(zip(groups, weights, strict=True), 3).toarray().tolist() == expected


@given(st.data(), st.integers(1, 40))
def test_from_groups_of_a_canonical_membership_is_that_membership(data, n_rows):
    M = data.draw(memberships(n_rows))
    once = from_groups(weighted_groups(M), n_rows)
    twice = from_groups(weighted_groups(once), n_rows)
    np.testing.assert_allclose(twice.toarray(), once.toarray())


@given(st.data(), st.integers(1, 40))
def test_groups_and_weights_are_the_columns(data, n_rows):
    M = data.draw(memberships(n_rows))
    for column, (group, weight) in zip(M.toarray().T, weighted_groups(M), strict=True):
        assert np.array_equal(np.flatnonzero(column), group)
        assert np.array_equal(column[group], weight)


def test_normalised_rows_sum_to_1_and_the_input_stays():
    M = csr_array([[1.0, 3.0], [0.0, 0.2]])
    assert normalised(M).toarray().tolist() == [[0.25, 0.75], [0, 1]]
    assert M.toarray().tolist() == [[1, 3], [0, 0.2]]


@given(st.data(), st.integers(1, 40))
def test_the_strongest_parent_has_the_largest_weight_and_ties_go_to_the_lowest_column(data, n_rows):
    M = data.draw(memberships(n_rows))
    assert np.array_equal(strongest_parent(M), M.toarray().argmax(axis=1))


def test_strongest_parent_names_an_empty_row():
    with pytest.raises(InputError, match="row 1 belongs to none"):
        strongest_parent(csr_array([[1.0, 0.0], [0.0, 0.0]]))


def test_no_rows():
    M = one_hot(np.array([], dtype=np.int64))
    assert M.shape == (0, 0)
    assert groups_of(M) == []
    assert strongest_parent(M).tolist() == []


@given(st.data(), vectors(least_rows=1))
def test_centroids_have_length_1(data, X):
    M = data.draw(memberships(len(X)))
    np.testing.assert_allclose(np.linalg.norm(centroids(M, X), axis=1), 1, rtol=1e-6)


@given(vectors(least_rows=1), seeds())
def test_the_centroid_is_the_direction_of_largest_mean_similarity(X, seed):
    mean = X.mean(axis=0)
    assume(np.linalg.norm(mean) > 1e-3)
    other = unit_vectors("noise", 1, X.shape[1], seed)[0]
    centroid = centroids(one_hot(np.zeros(len(X), dtype=np.int64)), X)[0]
    assert mean @ centroid >= mean @ other - 1e-6


def test_a_group_that_cancels_out_gets_the_vector_of_its_first_row():
    X = np.array([[0.0, 1], [1, 0], [-1, 0]])
    assert centroids(one_hot(np.array([0, 1, 1])), X).tolist() == [[0, 1], [1, 0]]
