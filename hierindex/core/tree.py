"""Trees: a stack of memberships, grown level by level, and the groupers that make each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hierindex.core.arguments import Floats2d, Ints1d
from hierindex.core.bounds import Caps, bounded
from hierindex.core.membership import Membership, from_groups, groups_of, one_hot, weights_of
from hierindex.core.mixture import DEFAULT, MAX_POOL, Mixture, mixture, partition
from hierindex.core.rows import Rows
from hierindex.core.segments import Rule, document_starts, segment

Grouper = Callable[[Rows], Membership | None]
"""Groups a level's rows; returns None when it is done."""


EmbedGroups = Callable[[Rows, Membership], Rows]
"""Makes the rows of the next level, in column order: a summary and its embedding, or a centroid."""


@dataclass(frozen=True)
class Tree:
    """Memberships of each level's rows in the next level's: `layers[l]` is (n_l, n_{l+1}).

    A group of one row makes no new node: the row itself passes up. An exception is a first layer by
    document, which gives every document a node.
    """

    layers: tuple[Membership, ...]


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
    >>> import numpy as np
    >>> from hierindex.core.membership import one_hot
    >>> pairs = lambda rows: one_hot(np.arange(len(rows)) // 2)
    >>> rows = lambda n: Rows(np.ones((n, 1)), np.ones(n, int), np.zeros(n, int))
    >>> tree = grow_tree(rows(4), [pairs], lambda _, M: rows(M.shape[1]))
    >>> [layer.shape for layer in tree.layers]
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
    return Tree(tuple(layers))


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
        M = bounded(
            M, rows.X, rows.n_tokens, self.caps, document=rows.document, heading=rows.heading
        )
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
        if self.per_document:
            documents = np.split(np.arange(len(rows)), document_starts(rows.document)[1:])
            return self.of_pools(
                rows, [d[pool] for d in documents for pool in self.pools(rows.X[d])]
            )
        pools = self.pools(rows.X)
        M = self.of_pools(rows, pools)
        if M is None and len(pools) > 1:  # single rows of two pools may still share a group
            M = bounded(one_hot(np.arange(len(rows))), rows.X, rows.n_tokens, self.caps)
        return M if M is not None and M.shape[1] < len(rows) else None

    def pools(self, X: Floats2d) -> list[Ints1d]:
        """Return the row indices of each pool; pools are clustered separately."""
        if len(X) <= self.max_pool:
            return [np.arange(len(X))]
        return groups_of(one_hot(partition(X, max_rows=self.max_pool, seed=self.seed)))

    def of_pools(self, rows: Rows, pools: Sequence[Ints1d]) -> Membership | None:
        """Return the clusters of each pool, or None if no cluster has two rows."""
        groups, weights = [], []
        for pool in pools:
            M = self._clusters(rows[pool])
            groups += [pool[group] for group in groups_of(M)]
            weights += weights_of(M)
        M = from_groups(groups, weights, len(rows))
        return M if M.shape[1] < len(rows) else None

    def _clusters(self, rows: Rows) -> Membership:
        if self.caps.hold(int(rows.n_tokens.sum()), len(rows)):
            return one_hot(np.zeros(len(rows), dtype=np.int64))
        M = mixture(rows.X, model=self.model, seed=self.seed)
        return bounded(M, rows.X, rows.n_tokens, self.caps)


@dataclass(frozen=True)
class ByDocument:
    """Groups all leaves of each document, regardless of their number and their headings."""

    def __call__(self, rows: Rows) -> Membership | None:
        """Return one group per document, or None above the leaves."""
        return one_hot(rows.document) if rows.level == 0 else None
