"""Gaussian mixtures with a given number of components, or one chosen by BIC."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hierindex.core.membership import Floats2d

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

Covariance = Literal["diag", "full", "tied", "spherical"]

COARSE = (1, 2, 4, 8, 16, 32, 50)  # numbers of components; RAPTOR tries all from 1 to 49
FINE = 1 / 8  # relative resolution of the best number


@dataclass(frozen=True)
class Shape:
    """Covariance type, regularisation and random seed of a mixture."""

    covariance: Covariance
    reg_covar: float
    seed: int


def posteriors(Z: Floats2d, shape: Shape, number: int) -> Floats2d:
    """Fit a mixture of `number` <= n_rows components; return (n_rows, number) responsibilities.

    A step of EM costs O(n_rows * number * n_dims), times n_dims for full covariances.
    """
    return np.asarray(_fitted(Z, shape, number).predict_proba(Z))


def best_posteriors(Z: Floats2d, shape: Shape, *, most: int) -> Floats2d:
    """Fit mixtures of up to min(most, 50) components; return the responsibilities of the best.

    A coarse grid of numbers is tried first, then midpoints around the best one; each number is
    fitted once. The lowest BIC wins. The result is (n_rows, n_components); rows sum to 1.
    """
    fits: dict[int, GaussianMixture] = {}
    value: dict[int, float] = {}
    untried = {min(number, most) for number in COARSE}
    while untried:
        for number in sorted(untried):
            fits[number] = fit = _fitted(Z, shape, number)
            value[number] = float(fit.bic(Z))
        tried = sorted(fits)
        best = min(tried, key=value.__getitem__)
        at = tried.index(best)
        neighbours = (*tried[max(at - 1, 0) : at], *tried[at + 1 : at + 2])
        untried = {(n + best) // 2 for n in neighbours if abs(n - best) > max(1, best * FINE)}
    return np.asarray(fits[best].predict_proba(Z))


def _fitted(Z: Floats2d, shape: Shape, number: int) -> "GaussianMixture":
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        # Without convergence the BIC still compares numbers; a given number is used as it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(
            number,
            covariance_type=shape.covariance,
            reg_covar=shape.reg_covar,
            random_state=shape.seed,
        ).fit(Z)
