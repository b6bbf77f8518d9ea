"""Icicles: forests laid out in reading order, each row above the rows under it."""

import numpy as np

from hierindex.core.cut import Forest
from hierindex.core.membership import Ints1d


class Icicle:
    """The rows of a forest in preorder, each over an interval of the text.

    All arrays are (n,) int64, by position in preorder.

    Parameters
    ----------
    forest : Forest
    place : (n,) int
        Orders the rows of one parent, and the roots; equal ones are in the order of the rows.
    """

    def __init__(self, forest: Forest, place: Ints1d) -> None:
        size = forest.summed(np.ones(len(place))).astype(np.int64)
        text = forest.summed(forest.is_text).astype(np.int64)
        siblings = np.lexsort((place, forest.parent))  # by parent, then by place
        position = _before(size, siblings, forest.parent)
        start = _before(text, siblings, forest.parent)
        depth = np.zeros(len(place), dtype=np.int64)
        for child, parent in forest.down():
            position[child] += position[parent] + 1
            start[child] += start[parent]
            depth[child] = depth[parent] + 1
        self.position: Ints1d = position
        """By row."""
        self.row: Ints1d = np.argsort(position)
        """The row at each position."""
        above = forest.parent[self.row]
        self.level: Ints1d = forest.level[self.row]
        self.parent: Ints1d = np.where(above < 0, -1, position[above])
        """Position of the parent, -1 for a root."""
        self.end: Ints1d = np.arange(len(place)) + size[self.row]
        """Position after the last row under it."""
        self.x0: Ints1d = start[self.row]
        """Rows of text before it."""
        self.x1: Ints1d = self.x0 + text[self.row]
        """The same with those under it."""
        self.depth: Ints1d = depth[self.row]
        """Number of rows above it."""
        order = np.lexsort((self.depth, self.x0 - self.x1))
        self._broadest = order[(self.x0 < self.x1)[order]]

    def children(self, of: int | None) -> Ints1d:
        """Return the positions of a row's children, or of the roots, in reading order."""
        first, end = self._part(of)
        if of is None:
            return np.flatnonzero(self.parent == -1)
        return first + 1 + np.flatnonzero(self.parent[first + 1 : end] == of)

    def path(self, of: int) -> list[int]:
        """Return the positions from the root down to a row's parent."""
        path = list[int]()
        while (of := int(self.parent[of])) >= 0:
            path.append(of)
        return path[::-1]

    def neighbours(self, of: int) -> tuple[int | None, int | None]:
        """Return the positions of the rows before and after one that are of the same level."""
        same = np.flatnonzero(self.level == self.level[of])
        i = int(np.searchsorted(same, of))
        before = int(same[i - 1]) if i else None
        return before, int(same[i + 1]) if i + 1 < len(same) else None

    def span(self, of: int | None) -> tuple[int, int]:
        """Return the interval of text under a row, or of all."""
        if of is None:
            return 0, int(self.x1.max(initial=0))
        return int(self.x0[of]), int(self.x1[of])

    def cells(self, of: int | None, start: float, end: float, n: int) -> Ints1d:
        """Return the positions of the n rows that are over the most text, the broadest first.

        Parameters
        ----------
        of : int, optional
            Position of a row; only it and the rows under it are returned.
        start, end : float
            Only rows that are over text between these places of `span` are returned.
        n : int

        Returns
        -------
        (n_cells,) int64
            A row comes after all rows above it. One without text under it is left out.
        """
        first, after = self._part(of)
        cells = self._broadest
        inside = (cells >= first) & (cells < after)
        cells = cells[inside & (self.x0[cells] < end) & (self.x1[cells] > start)]
        return cells[:n]

    def generations(self, of: int | None) -> int:
        """Return the number of generations below a row, or below the roots."""
        first, end = self._part(of)
        depth = self.depth[first:end]
        return int(depth.max(initial=0) - depth[:1].sum())

    def _part(self, of: int | None) -> tuple[int, int]:
        return (0, len(self.row)) if of is None else (of, int(self.end[of]))


def _before(x: Ints1d, siblings: Ints1d, parent: Ints1d) -> Ints1d:
    """Return the sum of x over the earlier siblings of each row."""
    ordered = x[siblings]
    sums = np.cumsum(ordered) - ordered
    first = np.flatnonzero(np.diff(parent[siblings], prepend=-2))
    of_group = np.repeat(sums[first], np.diff(first, append=len(x)))
    before = np.empty_like(sums)
    before[siblings] = sums - of_group
    return before
