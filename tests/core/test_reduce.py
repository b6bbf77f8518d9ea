import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from strategies import unit_vectors, vectors

from hierindex.core import reduce
from hierindex.core.reduce import (
    nearest_rows,
    plane_coordinates,
    principal_components,
    principal_coordinates,
    umap_coordinates,
)


@given(vectors(2, 120), st.data())
def test_nearest_rows_are_exact(X, data):
    k = data.draw(st.integers(2, len(X)))
    indices, distances = nearest_rows(X, k)
    assert indices.shape == distances.shape == (len(X), k)
    assert np.array_equal(indices[:, 0], np.arange(len(X)))
    assert all(len(set(row)) == k for row in indices.tolist())
    expected = np.sort(np.maximum(1 - X.astype(np.float64) @ X.T, 0), axis=1)[:, :k]
    np.testing.assert_allclose(distances, expected, atol=1e-5)


@given(vectors(2, 80, shapes=["noise", "blobs", "collinear"]), st.integers(1, 12))
def test_principal_coordinates_keep_the_distances_that_they_can(X, n_dims):
    X = X.astype(np.float64)
    assume(len(np.unique(X, axis=0)) > 1)
    Z = principal_coordinates(X, n_dims)
    assert Z.shape == (len(X), min(n_dims, *X.shape))
    assert Z.std() == pytest.approx(1)
    if n_dims >= min(X.shape):
        wide = np.linalg.norm(X[:1] - X, axis=1)
        narrow = np.linalg.norm(Z[:1] - Z, axis=1)
        assert np.corrcoef(wide, narrow)[0, 1] == pytest.approx(1) or wide.std() < 1e-6


@pytest.mark.parametrize("n", [3, 40, 300])
def test_principal_components_are_those_of_sklearn(n):
    X = unit_vectors("noise", n, 60).astype(np.float64)
    Z = principal_components(X, 4)
    expected = PCA(min(4, n), svd_solver="full").fit_transform(X)
    np.testing.assert_allclose(np.abs(Z[:, : n - 1]), np.abs(expected[:, : n - 1]), atol=1e-9)
    assert (Z.max(axis=0) >= -Z.min(axis=0)).all()


def test_equal_rows_have_equal_principal_components():
    X = np.repeat(np.random.default_rng(0).normal(size=(2, 9)), 3, axis=0)
    Z = principal_components(X, 5)
    np.testing.assert_allclose(Z, np.repeat(Z[::3], 3, axis=0), atol=1e-6)
    assert np.abs(Z[:, 1:]).max() < 1e-6  # two rows stand on a line


@pytest.mark.parametrize("n", [40, 300])
def test_umap_keeps_blobs_apart(n):
    X, blob = unit_vectors("blobs", n, 16), np.arange(n) % 4
    Z = umap_coordinates(X, 3, n_neighbors=8, seed=0)
    assert Z.shape == (n, 3)
    centres = np.array([Z[blob == b].mean(axis=0) for b in range(4)])
    nearest = np.linalg.norm(Z[:, None] - centres, axis=2).argmin(axis=1)
    assert np.array_equal(nearest, blob)


def test_umap_keeps_its_compiled_functions_on_disk():
    from umap import layouts

    reduce._umap_class.cache_clear()
    reduce._umap_class()
    assert layouts._nb_optimize_layout_euclidean_single_epoch._cache.cache_path


@given(vectors(0, 30))
def test_every_row_has_a_place_on_the_plane(X):
    before = X.copy()
    Z = plane_coordinates(X)
    assert Z.shape == (len(X), 2)
    assert np.array_equal(X, before)
    if len(np.unique(X, axis=0)) < 2:
        assert not Z.any()
    else:
        assert np.abs(Z).max() == pytest.approx(1)
        assert Z.max(axis=0) == pytest.approx(-Z.min(axis=0))
    assert np.array_equal(Z, plane_coordinates(X))


def test_few_rows_are_placed_by_their_principal_components():
    Z = plane_coordinates(np.array([[1.0, 0, 0], [0, 1, 0], [0, 0.6, 0.8]]))
    distances = np.linalg.norm(Z[:, None] - Z, axis=2)[[0, 0, 1], [1, 2, 2]]
    assert distances / distances[0] == pytest.approx([1, 1, 0.4**0.5])


@pytest.mark.parametrize("n", [0, 1, 5])
def test_equal_rows_have_one_place(n):
    assert plane_coordinates(np.ones((n, 1))).tolist() == [[0.0, 0.0]] * n


def test_the_plane_keeps_neighbours():
    X, blob = unit_vectors("blobs", 200, 16), np.arange(200) % 4
    Z = plane_coordinates(X)
    nearest = np.argsort(np.linalg.norm(Z[:, None] - Z, axis=2), axis=1)[:, 1:6]
    assert (blob[nearest] == blob[:, None]).mean() > 0.99
