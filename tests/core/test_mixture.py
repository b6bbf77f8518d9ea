import sys

import numpy as np
import pytest
from hypothesis import assume, given
from strategies import few, seeds, unit_vectors, vectors

from hierindex.core.membership import from_groups, groups_of, strongest_parent, weights_of
from hierindex.core.mixture import MIN_UMAP_ROWS, _truncated, mixture


def canonical(M):
    """`M` with its columns in the order of their rows."""
    return from_groups(groups_of(M), weights_of(M), M.shape[0]).toarray()


@few
@given(vectors(1, 40))
def test_each_row_has_weights_of_sum_1_in_one_to_three_groups_and_no_group_is_empty(X):
    M = mixture(X)
    assert M.shape[0] == len(X)
    np.testing.assert_allclose(M.sum(axis=1), 1)
    assert set(np.diff(M.indptr)) <= {1, 2, 3}
    assert M.data.min() >= 0.1
    assert all(len(group) for group in groups_of(M))


@few
@given(vectors(1, 40, least_dims=2, shapes=["noise", "blobs", "collinear"]), seeds())
def test_permuted_rows_permute_the_groups(X, seed):
    assume(len(np.unique(X, axis=0)) == len(X))
    order = np.random.default_rng(seed).permutation(len(X))
    np.testing.assert_array_equal(canonical(mixture(X[order])), canonical(mixture(X)[order]))


@few
@given(vectors(1, 40), seeds())
def test_the_same_seed_gives_the_same_groups(X, seed):
    assert np.array_equal(mixture(X, seed=seed).toarray(), mixture(X, seed=seed).toarray())


@pytest.mark.parametrize("n", [1, 2, 3, 4, 13, 14])
@pytest.mark.parametrize("shape", ["identical", "one_outlier"])
@pytest.mark.parametrize("d", [1, 8])
def test_fewer_than_three_distinct_rows_are_one_group(n, shape, d):
    assert mixture(unit_vectors(shape, n, d)).toarray().tolist() == [[1]] * n


@pytest.mark.parametrize(
    ("posterior", "expected"),
    [
        pytest.param([0.6, 0.3, 0.1], [0.6, 0.3, 0.1], id="0.1 is enough"),
        pytest.param([0.6, 0.31, 0.09], [0.6, 0.31, 0], id="less is not"),
        pytest.param([0.1, 0.2, 0.4, 0.3], [0, 0.2, 0.4, 0.3], id="the three largest"),
        pytest.param([0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0], id="ties"),
        pytest.param([0.08, 0.09, 0.07], [0, 0.09, 0], id="the largest always stays"),
    ],
)
def test_posteriors_that_stay(posterior, expected):
    assert _truncated(np.array([posterior])).tolist() == [expected]


def test_no_rows():
    assert mixture(np.empty((0, 4))).shape == (0, 0)


def assert_blobs_are_recovered(M):
    """No group has rows of two of the four blobs, and a blob is two groups at most."""
    blob_of_group = {*zip(strongest_parent(M), np.arange(M.shape[0]) % 4, strict=True)}
    assert len(blob_of_group) == M.shape[1] <= 8


@pytest.mark.parametrize("n", [16, 40, MIN_UMAP_ROWS - 1])
def test_blobs_are_recovered_without_umap(n, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    assert_blobs_are_recovered(mixture(unit_vectors("blobs", n, 16)))


@pytest.fixture(scope="module")
def many():
    X = unit_vectors("blobs", MIN_UMAP_ROWS + 60, 16)
    return X, mixture(X, seed=7)


def test_blobs_are_recovered_with_umap(many):
    assert_blobs_are_recovered(many[1])


def test_with_umap_the_same_seed_gives_the_same_groups_in_any_order_of_rows(many):
    X, M = many
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(canonical(mixture(X[order], seed=7)), canonical(M[order]))
