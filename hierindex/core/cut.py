"""Cuts of a tree: rows that stand for all of it, none an ancestor of another."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arrays import Floats1d, Ints1d
from hierindex.errors import InputError

Mask = NDArray[np.bool_]

SHARPNESS = 0.25  # from 0.5 on, fewer topics are told for a question about all of a meeting


class Forest:
    """Rows with their parents.

    Parameters
    ----------
    parent : (n,) int
        Row of each row's parent, -1 for a root.
    level : (n,) int
        0 for text; a parent's level is above those of its children.

    Raises
    ------
    InputError
        If a parent is not a row of a higher level.
    """

    def __init__(self, parent: Ints1d, level: Ints1d) -> None:
        n = len(parent)
        child = np.flatnonzero(parent != -1)
        if len(level) != n or not ((parent >= -1) & (parent < n)).all():
            raise InputError(f"Each of {len(level)} rows needs a parent from -1 to {n - 1}.")
        if (level[parent[child]] <= level[child]).any():
            raise InputError("A parent must be of a higher level than its children.")
        self.parent = parent
        self.level: Ints1d = np.asarray(level, dtype=np.int64)
        child = child[np.argsort(level[child], kind="stable")]
        self.is_text: Mask = self.level == 0
        """(n,) whether a row is text, which all other rows summarise."""
        self._by_parent = np.argsort(parent, kind="stable")
        self._children = np.split(child, np.flatnonzero(np.diff(level[child])) + 1)

    def summed(self, x: Floats1d | Mask) -> Floats1d:
        """Return the sum of x over each row and the rows under it, (n,) float64."""
        total = np.array(x, dtype=np.float64)
        for child in self._children:
            np.add.at(total, self.parent[child], total[child])
        return total

    def children(self, row: int) -> Ints1d:
        """Return the rows under a row, or the roots if it is -1, ascending."""
        order = self._by_parent
        at, to = np.searchsorted(self.parent, [row, row + 1], sorter=order)
        return order[at:to]

    def highest(self, marked: Mask) -> Ints1d:
        """Return the highest marked row above each row or at it, -1 if there is none; (n,)."""
        found = np.where(marked, np.arange(len(marked)), -1)
        for child, parent in self.down():
            found[child] = np.where(found[parent] == -1, found[child], found[parent])
        return found

    def down(self) -> Iterator[tuple[Ints1d, Ints1d]]:
        """Yield the rows of each level that have a parent, and their parents, from the top."""
        for child in reversed(self._children):
            yield child, self.parent[child]


def shares(forest: Forest, n_tokens: Ints1d, cosine: Floats1d | None = None) -> Floats1d:
    """Return each row's share of all text, by tokens.

    Parameters
    ----------
    forest : Forest
        At least one row of text. The other rows summarise the text below them.
    n_tokens : (n,) int
        At least 1.
    cosine : (n,) floats, optional
        Similarities to a question. Text then counts for more the more similar it is: by
        exp(z / 4), z the similarity in standard deviations from the mean.

    Returns
    -------
    (n,) float64
        0 for a summary without text below it.
    """
    is_text = forest.is_text
    mass = np.where(is_text, n_tokens, 0).astype(np.float64)
    if cosine is not None:
        like = np.where(is_text, cosine - cosine[is_text].mean(), 0.0)
        mass = mass * np.exp(SHARPNESS * like / max(float(cosine[is_text].std()), 1e-12))
    return np.asarray(
        np.minimum(forest.summed(mass) / mass.sum(), 1.0)
    )  # rounded up, it may be more


def select_cut(forest: Forest, share: Floats1d, may: Mask, first: Mask, most: int) -> Ints1d:
    """Select about as many rows as wanted that together stand for all text.

    From the roots down, the row with the largest share is replaced by its children, as long as
    there are not too many.

    Parameters
    ----------
    forest : Forest
    share : (n,) floats
        Rows of share 0 are not selected.
    may : (n,) bool
        Which rows may be selected. A row is replaced if all its children may be.
    first : (n,) bool
        Which rows are replaced before others, whatever their shares.
    most : int
        Maximum number of rows. If more have no common ancestor that may be selected, those of
        the largest shares are.

    Returns
    -------
    (n_selected,) int64
        Ascending row indices.

    Examples
    --------
    >>> forest = Forest(np.array([3, 3, 4, 4, -1]), np.array([0, 0, 0, 1, 2]))
    >>> every = np.ones(5, dtype=bool)
    >>> select_cut(forest, np.array([0.4, 0.4, 0.2, 0.8, 1.0]), every, ~every, 2).tolist()
    [2, 3]
    """
    highest = np.setdiff1d(forest.highest(may & (share > 0)), [-1])
    if len(highest) > most:
        return np.sort(highest[np.argsort(-share[highest], kind="stable")[:most]])
    queue = [(not first[row], -share[row], row) for row in highest.tolist()]
    kept = list[int]()
    heapify(queue)
    while queue:
        *_, row = heappop(queue)
        under = [i for i in forest.children(row).tolist() if share[i] > 0]
        if not under or not may[under].all() or len(queue) + len(kept) + len(under) > most:
            kept.append(row)
            continue
        for i in under:
            heappush(queue, (not first[i], -share[i], i))
    return np.sort(np.array(kept, dtype=np.int64))
