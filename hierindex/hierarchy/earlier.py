"""The tree that an index holds, from which an update takes the groups that stay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.groupers import ByMixture
from hierindex.core.membership import Ints1d, Membership, groups_of
from hierindex.core.revision import Earlier, Revised
from hierindex.core.tree import Grouper
from hierindex.hierarchy.nodes import Draft


@dataclass(frozen=True)
class EarlierTree:
    """The nodes of an earlier tree, and their numbers by id."""

    nodes: Earlier
    number: Mapping[str, int]

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        levels: Sequence[int],
        parent_ids: Sequence[Sequence[str]],
        parent_weights: Sequence[Sequence[float]],
    ) -> Self:
        """Return a tree from columns of its nodes."""
        number = {node_id: i for i, node_id in enumerate(ids)}
        links = [
            (i, number[parent], weight)
            for i, pairs in enumerate(zip(parent_ids, parent_weights, strict=True))
            for parent, weight in zip(*pairs, strict=True)
            if parent in number
        ]
        row, column, weight = np.array(links).reshape(-1, 3).T
        places = row.astype(np.int64), column.astype(np.int64)
        parents = csr_array((weight, places), shape=(len(ids), len(ids)))
        return cls(Earlier(np.array(levels, dtype=np.int64), parents), number)

    def before(self, nodes: Sequence[Draft]) -> Ints1d:
        """Return the number of each node in this tree, -1 for a new one, (n_nodes,) int."""
        return np.array([self.number.get(draft.node.node_id, -1) for draft in nodes])

    def continued(
        self, M: Membership, before: Ints1d, current: Sequence[Draft], parents: Sequence[Draft]
    ) -> Ints1d:
        """Return the number of the node that each parent continues, see `Earlier.continued`.

        A node that passes up continues what it continued before.
        """
        continued = self.nodes.continued(M, before)
        for g, group in enumerate(groups_of(M)):
            if parents[g] is current[group[0]]:
                continued[g] = before[group[0]]
        return continued

    def revised(self, grouper: Grouper) -> Grouper:
        """Return a grouper that keeps this tree's groups, if it groups nodes across documents.

        Trees of single documents are always grown anew, as by a build.
        """
        if self.number and isinstance(grouper, ByMixture) and not grouper.per_document:
            return Revised(grouper, self.nodes)
        return grouper


NONE = EarlierTree.of([], [], [], [])
