"""Revision of an earlier tree: rows stay in their groups, new rows join those of similar rows."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.bounds import bounded
from hierindex.core.groupers import ByMixture
from hierindex.core.membership import (
    Floats2d,
    Ints1d,
    Membership,
    from_groups,
    groups_of,
    weights_of,
)
from hierindex.core.rows import Rows

# Chosen by tests/benchmarks/drift.py.
NEIGHBOURS = 10  # rows that decide where a new row belongs
SHARPNESS = 4  # power of a neighbour's similarity; higher powers favour the nearest
MOST_NEW = 0.5  # share of new rows above which a level is clustered anew
BLOCK = 256  # new rows that are compared with all others at once
CROWDED = 2  # a group of more than so many times the caps is clustered anew, others are halved


@dataclass(frozen=True)
class Earlier:
    """The nodes of an earlier tree.

    Parameters
    ----------
    level : (n_nodes,) int
    parents : (n_nodes, n_nodes) csr_array
        Weights of each node's parents; the rows of roots are empty.
    """

    level: Ints1d
    parents: csr_array

    def continued(self, M: Membership, before: Ints1d) -> Ints1d:
        """Return the earlier node that each group continues, -1 for none, (n_groups,) int.

        That is the parent of most of the group's rows, and each earlier node is continued once.

        Parameters
        ----------
        M : (n_rows, n_groups) csr_array
        before : (n_rows,) int
            The earlier node of each row, -1 for none.

        Examples
        --------
        >>> from hierindex.core.membership import one_hot
        >>> parents = csr_array([[0, 0, 0, 1.0], [0, 0, 0, 1.0], [0, 0, 0, 1.0], [0, 0, 0, 0]])
        >>> earlier = Earlier(np.array([0, 0, 0, 1]), parents)
        >>> earlier.continued(one_hot(np.array([0, 1, 1, 2])), np.array([0, 1, 2, -1])).tolist()
        [-1, 3, -1]
        """
        known = np.flatnonzero(before >= 0)
        shared = (M[known].T @ self.parents[before[known]]).tocoo()
        strongest = np.lexsort((shared.row, -shared.data))
        group, node = shared.row[strongest], shared.col[strongest]
        wins = np.unique(node, return_index=True)[1]  # each node's strongest group
        wins = np.sort(wins)
        first = wins[np.unique(group[wins], return_index=True)[1]]
        continued = np.full(M.shape[1], -1)
        continued[group[first]] = node[first]
        return continued


@dataclass(frozen=True)
class Revised:
    """Groups rows as they were grouped in an earlier tree; a grouper does what it cannot.

    A new row joins the group of most of its nearest neighbours. Groups that exceed the caps are
    divided, and a row that is left alone joins the nearest group; all other groups stay as they
    are. A level is grouped anew if half of its rows are new.

    Parameters
    ----------
    grouper : ByMixture
    earlier : Earlier
        The nodes that `Rows.before` refers to.
    """

    grouper: ByMixture
    earlier: Earlier

    def __call__(self, rows: Rows) -> Membership | None:
        """Return groups within the caps, or None if no group has two rows."""
        caps = self.grouper.caps
        known = np.flatnonzero(rows.before >= 0)
        is_one_group = caps.hold(int(rows.n_tokens.sum()), len(rows))
        if is_one_group or len(rows) - len(known) > MOST_NEW * len(rows):
            return self.grouper(rows)
        M = self._kept(known, rows)
        if M is None:
            return self.grouper(rows)
        M = bounded(self._clustered_where_crowded(M, rows), rows.X, rows.n_tokens, caps)
        return M if M.shape[1] < len(rows) else None

    def _kept(self, known: Ints1d, rows: Rows) -> Membership | None:
        """Return the earlier groups of the next level, with the new rows; None if there are none.

        A row whose earlier parents are of a higher level is a group of its own.
        """
        parents = self.earlier.parents[rows.before[known]].tocoo()
        if parents.nnz == 0:
            return None
        level = self.earlier.level[parents.col]
        is_next = level == level.min()
        _, column = np.unique(parents.col[is_next], return_inverse=True)
        row, weight, n_groups = known[parents.row[is_next]], parents.data[is_next], column.max() + 1
        M = csr_array((weight, (row, column)), shape=(len(rows), n_groups))
        grouped, new = np.unique(row), np.flatnonzero(rows.before < 0)
        joined = _by_neighbours(rows.X[new], rows.X[grouped], csr_array(M[grouped]))
        alone = np.setdiff1d(known, grouped)
        row = np.concatenate([row, new, alone])
        column = np.concatenate([column, joined, n_groups + np.arange(len(alone))])
        weight = np.concatenate([weight, np.ones(len(new) + len(alone))])
        M = csr_array((weight, (row, column)), shape=(len(rows), n_groups + len(alone)))
        return from_groups(groups_of(M), weights_of(M), len(rows))

    def _clustered_where_crowded(self, M: Membership, rows: Rows) -> Membership:
        caps, groups, weights = self.grouper.caps, list[Ints1d](), []
        for group, weight in zip(groups_of(M), weights_of(M), strict=True):
            load = len(group) / caps.max_children, rows.n_tokens[group].sum() / caps.max_tokens
            parts = self.grouper(rows[group]) if max(load) > CROWDED else None
            if parts is None:
                groups.append(group)
                weights.append(weight)
                continue
            for part, share in zip(groups_of(parts), weights_of(parts), strict=True):
                groups.append(group[part])
                weights.append(weight[part] * share)
        return from_groups(groups, weights, len(rows))


def _by_neighbours(new: Floats2d, grouped: Floats2d, M: Membership) -> Ints1d:
    """Return the group of most of each new row's nearest grouped rows, (n_new,) int.

    Parameters
    ----------
    new : (n_new, n_dims) unit vectors
    grouped : (n_grouped, n_dims) unit vectors
    M : (n_grouped, n_groups) csr_array
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
