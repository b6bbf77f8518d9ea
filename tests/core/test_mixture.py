"""Mixtures of a level's rows, and partitions of many rows."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import seeds, unit_vectors, vectors

from hierindex import Mixture
from hierindex.core import mixture as module
from hierindex.core.membership import groups_of, one_hot, strongest_parent
from hierindex.core.mixture import (
    COARSE,
    MAX_SPLIT,
    MIN_UMAP_ROWS,
    best_fitted,
    fitted,
    mixture,
    partition,
    strongest,
)
from hierindex.errors import InputError

RAPTOR = Mixture(target_size=None, min_weight=0.1)


def blobs(n_blobs, n=400, d=8):
    rng = np.random.default_rng(n_blobs)
    return rng.normal(size=(n_blobs, d))[np.arange(n) % n_blobs] * 9 + rng.normal(size=(n, d))


@pytest.fixture
def all_fitted(monkeypatch):
    """Numbers of components, in the order in which mixtures are fitted, and their criteria."""
    from sklearn.mixture import GaussianMixture

    mixtures, fit = [], GaussianMixture.fit

    def recorded(self, Z):
        mixtures.append(self)
        return fit(self, Z)

    monkeypatch.setattr(GaussianMixture, "fit", recorded)
    return mixtures


@pytest.mark.parametrize("n_blobs", [1, 11, 40])
def test_the_number_is_searched_coarse_to_fine_each_fitted_once_and_found(all_fitted, n_blobs):
    Z = blobs(n_blobs)
    best = best_fitted(Z, 0, most=100).n_components
    numbers = [mixture.n_components for mixture in all_fitted]
    assert numbers[: len(COARSE)] == [*COARSE]
    assert len(numbers) == len(set(numbers)) <= 16
    values = {m.n_components: m.bic(Z) for m in all_fitted}
    assert best == min(values, key=values.__getitem__)
    # Nothing untried is nearer to the best than an eighth of it, but what is next to it.
    near = [abs(number - best) for number in numbers if number != best]
    assert min(near) <= max(1, best / 8)
    assert best == pytest.approx(n_blobs, rel=0.25)


def test_a_number_over_the_most_is_not_tried(all_fitted):
    best_fitted(blobs(20, n=40), 0, most=13)
    assert max(mixture.n_components for mixture in all_fitted) == 13


def test_a_given_number_is_kept_also_for_equal_rows():
    for Z in blobs(5), np.repeat(blobs(7, n=7), [50, 1, 99, 50, 50, 50, 100], axis=0):
        P = fitted(Z, 0, 7).predict_proba(Z)
        assert P.shape == (400, 7)
        np.testing.assert_allclose(P.sum(axis=1), 1)


def models() -> st.SearchStrategy[Mixture]:
    return st.builds(
        Mixture,
        reduction=st.sampled_from(["umap", "pca"]),
        n_dims=st.integers(1, 300),
        target_size=st.none() | st.integers(2, 30),
        min_weight=st.sampled_from([1e-6, 0.1, 1.0]),
        max_parents=st.integers(1, 3),
    )


@given(vectors(least_rows=1), models())
def test_each_row_has_weights_of_sum_1_in_as_many_groups_as_allowed(X, model):
    M = mixture(X, model=model)
    assert M.shape[0] == len(X)
    np.testing.assert_allclose(M.sum(axis=1), 1)
    assert set(np.diff(M.indptr)) <= set(range(1, model.max_parents + 1))
    assert all(len(group) for group in groups_of(M))


@given(vectors(1, 120), seeds(), st.integers(1, 120))
def test_whatever_the_rows_umap_reduces_them(X, seed, n_dims):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MIN_UMAP_ROWS", 12)
        M = mixture(X, model=Mixture(n_dims=n_dims), seed=seed)
    np.testing.assert_allclose(M.sum(axis=1), 1)
    assert all(len(group) for group in groups_of(M))


@given(vectors(1, 80, least_dims=2, shapes=["noise", "blobs", "collinear"]), seeds(), models())
def test_permuted_rows_permute_the_groups(X, seed, model):
    assume(len(np.unique(X, axis=0)) == len(X))
    order = np.random.default_rng(seed).permutation(len(X))
    shuffled, M = mixture(X[order], model=model), mixture(X, model=model)
    assert [*map(sorted, groups_of(M))] == sorted(
        sorted(order[group].tolist()) for group in groups_of(shuffled)
    )
    np.testing.assert_allclose(np.sort(shuffled.data), np.sort(M.data))


@given(st.integers(1, 60), st.integers(1, 9), seeds())
def test_a_least_weight_of_1_gives_one_parent_and_any_other_three_at_most(n, n_groups, seed):
    P = csr_array(np.random.default_rng(seed).dirichlet(np.full(n_groups, 0.3), size=n))
    parents = [strongest(P, Mixture(min_weight=w)).nnz for w in (1.0, 0.3, 0.1, 0.01)]
    assert parents[0] == n
    assert all(n <= number <= 3 * n for number in parents)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 13, 14])
@pytest.mark.parametrize("shape", ["identical", "one_outlier"])
@pytest.mark.parametrize("d", [1, 8])
def test_fewer_than_three_distinct_rows_are_one_group(n, shape, d):
    assert mixture(unit_vectors(shape, n, d)).toarray().tolist() == [[1]] * n


@pytest.mark.parametrize(
    ("posterior", "model", "expected"),
    [
        pytest.param([0.6, 0.25, 0.15], Mixture(), [0.6, 0.25], id="0.25 is enough"),
        pytest.param([0.6, 0.35, 0.05], Mixture(min_weight=0.2), [0.6, 0.35], id="less is not"),
        pytest.param(
            [0.1, 0.2, 0.4, 0.3], Mixture(min_weight=0.1), [0.2, 0.4, 0.3], id="the three largest"
        ),
        pytest.param([0.1, 0.4, 0.5], Mixture(max_parents=2), [0.4, 0.5], id="the two largest"),
        pytest.param([0.25] * 4, Mixture(), [0.25] * 3, id="ties go to the first"),
        pytest.param([0.3, 0.4, 0.3], Mixture(min_weight=1), [0.4], id="the largest stays"),
    ],
)
def test_groups_that_a_row_joins(posterior, model, expected):
    others = np.eye(len(posterior))  # rows that keep every group alive
    others = np.repeat(others, 2, axis=0)
    M = strongest(csr_array(np.vstack([[posterior], others])), model)
    weights = np.array(expected) / np.sum(expected)
    np.testing.assert_allclose(np.sort(M.toarray()[0][M.toarray()[0] > 0]), np.sort(weights))


def assert_blobs_are_recovered(M):
    """No group has rows of two of the four blobs."""
    blob = np.arange(M.shape[0]) % 4
    assert len({*zip(strongest_parent(M), blob, strict=True)}) == M.shape[1] >= 4


@pytest.mark.parametrize("n", [16, 40, MIN_UMAP_ROWS - 1])
@pytest.mark.parametrize("model", [Mixture(), RAPTOR])
def test_blobs_are_recovered_without_umap(n, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    assert_blobs_are_recovered(mixture(unit_vectors("blobs", n, 16), model=model))


def test_principal_components_are_used_for_many_rows_if_so_wished(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    model = Mixture(reduction="pca")
    assert_blobs_are_recovered(mixture(unit_vectors("blobs", MIN_UMAP_ROWS + 60, 16), model=model))


@pytest.fixture(scope="module")
def many():
    X = unit_vectors("blobs", MIN_UMAP_ROWS + 60, 16)
    return X, mixture(X, seed=7)


def test_blobs_are_recovered_with_umap(many):
    assert_blobs_are_recovered(many[1])


def test_with_umap_the_same_seed_gives_the_same_groups_in_any_order_of_rows(many):
    X, M = many
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = mixture(X[order], seed=7)
    assert {frozenset(order[group]) for group in groups_of(shuffled)} == {
        frozenset(group) for group in groups_of(M)
    }


def test_a_target_size_is_kept_on_average():
    X = unit_vectors("noise", 180, 16)
    for size in (5, 10, 30):
        n_groups = mixture(X, model=Mixture(target_size=size, max_parents=1)).shape[1]
        assert 180 / n_groups == pytest.approx(size, rel=0.35)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reduction": "tsne"}, "reduction must be umap or pca, got 'tsne'."),
        ({"n_dims": 0}, "n_dims must be a whole number of at least 1, got 0."),
        ({"target_size": 1}, "target_size must be a whole number of at least 2 rows, got 1."),
        ({"min_weight": 0}, "min_weight must be in (0, 1], got 0."),
        ({"max_parents": 4}, "max_parents must be 1, 2 or 3, got 4."),
        ({"max_parents": "2"}, "max_parents must be 1, 2 or 3, got '2'."),
        ({"min_weight": "0.1"}, "min_weight must be in (0, 1], got '0.1'."),
    ],
)
def test_errors(wrong, message):
    with pytest.raises(InputError) as error:
        replace(Mixture(), **wrong)
    assert str(error.value) == message


@pytest.mark.parametrize("n_dims", [2, 8, 64])
def test_rows_that_differ_by_rounding_are_one_cluster(n_dims):
    """Their variance may be zero or negative, by rounding."""
    for scale in (1e-18, 1e-16, 1e-12, 1e-9):
        X = unit_vectors("identical", 30, n_dims) + scale * unit_vectors("noise", 30, n_dims, 1)
        assert mixture(X / np.linalg.norm(X, axis=1, keepdims=True)).shape == (30, 1)


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
    X = unit_vectors("noise", 1000, 8)
    n_rows = np.bincount(partition(X, max_rows=10))
    assert len(n_rows) > MAX_SPLIT
    assert n_rows.max() <= 10


@pytest.mark.parametrize("n", [1, 2, 13, 14])
def test_equal_rows_come_apart_where_one_part_cannot_hold_them(n):
    part = partition(unit_vectors("identical", n, 4), max_rows=4)
    assert len(np.unique(part)) == -(-n // 4)


@pytest.mark.parametrize(
    "X",
    [
        pytest.param([[1.0, 0.0], [1.0, 1e-20]], id="nearest to one centroid"),
        pytest.param([[1.0, 0.0], [1.0, 1e-30]], id="even nearer"),
        pytest.param(
            np.array([[0.95820814, 0.2860719], [0.9582244, 0.2860175]], dtype=np.float32),
            id="single precision",
        ),
    ],
)
def test_rows_that_are_almost_equal_come_apart_too(X):
    n_rows = np.bincount(partition(np.repeat(X, [3, 2], axis=0), max_rows=2))
    assert n_rows.max() <= 2
    assert len(n_rows) == 3
