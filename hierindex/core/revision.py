"""Revision of an earlier tree: rows stay in their groups; new rows join groups of similar rows."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.arguments import Floats2d, Ints1d
from hierindex.core.bounds import bounded
from hierindex.core.membership import Membership, from_groups, groups_of, one_hot, weights_of
from hierindex.core.rows import Rows
from hierindex.core.tree import ByMixture

# Chosen by tests/benchmarks/drift.py.
NEIGHBOURS = 10  # rows that decide where a new row belongs
SHARPNESS = 4  # power of a neighbour's similarity; higher powers favour the nearest
BLOCK = 256  # new rows that are compared with all others at once
CROWDED = 2  # a group of more than so many times the caps is clustered anew, others are halved


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

        Of a part of a level, each row has a group, if need be one of its own.
        """
        caps = self.grouper.caps
        may_be_one = not rows.is_part and caps.hold(int(rows.n_tokens.sum()), len(rows))
        if rows.before is None or may_be_one:
            return self.grouper(rows)
        M = self._clustered_where_crowded(_with_singles(rows.before), rows)
        M = bounded(M, rows.X, rows.n_tokens, caps)
        return M if rows.is_part or M.shape[1] < len(rows) else None

    def _clustered_where_crowded(self, M: Membership, rows: Rows) -> Membership:
        caps, groups, weights = self.grouper.caps, list[Ints1d](), []
        for group, weight in zip(groups_of(M), weights_of(M), strict=True):
            load = len(group) / caps.max_children, rows.n_tokens[group].sum() / caps.max_tokens
            parts = self.grouper(rows[group]) if max(load) > CROWDED else None
            if parts is None:
                parts = one_hot(np.zeros(len(group), dtype=np.int64))
            for part, share in zip(groups_of(parts), weights_of(parts), strict=True):
                groups.append(group[part])
                weights.append(weight[part] * share)
        return from_groups(groups, weights, len(rows))


def _with_singles(before: csr_array) -> Membership:
    """Return earlier memberships in which each row without a group forms its own group."""
    alone = np.flatnonzero(np.diff(before.indptr) == 0)
    groups = [*groups_of(before), *alone[:, None]]
    weights = [*weights_of(before), *np.ones((len(alone), 1))]
    return from_groups(groups, weights, before.shape[0])


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
    >>> from hierindex.core.membership import one_hot
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
