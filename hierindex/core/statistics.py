"""What a tree looks like: sizes, fan-out, overlap, and how well its groups hold together."""

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
from hierindex.core.tree import Tree

SAMPLE = 5_000  # rows that a silhouette is the mean of
BLOCK = 256  # of them, whose distances to all centroids are held at once


@dataclass(frozen=True)
class LevelStatistics:
    """A level of a tree, and how its nodes group those of the level below.

    The last four are None for the leaves.
    """

    level: int
    nodes: int
    tokens: int
    fan_out: float | None
    """Mean number of children, of the nodes that have two or more."""
    overlap: float | None
    """Mean number of parents of a node below."""
    cohesion: float | None
    """Mean cosine similarity of nodes below to their groups' centroids."""
    silhouette: float | None
    """Mean simplified silhouette, in [-1, 1]; None also where there is one group."""


def level_statistics(tree: Tree, levels: Sequence[Rows]) -> list[LevelStatistics]:
    """Statistics of each level, from the leaves up; `levels` are the rows sent to `grow_tree`."""
    groupings = [(None,) * 4] + [
        _grouping(M, rows.X) for M, rows in zip(tree.layers, levels, strict=False)
    ]
    return [
        LevelStatistics(level, len(rows), int(rows.n_tokens.sum()), *grouping)
        for level, (rows, grouping) in enumerate(zip(levels, groupings, strict=True))
    ]


def _grouping(M: Membership, X: Floats2d) -> tuple[float | None, ...]:
    """Fan-out, overlap, cohesion, silhouette."""
    n_children = np.bincount(M.indices, minlength=M.shape[1])
    families = n_children[n_children > 1]
    return (
        float(families.mean()) if len(families) else None,
        M.nnz / M.shape[0],
        mean_cohesion(M, X),
        silhouette(M, X),
    )


def silhouette(M: Membership, X: Floats2d, *, seed: int = 0) -> float | None:
    """Mean simplified silhouette of rows in the groups of their largest weight.

    (b - a) / max(a, b) of each row, with a its cosine distance to its own group's centroid
    and b that to the nearest other one; 0 for a row that is alone.

    Parameters
    ----------
    M : (n_rows, n_groups) csr_array
    X : (n_rows, n_dims) unit vectors
    seed : int
        Of the sample of 5,000 rows, where there are more.

    Returns
    -------
    float or None
        In [-1, 1]; None where there is one group.

    Notes
    -----
    O(min(n_rows, 5,000) * n_groups * n_dims), in blocks of 256 rows. E. Hruschka et al.,
    Evolutionary Algorithms for Clustering Gene-Expression Data (ICDM 2004).
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
