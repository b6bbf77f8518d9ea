"""Costs of groups that cross headings."""

import numpy as np

from hierindex.core.membership import Floats1d, Ints1d


def crossing_costs(heading: Ints1d) -> Floats1d:
    """Return what a group loses by crossing the heading before each row of a document.

    A heading that divides sections of n and m rows costs 2 * sqrt(n * m / (n + m)), halved for each
    level below the highest that divides the document. That is the statistic of a change in mean
    (Sen and Srivastava 1975), by 2, as far as unit vectors can be apart. So it is cheap to
    join a short section to another, and expensive to join two long ones.

    Parameters
    ----------
    heading : (n_rows,) int
        Level of the highest heading between a row and the one before it, 0 for none. That of the
        first row, such as the title, divides nothing.

    Returns
    -------
    (n_rows,) float64
        0 without a heading; their sum is below 2 * n_rows.

    Examples
    --------
    >>> crossing_costs(np.array([1, 0, 2, 0, 0, 3, 3, 0])).round(2).tolist()
    [0.0, 0.0, 2.45, 0.0, 0.0, 0.87, 0.82, 0.0]
    """
    costs = np.zeros(len(heading))
    levels = np.unique(heading[1:][heading[1:] > 0])
    for level in levels.tolist():
        starts = 1 + np.flatnonzero((heading[1:] > 0) & (heading[1:] <= level))
        rows = np.diff(starts, prepend=0, append=len(heading))  # of the sections of this level
        before, after = rows[:-1], rows[1:]
        cost = 2 * np.sqrt(before * after / (before + after)) / 2.0 ** (level - levels[0])
        costs[starts] = np.where(heading[starts] == level, cost, costs[starts])
    return costs
