"""Icicles: forests laid out in reading order, each row above the rows under it."""

import numpy as np

from hierindex.core.arrays import Ints1d
from hierindex.core.cut import Forest


class Icicle:
    """The rows of a forest in preorder, each over an interval of the text.

    A position is a row's place in preorder: the rows under it follow it. All attributes are (n,)
    int64, by position.

    Parameters
    ----------
    forest : Forest
    place : (n,) int
        Orders the rows of one parent, and the roots; equal ones are in the order of the rows.

    Attributes
    ----------
    row
        The row at a position.
    parent
        Position of the parent, -1 for a root.
    n_children
    end
        Position after the last row under it.
    x0, x1
        The interval of its text, counted in rows of text; empty if there is none under it.
    depth
        Number of rows above it.
    level
    """

    def __init__(self, forest: Forest, place: Ints1d) -> None:
        n = len(place)
        size = forest.summed(np.ones(n)).astype(np.int64)
        text = forest.summed(forest.is_text).astype(np.int64)
        siblings = np.lexsort((place, forest.parent))  # by parent, then by place
        position = _before(size, siblings, forest.parent)
        start = _before(text, siblings, forest.parent)
        depth = np.zeros(n, dtype=np.int64)
        for child, parent in forest.down():
            position[child] += position[parent] + 1
            start[child] += start[parent]
            depth[child] = depth[parent] + 1
        self._position: Ints1d = position
        row = np.argsort(position)
        self.row: Ints1d = row
        above = forest.parent[row]
        self.parent: Ints1d = np.where(above < 0, -1, position[above])
        self.n_children: Ints1d = np.bincount(self.parent[self.parent >= 0], minlength=n)
        self.end: Ints1d = np.arange(n) + size[row]
        self.x0: Ints1d = start[row]
        self.x1: Ints1d = self.x0 + text[row]
        self.depth: Ints1d = depth[row]
        self.level: Ints1d = forest.level[row]
        broadest = np.lexsort((self.depth, self.x0 - self.x1))
        self._broadest = broadest[(self.x0 < self.x1)[broadest]]

    def position(self, row: int) -> int:
        """Return the position of a row."""
        return int(self._position[row])

    def part(self, of: int | None) -> slice:
        """Return the positions of a row and the rows under it, or of all rows."""
        return slice(0, len(self.row)) if of is None else slice(of, int(self.end[of]))

    def span(self, of: int | None) -> tuple[int, int]:
        """Return the interval of a row's text, or of all text."""
        if of is None:
            return 0, int(self.x1.max(initial=0))
        return int(self.x0[of]), int(self.x1[of])

    def children(self, of: int | None) -> Ints1d:
        """Return the positions of a row's children, or of the roots, in reading order."""
        part = self.part(of)
        own = self.parent[part] == (-1 if of is None else of)
        return np.asarray(part.start + np.flatnonzero(own))

    def path(self, of: int) -> list[int]:
        """Return the positions from the root down to a row's parent."""
        path = list[int]()
        while (of := int(self.parent[of])) >= 0:
            path.append(of)
        return path[::-1]

    def neighbours(self, of: int) -> tuple[int | None, int | None]:
        """Return the positions of the nearest rows of the same level before and after a row."""
        before = np.flatnonzero(self.level[:of] == self.level[of])[-1:]
        after = of + 1 + np.flatnonzero(self.level[of + 1 :] == self.level[of])[:1]
        first, second = (next(iter(found.tolist()), None) for found in (before, after))
        return first, second

    def cells(self, of: int | None, start: float, end: float, n: int) -> Ints1d:
        """Return the positions of the n rows that are over the most text, the broadest first.

        Parameters
        ----------
        of : int, optional
            Position of a row: only it and the rows under it are returned.
        start, end : float
            Only rows that are over some of the text between these places are returned.
        n : int

        Returns
        -------
        (n_cells,) int64
            A row comes after all rows above it. One without text under it is left out.
        """
        part, cells = self.part(of), self._broadest
        inside = (cells >= part.start) & (cells < part.stop)
        seen = inside & (self.x0[cells] < end) & (self.x1[cells] > start)
        return np.asarray(cells[seen][:n])


def _before(x: Ints1d, siblings: Ints1d, parent: Ints1d) -> Ints1d:
    """Return the sum of x over the earlier siblings of each row."""
    ordered = x[siblings]
    sums = np.cumsum(ordered) - ordered
    first = np.flatnonzero(np.diff(parent[siblings], prepend=-2))
    before = np.empty_like(sums)
    before[siblings] = sums - np.repeat(sums[first], np.diff(first, append=len(x)))
    return before
