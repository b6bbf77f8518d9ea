"""Bootstrap intervals of means over questions, which are resampled by group."""

from collections.abc import Hashable, Sequence

import numpy as np

from hierindex.core.membership import Floats1d

N_RESAMPLES = 2_000


def interval(values: Floats1d, groups: Sequence[Hashable]) -> tuple[float, float]:
    """Return the ends of the 95% interval of a mean, by percentiles of 2,000 resamples.

    Groups, such as documents, are drawn with replacement, each with all its values, because
    questions about one document are not independent. Davison and Hinkley, Bootstrap Methods and
    their Application (1997), section 3.8.

    >>> interval(np.array([0.5, 0.5, 0.5]), "aab")
    (0.5, 0.5)
    """
    _, number = np.unique(np.array(list(groups)), return_inverse=True)
    total, n = np.bincount(number, values), np.bincount(number)
    drawn = np.random.default_rng(0).integers(len(n), size=(N_RESAMPLES, len(n)))
    means = total[drawn].sum(axis=1) / n[drawn].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
