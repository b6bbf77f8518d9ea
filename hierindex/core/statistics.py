"""Statistics of the levels of a tree: sizes, fan-out, overlap, cohesion and silhouette."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hierindex.core.membership import (
    Floats1d,
    Floats2d,
    Ints1d,
    Membership,
    centroids,
    mean_cohesion,
    strongest_parent,
)
from hierindex.core.rows import Rows

SAMPLE = 5_000  # rows
BLOCK = 256  # rows per block of distances


@dataclass(frozen=True)
class LevelStatistics:
    """Statistics of a level and of how it groups the level below.

    The last four are None for the leaves.
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


def level_statistics(layers: Sequence[Membership], levels: Sequence[Rows]) -> list[LevelStatistics]:
    """Return statistics per level, leaves first; `layers` group the rows of all but the last."""
    groupings = [(None,) * 4] + [
        _grouping(M, rows.X) for M, rows in zip(layers, levels, strict=False)
    ]
    return [
        LevelStatistics(rows.level, len(rows), int(rows.n_tokens.sum()), *grouping)
        for rows, grouping in zip(levels, groupings, strict=True)
    ]


def _grouping(M: Membership, X: Floats2d) -> tuple[float | None, ...]:
    """Return fan-out, overlap, cohesion and silhouette."""
    n_children = np.bincount(M.indices, minlength=M.shape[1])
    families = n_children[n_children > 1]
    return (
        float(families.mean()) if len(families) else None,
        M.nnz / M.shape[0],
        mean_cohesion(M, X),
        silhouette(M, X),
    )


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
