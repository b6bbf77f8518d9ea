"""Gaussian mixtures of a number of components that is given, or chosen by a criterion."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hierindex.core.membership import Floats2d

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

Covariance = Literal["diag", "full", "tied", "spherical"]
Criterion = Literal["bic", "aic"]

# Numbers of components tried before those between them; RAPTOR tries each from 1 to 49.
COARSE = (1, 2, 4, 8, 16, 32, 50)
FINE = 1 / 8  # of the best number: no other is sought nearer to it


@dataclass(frozen=True)
class Shape:
    """What a mixture's components may be: `reg_covar` is added to their variances."""

    covariance: Covariance
    reg_covar: float
    seed: int


def posteriors(Z: Floats2d, shape: Shape, number: int) -> Floats2d:
    """Responsibilities of the components of a mixture.

    Parameters
    ----------
    Z : (n_rows, n_dims) float64
    shape : Shape
    number : int
        Of components, at most n_rows.

    Returns
    -------
    (n_rows, number) float64
        Rows sum to 1. O(n_rows * number * n_dims) a step; n_dims^2 where covariances are full.
    """
    return np.asarray(_fitted(Z, shape, number).predict_proba(Z))


def best_posteriors(Z: Floats2d, shape: Shape, criterion: Criterion, *, most: int) -> Floats2d:
    """Responsibilities of the mixture that the criterion likes best, of those that are tried.

    First a few numbers of components far apart, then those half-way to the best one's
    neighbours, until these are near. Each number is fitted once.

    Parameters
    ----------
    Z : (n_rows, n_dims) float64
    shape : Shape
    criterion : {"bic", "aic"}
        The lowest wins.
    most : int
        Components at most, n_rows or fewer; 50 are the limit.

    Returns
    -------
    (n_rows, n_components) float64
        Rows sum to 1.
    """
    fits: dict[int, GaussianMixture] = {}
    value: dict[int, float] = {}
    untried = {min(number, most) for number in COARSE}
    while untried:
        for number in sorted(untried):
            fits[number] = fit = _fitted(Z, shape, number)
            value[number] = float(fit.bic(Z) if criterion == "bic" else fit.aic(Z))
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
        # What has not converged is compared by the criterion as it is; where the number is given,
        # there is nothing to compare, and it is used.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(
            number,
            covariance_type=shape.covariance,
            reg_covar=shape.reg_covar,
            random_state=shape.seed,
        ).fit(Z)
