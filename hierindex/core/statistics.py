"""Statistics of the levels of a tree: sizes, fan-out, overlap, cohesion and silhouette."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d
from hierindex.core.membership import Membership, centroids, mean_cohesion, strongest_parent
from hierindex.core.rows import Rows

SAMPLE = 5_000  # rows
BLOCK = 256  # rows per block of distances


@dataclass(frozen=True)
class LevelStatistics:
    """Statistics of a level and of how it groups the level below.

    The last four are None for the leaves. Where documents or pools are grown separately,
    silhouettes compare a node only with groups that are grown together with it.
    """

    level: int
    nodes: int
    tokens: int
    fan_out: float | None
    """Mean number of children of nodes with two or more."""
    overlap: float | None
    """Mean number of parents per node below."""
    cohesion: float | None
    """Mean cosine similarity of nodes below to their centroids."""
    silhouette: float | None
    """Mean simplified silhouette in [-1, 1]; None if there is one group."""


@dataclass(frozen=True)
class Tally:
    """Sums over a level and the level below it; the tallies of parts of a level can be added.

    `families` counts the groups of two or more rows, and `children` their rows. `links` counts the
    memberships of the rows below. `similarity` is the sum of their cosines to their centroids.
    `silhouettes` is the sum of their silhouettes, None if there is one group.
    """

    level: int
    nodes: int
    tokens: int
    below: int = 0
    families: int = 0
    children: int = 0
    links: int = 0
    similarity: float = 0.0
    silhouettes: float | None = None

    @classmethod
    def of(cls, rows: Rows, below: Rows | None = None, M: Membership | None = None) -> Self:
        """Count the rows of a level, which are groups of the rows of the level below."""
        counted = rows.level, len(rows), int(rows.n_tokens.sum())
        if below is None or M is None:
            return cls(*counted)
        n_children = np.bincount(M.indices, minlength=M.shape[1])
        families = n_children[n_children > 1]
        mean = silhouette(M, below.X)
        return cls(
            *counted,
            below=len(below),
            families=len(families),
            children=int(families.sum()),
            links=M.nnz,
            similarity=mean_cohesion(M, below.X) * len(below),
            silhouettes=None if mean is None else mean * len(below),
        )

    def __add__(self, other: "Tally") -> "Tally":
        """Count the rows of two parts of a level."""
        known = [each for each in (self.silhouettes, other.silhouettes) if each is not None]
        sums = {
            name: value + getattr(other, name)
            for name, value in vars(self).items()
            if name not in ("level", "silhouettes")
        }
        return Tally(self.level, silhouettes=sum(known) if known else None, **sums)

    def passing(self, level: int) -> "Tally":
        """Return the tally of the same rows passed up to a higher level, each as a group of one."""
        silhouettes = 0.0 if self.nodes > 1 else None
        return Tally(
            level,
            self.nodes,
            self.tokens,
            below=self.nodes,
            links=self.nodes,
            similarity=float(self.nodes),
            silhouettes=silhouettes,
        )

    def statistics(self) -> LevelStatistics:
        """Return the statistics: means of the sums."""
        if not self.below:
            return LevelStatistics(self.level, self.nodes, self.tokens, None, None, None, None)
        return LevelStatistics(
            self.level,
            self.nodes,
            self.tokens,
            fan_out=self.children / self.families if self.families else None,
            overlap=self.links / self.below,
            cohesion=self.similarity / self.below,
            silhouette=None if self.silhouettes is None else self.silhouettes / self.below,
        )


def tallies(layers: Sequence[Membership], levels: Sequence[Rows]) -> list[Tally]:
    """Return the tallies of levels, the lowest first; `layers` group the rows of all but the last.

    The lowest level has none below.
    """
    above = zip(levels[1:], levels, layers, strict=False)
    return [*map(Tally.of, levels[:1]), *(Tally.of(*each) for each in above)]


def added(parts: Sequence[Sequence[Tally]]) -> list[Tally]:
    """Add up the tallies of separate trees.

    The rows of a tree's top level pass up to the highest level of all.
    """
    height = max(map(len, parts), default=0)
    even = [[*part, *map(part[-1].passing, range(len(part), height))] for part in parts]
    return [reduce(add, level) for level in zip(*even, strict=True)]


def silhouette(M: Membership, X: Floats2d, *, seed: int = 0) -> float | None:
    """Return the mean simplified silhouette, in [-1, 1], or None if there is one group.

    The silhouette of a row is (b - a) / max(a, b), with a the cosine distance to the centroid of
    its strongest group and b to the nearest other centroid; 0 for a group of one row. The mean is
    over a sample of at most 5,000 rows, which costs O(n_sampled * n_groups * n_dims). E. Hruschka
    et al., Evolutionary Algorithms for Clustering Gene-Expression Data (ICDM 2004).
    """
    if M.shape[1] < 2:
        return None
    rows = np.arange(len(X))
    if len(X) > SAMPLE:
        rows = np.random.default_rng(seed).choice(rows, size=SAMPLE, replace=False)
    own, C = strongest_parent(M), centroids(M, X)
    is_alone = np.bincount(own, minlength=M.shape[1])[own] == 1
    values = [
        _silhouettes(X[block], C, own[block], is_alone[block])
        for block in np.array_split(rows, -(-len(rows) // BLOCK))
    ]
    return float(np.concatenate(values).mean())


def _silhouettes(X: Floats2d, C: Floats2d, own: Ints1d, is_alone: NDArray[np.bool_]) -> Floats1d:
    distance = 1 - X @ C.T  # (n_rows, n_groups)
    at = (np.arange(len(X)), own)
    a = np.maximum(distance[at], 0)
    distance[at] = np.inf
    b = np.maximum(distance.min(axis=1), 0)
    longer = np.where(is_alone, 0, np.maximum(a, b))
    return np.asarray(np.divide(b - a, longer, out=np.zeros(len(X)), where=longer > 1e-9))
