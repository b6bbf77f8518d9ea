"""Rows of a level, their order, and their memberships in groups."""

import subprocess
import sys
from threading import Thread
from time import sleep

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import leaves, memberships, seeds, unit_vectors, vectors
from threadpoolctl import threadpool_info

from hierindex.core.bounds import Caps, bounded
from hierindex.core.membership import (
    Rows,
    canonical_order,
    centroids,
    from_groups,
    groups_of,
    one_hot,
    one_thread,
    strongest_parent,
    unit_rows,
    weighted_groups,
)
from hierindex.core.tree import ByMixture
from hierindex.errors import InputError

ON_EIGHT_THREADS = """
import numpy as np
from threadpoolctl import threadpool_info
from hierindex.core.membership import one_thread
from hierindex.core.mixture import partition
with one_thread():  # which reaches only libraries that are loaded
    import sklearn.cluster, sklearn.decomposition, sklearn.mixture, sklearn.neighbors
    assert {library["num_threads"] for library in threadpool_info()} == {1}
X = np.random.default_rng(0).normal(size=(20_000, 8)).astype(np.float32)
X /= np.linalg.norm(X, axis=1, keepdims=True)
parts = [partition(X, max_rows=500) for _ in range(2)]
assert np.array_equal(*parts)
"""


def limits():
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}


def test_two_at_once_leave_no_limit_behind():
    before = limits()

    def limited(seconds):
        with one_thread():
            assert set(limits().values()) == {1}
            sleep(seconds)

    threads = [Thread(target=limited, args=(seconds,)) for seconds in (0.1, 0.2)]
    for thread in threads:
        thread.start()
        sleep(0.05)
    for thread in threads:
        thread.join()
    assert limits() == before


def test_it_can_be_asked_for_inside_itself():
    before = limits()
    with one_thread(), one_thread():
        assert set(limits().values()) == {1}
    assert limits() == before


def test_a_fresh_process_clusters_on_one_thread_and_its_parts_are_the_same(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    subprocess.run([sys.executable, "-c", ON_EIGHT_THREADS], check=True)


def test_groups_are_split_on_one_thread(monkeypatch):
    seen, usual = [], np.linalg.eigh

    def eigh(*arguments, **options):
        seen.append({*limits().values()})
        return usual(*arguments, **options)

    monkeypatch.setattr(np.linalg, "eigh", eigh)
    rows = Rows(np.eye(12), np.ones(12, int), np.zeros(12, int))
    bounded(one_hot(np.zeros(12, int)), rows, Caps(max_tokens=100, max_children=5))
    assert seen
    assert all(threads == {1} for threads in seen)


@pytest.mark.parametrize(
    ("row", "length"), [([np.nan, 1, 0, 0], "nan"), ([3, 0, 4, 0], "5"), ([0, 0, 0, 0], "0")]
)
def test_a_wrong_row_is_named(row, length):
    X = np.eye(4)[[0, 1, 2, 3, 0, 1]]
    X[3] = row
    X[5] = np.nan  # the first one is named
    with pytest.raises(InputError, match=f"must be unit vectors; row 3 has length {length}."):
        Rows(X, np.ones(6, int), np.zeros(6, int))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_and_double_precision_stay_as_they_are(dtype):
    X = unit_vectors("noise", 50, 64).astype(dtype)
    assert unit_rows(X) is X


@pytest.mark.parametrize(
    "X", [unit_vectors("noise", 260, 64).astype(np.float16), np.eye(260, dtype=np.int64)]
)
def test_half_precision_and_integers_can_be_grouped(X):
    rows = Rows(X, np.ones(260, int), np.zeros(260, int))
    assert rows.X.dtype == np.float64
    M = ByMixture(0, Caps(99, 9))(rows)
    assert M is not None
    assert M.shape[0] == 260


def test_minus_zero_is_zero():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]])
    assert canonical_order(X).tolist() in ([0, 2, 1], [1, 0, 2])


@given(leaves(least_rows=1))
def test_some_of_the_rows_are_rows(rows):
    some = rows[np.arange(0, len(rows), 2)]
    assert len(rows) == len(rows.X)
    assert np.array_equal(some.X, rows.X[::2])
    assert np.array_equal(some.n_tokens, rows.n_tokens[::2])
    assert np.array_equal(some.document, rows.document[::2])
    assert np.array_equal(some.heading, rows.heading[::2])


@given(vectors(), seeds())
def test_the_canonical_order_does_not_depend_on_the_order_of_the_rows(X, seed):
    shuffled = X[np.random.default_rng(seed).permutation(len(X))]
    order = canonical_order(X)
    assert np.array_equal(np.sort(order), np.arange(len(X)))
    assert np.array_equal(X[order], shuffled[canonical_order(shuffled)])


@given(vectors(shapes=["duplicates", "identical"]))
def test_equal_rows_stay_in_their_order_and_stand_together(X):
    order = canonical_order(X)
    is_equal = (X[order][1:] == X[order][:-1]).all(axis=1)
    assert (np.diff(order)[is_equal] > 0).all()
    assert (~is_equal).sum() + min(len(X), 1) == len(np.unique(X, axis=0))


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
