import numpy as np
import pytest

from hierindex.core.gaussian import COARSE, Shape, best_posteriors, posteriors

ROUND = Shape("diag", reg_covar=3e-2, seed=0)


def blobs(n_blobs, n=400, d=8):
    rng = np.random.default_rng(n_blobs)
    return rng.normal(size=(n_blobs, d))[np.arange(n) % n_blobs] * 9 + rng.normal(size=(n, d))


@pytest.fixture
def fitted(monkeypatch):
    """Numbers of components, in the order in which mixtures are fitted, and their criteria."""
    from sklearn.mixture import GaussianMixture

    mixtures, fit = [], GaussianMixture.fit

    def recorded(self, Z):
        mixtures.append(self)
        return fit(self, Z)

    monkeypatch.setattr(GaussianMixture, "fit", recorded)
    return mixtures


@pytest.mark.parametrize("n_blobs", [1, 3, 11, 23, 40])
def test_the_number_is_searched_coarse_to_fine_each_fitted_once_and_found(fitted, n_blobs):
    Z = blobs(n_blobs)
    P = best_posteriors(Z, ROUND, most=100)
    numbers = [mixture.n_components for mixture in fitted]
    assert numbers[: len(COARSE)] == [*COARSE]
    assert len(numbers) == len(set(numbers)) <= 16
    values = {m.n_components: m.bic(Z) for m in fitted}
    assert P.shape[1] == min(values, key=values.__getitem__)
    # Nothing untried is nearer to the best than an eighth of it, but what is next to it.
    near = [abs(number - P.shape[1]) for number in numbers if number != P.shape[1]]
    assert min(near) <= max(1, P.shape[1] / 8)
    assert P.shape[1] == pytest.approx(n_blobs, rel=0.25)


def test_a_number_over_the_most_is_not_tried(fitted):
    best_posteriors(blobs(20, n=40), ROUND, most=13)
    assert max(mixture.n_components for mixture in fitted) == 13


@pytest.mark.parametrize("covariance", ["diag", "full", "tied", "spherical"])
def test_a_given_number_is_kept(covariance):
    P = posteriors(blobs(5), Shape(covariance, reg_covar=1e-6, seed=0), 7)
    assert P.shape == (400, 7)
    np.testing.assert_allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize("covariance", ["diag", "full", "tied", "spherical"])
def test_the_least_regularisation_holds_for_equal_rows(covariance):
    Z = np.repeat(blobs(3, n=3), [50, 1, 99], axis=0)
    posteriors(Z, Shape(covariance, reg_covar=1e-6, seed=0), 3)
