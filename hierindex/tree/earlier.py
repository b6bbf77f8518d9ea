"""The tree that an index holds, of which an update keeps what does not change.

A growth replaces the trees of changed documents. Above them, it goes up level by level: the groups
that lost a node, and those that a new node joins, are read with all of their nodes and grouped
again, and the parents that change are the new nodes of the next level. All other groups stay as
they are, and are not read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from copy import copy
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.arrays import Floats2d
from hierindex.core.membership import Membership, groups_of
from hierindex.core.revision import continued, joined
from hierindex.core.rows import Rows
from hierindex.node import Node
from hierindex.store.snapshot import Snapshot
from hierindex.tree.arrays import level_rows, most_alike, stacked, weight_matrix
from hierindex.tree.held import HeldTree

FEW = 100  # nodes of a level that are read at once rather than searched
MANY_NEW = 0.02  # share of new nodes from which reading all of a level is faster than searching
MOST_NEW = 0.5  # share of new nodes above which a level is clustered anew


class EarlierTree:
    """The tree that an index holds, as one growth replaces it.

    Parameters
    ----------
    snapshot : Snapshot
        Of an index that exists.
    documents : Collection[str]
        Ids of the documents that are removed, or whose chunks are given again.
    order : Sequence[str]
        Ids of all documents of the new tree.
    """

    def __init__(
        self, snapshot: Snapshot, documents: Collection[str], order: Sequence[str]
    ) -> None:
        self.gone: set[str] = set()
        """Ids of the nodes that the new tree does not have."""
        self._held = HeldTree(snapshot)
        self._documents = documents
        self._order = {document: i for i, document in enumerate(order)}
        self._levels = 0  # those that hold the trees of single documents
        self._shift = 0  # of the levels above the trees of documents
        self._read: dict[str, tuple[Node, Node]] = {}  # with copies as they were
        # Of the cut that is grouped:
        self._cut = 0  # its level in the earlier tree
        self._is_whole = False  # whether all of its nodes are grouped
        self._nodes: list[Node] = []
        self._left: set[str] = set()  # earlier nodes that are gone, changed or continued
        self._follows: dict[str, str] = {}  # the earlier node that a node is or continues
        self._groups: list[str] = []  # earlier parents of the nodes that are grouped
        self._before = csr_array((0, 0))  # memberships of the nodes in these

    @property
    def changed(self) -> list[Node]:
        """The nodes that were read and have changed since."""
        return [node for node, before in self._read.values() if node != before]

    def is_unchanged(self, node: Node) -> bool:
        """Return whether a node was read, so that its text and its children are as they were."""
        return node.id in self._read

    def replace_documents(
        self, tops: Sequence[Node], made: Set[str], height: int, *, is_grouped: bool
    ) -> int:
        """Note the new trees of documents, and return the number of levels that hold all trees.

        Parameters
        ----------
        tops : Sequence[Node]
            The roots of these trees.
        made : Set[str]
            Ids of all of their nodes.
        height : int
            Number of their levels above the chunks.
        is_grouped : bool
            Whether the nodes of each document are grouped before those of all.
        """
        self._levels = self._held.document_levels() if is_grouped else 0
        places = self._held.of_documents(self._documents)
        before = {i: place for i, place in places.items() if place.level <= self._levels}
        self.gone = before.keys() - made
        self._left = {i for i, place in before.items() if place.level_max >= self._levels}
        self._follows = {node.id: node.id for node in tops if node.id in self._left}
        self._follows |= most_alike(
            [node for node in tops if node.id not in self._left],
            self._held.nodes(self._left - made),
        )
        levels = max(height, self._levels)
        if self._levels > height and any(before[i].level == self._levels for i in self._left):
            levels = max(height, self._held.highest(self._levels, without=self._left))
        self._shift = levels - self._levels
        return levels

    def around(
        self, current: Sequence[Node], X: Floats2d, level: int
    ) -> tuple[Sequence[Node], Rows]:
        """Return the nodes of a level that are to be grouped, given ones and read ones.

        Parameters
        ----------
        current : Sequence[Node]
            New and changed nodes of the level.
        X : (n_nodes, n_dims) unit vectors
        level : int

        Returns
        -------
        Sequence[Node], Rows
            In document order; none if nothing changes from this level on.
        """
        self._cut, self._is_whole = level - self._shift, False
        if not (self._shift or self._left) and all(map(self.is_unchanged, current)):
            return [], level_rows([], X[:0], level)
        new = [node for node in current if node.id not in self._follows]
        is_new = np.array([node.id not in self._follows for node in current], dtype=bool)
        n_nodes = self._held.size(self._cut) - len(self._left) + len(current)
        is_high = self._shift != 0 or self._cut >= self._held.highest_level()
        self._is_whole = is_high or n_nodes <= max(FEW, len(new) / MANY_NEW)
        away = self._left | {node.id for node in current}
        self._held.prefetch_parents(self._left)
        groups = {parent for node_id in self._left for parent in self._parents(node_id)}
        if self._is_whole:
            near = beside = self._remembered(self._held.cut(self._cut), away)
            groups |= {parent for node in beside for parent in self._parents(node.id)}
        else:
            near = self._remembered(
                self._held.nodes(self._held.near(X[is_new], self._cut, away)), away
            )
        known = [node for node in current if node.id in self._follows]
        joins = self._joined(X[is_new], [*known, *near], stacked(X[~is_new], near))
        group_of = {node.id: group for node, group in zip(new, joins, strict=True) if group}
        if not self._is_whole:
            groups |= {*group_of.values()}
            members = {i for place in self._held.places(groups).values() for i in place.children}
            beside = self._remembered(self._held.nodes(members - away), away)
        for node in beside:
            if node.level > self._levels:
                lifted = node.level + self._shift
                node.level = node.level_max = lifted
        nodes, X = [*current, *beside], stacked(X, beside)
        order = sorted(range(len(nodes)), key=lambda i: self._place(nodes[i]))
        self._nodes = nodes = [nodes[i] for i in order]
        self._groups = sorted(groups)
        self._before = self._memberships(nodes, group_of)
        if not nodes:  # of each group, all nodes are gone
            return self.rise([], csr_array((0, 0)), [], X)
        is_anew = self._is_whole and (not groups or len(new) > MOST_NEW * n_nodes)
        rows = level_rows(nodes, X[order], level)
        before = None if is_anew else self._before
        return nodes, replace(rows, before=before, is_part=not self._is_whole)

    def kept(self, nodes: Sequence[Node], M: Membership) -> dict[int, str]:
        """Return the earlier parents that stay as they are, by the column of their group.

        These are the parents of groups that have the same nodes as before, all of them unchanged.
        """
        beside = (self.parents_beside(node) for node in nodes)
        places = self._held.places({*self._groups}.union(*beside))
        parent_of = {place.children: node_id for node_id, place in places.items()}
        kept = {}
        for g, group in enumerate(groups_of(M)):
            members = [nodes[row] for row in group]
            parent = parent_of.get(frozenset(node.id for node in members))
            if parent is not None and all(map(self.is_unchanged, members)):
                kept[g] = parent
        return kept

    def parents_beside(self, node: Node) -> dict[str, float]:
        """Return the parents of a node, with weights, whose groups are not read and stay."""
        if not self.is_unchanged(node):
            return {}
        parents = self._parents(node.id)
        return {i: weight for i, weight in parents.items() if i not in self._groups}

    def rise(
        self, nodes: Sequence[Node], M: Membership, parents: Sequence[Node | str], X: Floats2d
    ) -> tuple[Sequence[Node], Rows]:
        """Return the nodes of the next level that are to be grouped, see `around`.

        Parameters
        ----------
        nodes : Sequence[Node]
            What `around` returned.
        M : (n_nodes, n_groups) csr_array
        parents : Sequence[Node or str]
            Of each group. A node that passes up is its own; an id stands for one that is kept.
        X : (n_groups, n_dims) unit vectors
        """
        made = {parent.id for parent in parents if isinstance(parent, Node)}
        replaced = {*self._groups}.difference(p for p in parents if isinstance(p, str))
        follows = {}
        candidates = zip(parents, groups_of(M), continued(M, self._before).tolist(), strict=True)
        for parent, group, g in candidates:
            if isinstance(parent, str):
                continue
            if parent is nodes[group[0]]:  # it passes up
                earlier = self._earlier(parent)
                if earlier and not self._parents(earlier):
                    follows[parent.id] = earlier
            elif parent.id in replaced:
                follows[parent.id] = parent.id
            elif g >= 0 and self._groups[g] in replaced - made:
                follows[parent.id] = self._groups[g]
        passing = {earlier for earlier in map(self._earlier, nodes) if earlier} | self._left
        unchanged = {i for i in follows if i in self._read}
        self.gone |= replaced - made
        self._left = replaced | {i for i in passing if not self._parents(i)} - unchanged
        self._follows = follows
        rows = [g for g, parent in enumerate(parents) if isinstance(parent, Node)]
        current = [parent for parent in parents if isinstance(parent, Node)]
        return self.around(current, X[rows], self._cut + self._shift + 1)

    def finish(self, made: Set[str]) -> None:
        """Make roots of the nodes that `around` returned last, if they are a whole level.

        All earlier nodes above them are gone, but for those that were `made` again.
        """
        if self._is_whole:
            top = max((node.level for node in self._nodes), default=0)
            for node in self._nodes:
                node.parents, node.level_max = (), top
            self.gone.update(self._held.above(self._cut))
            self.gone -= made

    def among_related(self, nodes: Sequence[Node], documents: Collection[str]) -> list[Node]:
        """Return new nodes with those that were read, and all nodes of some documents alone.

        They are in the order of their levels, then of the text.
        """
        known = self.gone.union(self._read, (node.id for node in nodes))
        self._remembered(self._held.nodes(self._held.of_documents(documents).keys() - known), ())
        related = [*nodes, *(node for node, _ in self._read.values())]
        return sorted(related, key=lambda node: (node.level, *self._place(node)[:2]))

    def _parents(self, node_id: str) -> dict[str, float]:
        """Return the parents of an earlier node on the level above the cut, with weights."""
        place = self._held.places([node_id])[node_id]
        above = self._held.places(place.parents)
        return {i: place.parents[i] for i, p in above.items() if p.level == self._cut + 1}

    def _earlier(self, node: Node) -> str:
        """Return the earlier node that a node is or continues; "" if it is new."""
        return self._follows.get(node.id, node.id if self.is_unchanged(node) else "")

    def _remembered(self, nodes: Iterable[Node], away: Collection[str]) -> list[Node]:
        """Remember nodes that were read, without those that are known already."""
        nodes = [node for node in nodes if node.id not in away]
        self._held.prefetch_parents({node.id for node in nodes})
        for node in nodes:
            self._read[node.id] = node, copy(node)
        return nodes

    def _joined(self, new: Floats2d, known: Sequence[Node], X: Floats2d) -> list[str]:
        """Return the earlier group that each new row joins, given nodes with their vectors."""
        parents = [self._parents(self._earlier(node)) for node in known]
        groups = sorted({group for of in parents for group in of})
        if not groups:
            return [""] * len(new)
        grouped = [i for i, of in enumerate(parents) if of]
        M = weight_matrix([parents[i] for i in grouped], groups)
        return [groups[g] for g in joined(new, X[grouped], M)]

    def _memberships(self, nodes: Sequence[Node], group_of: Mapping[str, str]) -> csr_array:
        """Return the weights of nodes in the earlier groups, and of new ones in what they join."""
        weights = []
        for node in nodes:
            if earlier := self._earlier(node):
                weights.append(self._parents(earlier))
            else:
                group = group_of.get(node.id)
                weights.append({group: 1.0} if group else {})
        return weight_matrix(weights, self._groups)

    def _place(self, node: Node) -> tuple[int, int, str]:
        """Return a key that sorts nodes by document and text."""
        document = node.documents[0]
        spans = [span.start for span in node.citations if span.document == document]
        return self._order[document], min(spans, default=-1), node.id
