"""Trees: memberships grown level by level, the groupers that make them, and their revision.

In a revision of an earlier tree, rows stay in their groups, and new rows join groups of similar
rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.arguments import Floats2d, Ints1d
from hierindex.core.bounds import Caps, bounded
from hierindex.core.membership import (
    Membership,
    Rows,
    from_groups,
    groups_of,
    one_hot,
    weighted_groups,
)
from hierindex.core.mixture import DEFAULT, MAX_POOL, Mixture, mixture, partition
from hierindex.core.segments import Rule, document_starts, segment

# Chosen by tests/benchmarks/drift.py.
NEIGHBOURS = 10  # rows that decide where a new row belongs
SHARPNESS = 4  # power of a neighbour's similarity; higher powers favour the nearest
BLOCK = 256  # new rows that are compared with all others at once
CROWDED = 2  # a group of more than so many times the caps is clustered anew, others are halved

Grouper = Callable[[Rows], Membership | None]
"""Groups a level's rows; returns None when it is done."""


EmbedGroups = Callable[[Rows, Membership], Rows]
"""Makes the rows of the next level, in column order: a summary and its embedding, or a centroid."""


Tree = tuple[Membership, ...]
"""Memberships of each level's rows in the next level's: `tree[l]` is (n_l, n_{l+1}).

A group of one row makes no new node: the row itself passes up. An exception is a first layer by
document, which gives every document a node.
"""


def grow_tree(
    leaves: Rows,
    groupers: Sequence[Grouper],
    embed_groups: EmbedGroups,
    *,
    max_levels: int | None = None,
) -> Tree:
    """Apply each grouper repeatedly until it is done, then the next one.

    Parameters
    ----------
    leaves : Rows
    groupers : sequence of Grouper
        A grouper is done if it returns None or as many groups as rows. The latter is allowed on
        the leaves, for one summary per short document, and for a part of a level.
    embed_groups : EmbedGroups
        Returns the rows of the groups. If the rows are part of a level (`Rows.is_part`), it may add
        others.
    max_levels : int, optional
        Levels above the leaves; unlimited by default.

    Examples
    --------
    >>> pairs = lambda rows: one_hot(np.arange(len(rows)) // 2)
    >>> rows = lambda n: Rows(np.ones((n, 1)), np.ones(n, int), np.zeros(n, int))
    >>> tree = grow_tree(rows(4), [pairs], lambda _, M: rows(M.shape[1]))
    >>> [layer.shape for layer in tree]
    [(4, 2), (2, 1)]
    """
    rows, layers = leaves, list[Membership]()
    for grouper in groupers:
        while len(rows) > 0 and (max_levels is None or len(layers) < max_levels):
            M = grouper(rows)
            if M is None or (M.shape[1] >= len(rows) and layers and not rows.is_part):
                break
            rows = embed_groups(rows, M)
            layers.append(M)
    return tuple(layers)


@dataclass(frozen=True)
class BySegment:
    """Groups consecutive rows of a document, level by level, until each document is one row.

    Rows stay with their section where the rule and the caps allow it.
    """

    rule: Rule
    caps: Caps

    def __call__(self, rows: Rows) -> Membership | None:
        """Return segments within the caps, or None if no segment has two rows."""
        M = segment(rows, rule=self.rule, caps=self.caps)
        M = bounded(M, rows, self.caps, in_order=True)
        return M if M.shape[1] < len(rows) else None


@dataclass(frozen=True)
class ByMixture:
    """Groups similar rows, of the whole level or of each document, until one row is left.

    More than `max_pool` rows are first partitioned into pools of similar rows.
    """

    seed: int
    caps: Caps
    model: Mixture = DEFAULT
    per_document: bool = False
    max_pool: int = MAX_POOL

    def __call__(self, rows: Rows) -> Membership | None:
        """Return clusters within the caps, or None if no cluster has two rows."""
        parts = [np.arange(len(rows))]
        if self.per_document:
            parts = np.split(parts[0], document_starts(rows.document)[1:])
        pools = [part[pool] for part in parts for pool in self.pools(rows.X[part])]
        M = self.of_pools(rows, pools)
        if M is None and len(pools) > 1 and not self.per_document:
            # Single rows of two pools may still share a group.
            M = bounded(one_hot(np.arange(len(rows))), rows, self.caps)
        return M if M is not None and M.shape[1] < len(rows) else None

    def pools(self, X: Floats2d) -> list[Ints1d]:
        """Return the row indices of each pool; pools are clustered separately."""
        if len(X) <= self.max_pool:
            return [np.arange(len(X))]
        return groups_of(one_hot(partition(X, max_rows=self.max_pool, seed=self.seed)))

    def of_pools(self, rows: Rows, pools: Sequence[Ints1d]) -> Membership | None:
        """Return the clusters of each pool, or None if no cluster has two rows."""
        clusters = (
            (pool[group], weight)
            for pool in pools
            for group, weight in weighted_groups(self._clusters(rows[pool]))
        )
        M = from_groups(clusters, len(rows))
        return M if M.shape[1] < len(rows) else None

    def _clusters(self, rows: Rows) -> Membership:
        if self.caps.hold(int(rows.n_tokens.sum()), len(rows)):
            return one_hot(np.zeros(len(rows), dtype=np.int64))
        return bounded(mixture(rows.X, model=self.model, seed=self.seed), rows, self.caps)


def by_document(rows: Rows) -> Membership | None:
    """Group all leaves of each document, whatever their number and headings; None above the leaves.

    A `Grouper`.
    """
    return one_hot(rows.document) if rows.level == 0 else None


@dataclass(frozen=True)
class Revised:
    """A grouper that keeps earlier groups and regroups only what must change.

    Groups that exceed the caps are split, and a row that is left alone joins the nearest group. All
    other groups stay as they are. `grouper` groups a level that has no earlier groups.

    Parameters
    ----------
    grouper : ByMixture
    """

    grouper: ByMixture

    def __call__(self, rows: Rows) -> Membership | None:
        """Return groups within the caps, or None if no group has two rows.

        If the rows are only a part of a level, a row that joins no group gets one of its own.
        """
        caps = self.grouper.caps
        may_be_one = not rows.is_part and caps.hold(int(rows.n_tokens.sum()), len(rows))
        if rows.before is None or may_be_one:
            return self.grouper(rows)
        alone = np.flatnonzero(np.diff(rows.before.indptr) == 0)  # each becomes a group of one
        singles = [(row, np.ones(1)) for row in alone[:, None]]
        before = from_groups([*weighted_groups(rows.before), *singles], len(rows))
        parts = (
            (group[part], weight[part] * share)
            for group, weight in weighted_groups(before)
            for part, share in weighted_groups(self._parts(rows[group]))
        )
        M = bounded(from_groups(parts, len(rows)), rows, caps)
        return M if rows.is_part or M.shape[1] < len(rows) else None

    def _parts(self, rows: Rows) -> Membership:
        """Cluster an earlier group if it is crowded; otherwise keep it."""
        caps = self.grouper.caps
        load = len(rows) / caps.max_children, rows.n_tokens.sum() / caps.max_tokens
        M = self.grouper(rows) if max(load) > CROWDED else None
        return one_hot(np.zeros(len(rows), dtype=np.int64)) if M is None else M


def joined(new: Floats2d, grouped: Floats2d, M: csr_array) -> Ints1d:
    """Assign each new row to the group that most of its nearest grouped rows are in, (n_new,) int.

    Parameters
    ----------
    new : (n_new, n_dims) unit vectors
    grouped : (n_grouped, n_dims) unit vectors
        At least one.
    M : (n_grouped, n_groups) csr_array

    Examples
    --------
    >>> M = csr_array([[1.0, 0.0], [0.0, 1.0]])
    >>> joined(np.array([[0.6, 0.8]]), np.eye(2), M).tolist()
    [1]
    """
    groups, number = [np.zeros(0, dtype=np.int64)], min(NEIGHBOURS, len(grouped))
    for first in range(0, len(new), BLOCK):
        similarity = new[first : first + BLOCK] @ grouped.T
        nearest = np.argsort(-similarity, axis=1, kind="stable")[:, :number]
        votes = np.maximum(np.take_along_axis(similarity, nearest, axis=1), 0.0) ** SHARPNESS
        row = np.repeat(np.arange(len(similarity)), number)
        V = csr_array((votes.ravel(), (row, nearest.ravel())), shape=similarity.shape)
        groups.append((V @ M).toarray().argmax(axis=1))
    return np.concatenate(groups)


def continued(M: Membership, before: csr_array) -> Ints1d:
    """Return the earlier group that each group continues, or -1, (n_groups,) int.

    A group continues the earlier group of most of its rows. Each earlier group is continued once.

    Parameters
    ----------
    M : (n_rows, n_groups) csr_array
    before : (n_rows, n_earlier) csr_array
        See `Rows`.

    Examples
    --------
    >>> before = csr_array([[1.0], [1.0], [1.0], [0.0]])
    >>> continued(one_hot(np.array([0, 1, 1, 2])), before).tolist()
    [-1, 0, -1]
    """
    shared = (M.T @ before).tocoo()
    strongest = np.lexsort((shared.row, -shared.data))
    group, node = shared.row[strongest], shared.col[strongest]
    wins = np.sort(np.unique(node, return_index=True)[1])  # each earlier group's strongest
    first = wins[np.unique(group[wins], return_index=True)[1]]
    result = np.full(M.shape[1], -1)
    result[group[first]] = node[first]
    return result
