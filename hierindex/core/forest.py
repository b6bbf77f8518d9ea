"""A tree as arrays: cuts that cover all of its text, and its rows in reading order."""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arguments import Floats1d, Ints1d

Mask = NDArray[np.bool_]
Name = Callable[[int], str | int]

SHARPNESS = 0.25  # from 0.5 on, fewer topics are told for a question about all of a meeting


class Forest:
    """The parent and the level of each row of one or several trees.

    Parameters
    ----------
    parent : (n,) int
        Row of each row's parent, -1 for a root.
    level : (n,) int
        0 for text; a parent's level is above the levels of its children.
    """

    def __init__(self, parent: Ints1d, level: Ints1d) -> None:
        child = np.flatnonzero(parent != -1)
        self.parent = parent
        self.level: Ints1d = np.asarray(level, dtype=np.int64)
        child = child[np.argsort(level[child], kind="stable")]
        self.is_text: Mask = self.level == 0
        """(n,) whether a row is text; all other rows are summaries."""
        self._by_parent = np.argsort(parent, kind="stable")
        self._children = np.split(child, np.flatnonzero(np.diff(level[child])) + 1)

    def summed(self, x: Floats1d | Mask) -> Floats1d:
        """Return the sum of x over each row and its descendants, (n,) float64."""
        total = np.array(x, dtype=np.float64)
        for child in self._children:
            np.add.at(total, self.parent[child], total[child])
        return total

    def children(self, row: int) -> Ints1d:
        """Return the children of a row, or the roots if it is -1, ascending."""
        order = self._by_parent
        at, to = np.searchsorted(self.parent, [row, row + 1], sorter=order)
        return order[at:to]

    def highest(self, marked: Mask) -> Ints1d:
        """Return each row's highest marked ancestor, the row itself included, or -1; (n,)."""
        found = np.where(marked, np.arange(len(marked)), -1)
        for child, parent in self.down():
            found[child] = np.where(found[parent] == -1, found[child], found[parent])
        return found

    def down(self) -> Iterator[tuple[Ints1d, Ints1d]]:
        """Yield the rows of each level that have a parent, and their parents, from the top down."""
        for child in reversed(self._children):
            yield child, self.parent[child]


def shares(forest: Forest, n_tokens: Ints1d, cosine: Floats1d | None = None) -> Floats1d:
    """Return the share of all tokens that lies under each row.

    Parameters
    ----------
    forest : Forest
        At least one row of text. The other rows summarise the text below them.
    n_tokens : (n,) int
        At least 1.
    cosine : (n,) floats, optional
        Similarities to a question. Text then has a weight of exp(z / 4), with z the similarity in
        standard deviations from the mean.

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
    share = forest.summed(mass) / mass.sum()
    return np.asarray(share.clip(max=1.0))  # rounding may exceed it


def select_cut(
    forest: Forest, share: Floats1d, may: Mask, first: Mask, most: int, name: Name = int
) -> Ints1d:
    """Select about `most` rows that together cover all text.

    Starts at the roots. The row with the largest share is replaced by its children until that would
    give too many rows.

    Parameters
    ----------
    forest : Forest
    share : (n,) floats
        Rows of share 0 are not selected.
    may : (n,) bool
        Which rows may be selected. A row is replaced only if all its children may be selected.
    first : (n,) bool
        Which rows are replaced before others, whatever their shares.
    most : int
        Maximum number of rows. If more rows have no common ancestor that may be selected, only
        those with the largest shares are selected.

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
    highest = np.flatnonzero(forest.highest(may & (share > 0)) == np.arange(len(share)))
    queue = [(not first[row], -share[row], name(row), row) for row in highest.tolist()]
    if len(queue) > most:
        largest = sorted(queue, key=itemgetter(1, 2))[:most]
        return np.array(sorted((row for *_, row in largest), key=name), dtype=np.int64)
    kept = list[int]()
    heapify(queue)
    while queue:
        *_, row = heappop(queue)
        under = [i for i in forest.children(row).tolist() if share[i] > 0]
        if not under or not may[under].all() or len(queue) + len(kept) + len(under) > most:
            kept.append(row)
            continue
        for i in under:
            heappush(queue, (not first[i], -share[i], name(i), i))
    return np.array(sorted(kept, key=name), dtype=np.int64)


class Icicle:
    """The layout of an icicle plot: the rows of a forest in preorder, each with an interval.

    A position is a row's index in preorder; its descendants follow directly. All attributes are
    (n,) int64, by position.

    Parameters
    ----------
    forest : Forest
    place : (n,) int
        Sort key for the rows of one parent, and for the roots; equal keys keep the order of the
        rows.

    Attributes
    ----------
    row
        The row at a position.
    parent
        Position of the parent, -1 for a root.
    n_children
    end
        Position after its last descendant.
    x0, x1
        Start and end of the row's interval, counted in rows of text. It is empty if neither the row
        nor a descendant is text.
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
        self.position: Ints1d = position
        """(n,) int64 position of each row."""
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

    def part(self, of: int | None) -> slice:
        """Return the positions of a row and its descendants, or of all rows."""
        return slice(0, len(self.row)) if of is None else slice(of, int(self.end[of]))

    def children(self, of: int | None) -> Ints1d:
        """Return the positions of a row's children, or of the roots, in reading order."""
        part = self.part(of)
        own = self.parent[part] == (-1 if of is None else of)
        return np.asarray(part.start + np.flatnonzero(own))

    def path(self, of: int) -> list[int]:
        """Return the positions of a row's ancestors, from the root down."""
        path = list[int]()
        while (of := int(self.parent[of])) >= 0:
            path.append(of)
        return path[::-1]


def _before(x: Ints1d, siblings: Ints1d, parent: Ints1d) -> Ints1d:
    """Return the sum of x over the earlier siblings of each row."""
    ordered = x[siblings]
    sums = np.cumsum(ordered) - ordered
    first = np.flatnonzero(np.diff(parent[siblings], prepend=-2))
    before = np.empty_like(sums)
    before[siblings] = sums - np.repeat(sums[first], np.diff(first, append=len(x)))
    return before
