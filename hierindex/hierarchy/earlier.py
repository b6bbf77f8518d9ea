"""The tree that an index holds, of which an update keeps what does not change.

A growth replaces the trees of changed documents. Above them, it goes up level by level: the groups
that lost a node, and those that a new node joins, are read with all of their nodes and grouped
again, and the parents that change are the new nodes of the next level. All other groups stay as
they are, and are not read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.membership import Floats2d, Membership, groups_of
from hierindex.core.revision import continued, joined
from hierindex.core.rows import Rows
from hierindex.hierarchy.arrays import level_rows, most_alike, stacked, weight_matrix
from hierindex.hierarchy.held import HeldTree
from hierindex.hierarchy.nodes import Draft
from hierindex.record import NodeRecord
from hierindex.store.snapshot import Snapshot

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
        self._read: dict[str, tuple[Draft, NodeRecord]] = {}  # with their records as they were
        # Of the cut that is grouped:
        self._cut = 0  # its level in the earlier tree
        self._is_whole = False  # whether all of its nodes are grouped
        self._nodes: list[Draft] = []
        self._left: set[str] = set()  # earlier nodes that are gone, changed or continued
        self._follows: dict[str, str] = {}  # the earlier node that a node is or continues
        self._groups: list[str] = []  # earlier parents of the nodes that are grouped
        self._before = csr_array((0, 0))  # memberships of the nodes in these

    @property
    def changed(self) -> list[Draft]:
        """The nodes that were read and whose records have changed since."""
        return [draft for draft, before in self._read.values() if draft.record != before]

    def is_unchanged(self, draft: Draft) -> bool:
        """Return whether a node was read, so that its text and its children are as they were."""
        return draft.id in self._read

    def replace_documents(
        self, tops: Sequence[Draft], made: Set[str], height: int, *, is_grouped: bool
    ) -> int:
        """Note the new trees of documents, and return the number of levels that hold all trees.

        Parameters
        ----------
        tops : Sequence[Draft]
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
        self._follows = {draft.id: draft.id for draft in tops if draft.id in self._left}
        self._follows |= most_alike(
            [draft for draft in tops if draft.id not in self._left],
            self._held.drafts(self._left - made),
        )
        levels = max(height, self._levels)
        if self._levels > height and any(before[i].level == self._levels for i in self._left):
            levels = max(height, self._held.highest(self._levels, without=self._left))
        self._shift = levels - self._levels
        return levels

    def around(
        self, current: Sequence[Draft], X: Floats2d, level: int
    ) -> tuple[Sequence[Draft], Rows]:
        """Return the nodes of a level that are to be grouped, given ones and read ones.

        Parameters
        ----------
        current : Sequence[Draft]
            New and changed nodes of the level.
        X : (n_nodes, n_dims) unit vectors
        level : int

        Returns
        -------
        Sequence[Draft], Rows
            In document order; none if nothing changes from this level on.
        """
        self._cut, self._is_whole = level - self._shift, False
        if not (self._shift or self._left) and all(map(self.is_unchanged, current)):
            return [], level_rows([], X[:0], level)
        new = [draft for draft in current if draft.id not in self._follows]
        is_new = np.array([draft.id not in self._follows for draft in current], dtype=bool)
        n_nodes = self._held.size(self._cut) - len(self._left) + len(current)
        is_high = self._shift != 0 or self._cut >= self._held.highest_level()
        self._is_whole = is_high or n_nodes <= max(FEW, len(new) / MANY_NEW)
        away = self._left | {draft.id for draft in current}
        self._held.prefetch_parents(self._left)
        groups = {parent for node_id in self._left for parent in self._parents(node_id)}
        if self._is_whole:
            near = beside = self._remembered(self._held.cut(self._cut), away)
            groups |= {parent for draft in beside for parent in self._parents(draft.id)}
        else:
            near = self._remembered(
                self._held.drafts(self._held.near(X[is_new], self._cut, away)), away
            )
        known = [draft for draft in current if draft.id in self._follows]
        joins = self._joined(X[is_new], [*known, *near], stacked(X[~is_new], near))
        group_of = {draft.id: group for draft, group in zip(new, joins, strict=True) if group}
        if not self._is_whole:
            groups |= {*group_of.values()}
            members = {i for place in self._held.places(groups).values() for i in place.children}
            beside = self._remembered(self._held.drafts(members - away), away)
        for draft in beside:
            if draft.record.level > self._levels:
                lifted = draft.record.level + self._shift
                draft.note(level=lifted, level_max=lifted)
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

    def kept(self, nodes: Sequence[Draft], M: Membership) -> dict[int, str]:
        """Return the earlier parents that stay as they are, by the column of their group.

        These are the parents of groups that have the same nodes as before, all of them unchanged.
        """
        beside = (self.parents_beside(draft) for draft in nodes)
        places = self._held.places({*self._groups}.union(*beside))
        parent_of = {place.children: node_id for node_id, place in places.items()}
        kept = {}
        for g, group in enumerate(groups_of(M)):
            members = [nodes[row] for row in group]
            parent = parent_of.get(frozenset(draft.id for draft in members))
            if parent is not None and all(map(self.is_unchanged, members)):
                kept[g] = parent
        return kept

    def parents_beside(self, draft: Draft) -> dict[str, float]:
        """Return the parents of a node, with weights, whose groups are not read and stay."""
        if not self.is_unchanged(draft):
            return {}
        parents = self._parents(draft.id)
        return {i: weight for i, weight in parents.items() if i not in self._groups}

    def rise(
        self, nodes: Sequence[Draft], M: Membership, parents: Sequence[Draft | str], X: Floats2d
    ) -> tuple[Sequence[Draft], Rows]:
        """Return the nodes of the next level that are to be grouped, see `around`.

        Parameters
        ----------
        nodes : Sequence[Draft]
            What `around` returned.
        M : (n_nodes, n_groups) csr_array
        parents : Sequence[Draft or str]
            Of each group. A node that passes up is its own; an id stands for one that is kept.
        X : (n_groups, n_dims) unit vectors
        """
        made = {parent.id for parent in parents if isinstance(parent, Draft)}
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
        rows = [g for g, parent in enumerate(parents) if isinstance(parent, Draft)]
        current = [parent for parent in parents if isinstance(parent, Draft)]
        return self.around(current, X[rows], self._cut + self._shift + 1)

    def finish(self, made: Set[str]) -> None:
        """Make roots of the nodes that `around` returned last, if they are a whole level.

        All earlier nodes above them are gone, but for those that were `made` again.
        """
        if self._is_whole:
            top = max((draft.record.level for draft in self._nodes), default=0)
            for draft in self._nodes:
                draft.note(parents=(), level_max=top)
            self.gone.update(self._held.above(self._cut))
            self.gone -= made

    def among_related(self, drafts: Sequence[Draft], documents: Collection[str]) -> list[Draft]:
        """Return new nodes with those that were read, and all nodes of some documents alone.

        They are in the order of their levels, then of the text.
        """
        known = self.gone.union(self._read, (draft.id for draft in drafts))
        self._remembered(self._held.drafts(self._held.of_documents(documents).keys() - known), ())
        related = [*drafts, *(draft for draft, _ in self._read.values())]
        return sorted(related, key=lambda draft: (draft.record.level, *self._place(draft)[:2]))

    def _parents(self, node_id: str) -> dict[str, float]:
        """Return the parents of an earlier node on the level above the cut, with weights."""
        place = self._held.places([node_id])[node_id]
        above = self._held.places(place.parents)
        return {i: place.parents[i] for i, p in above.items() if p.level == self._cut + 1}

    def _earlier(self, draft: Draft) -> str:
        """Return the earlier node that a node is or continues; "" if it is new."""
        return self._follows.get(draft.id, draft.id if self.is_unchanged(draft) else "")

    def _remembered(self, drafts: Iterable[Draft], away: Collection[str]) -> list[Draft]:
        """Remember nodes that were read, without those that are known already."""
        nodes = [draft for draft in drafts if draft.id not in away]
        self._held.prefetch_parents({draft.id for draft in nodes})
        for draft in nodes:
            self._read[draft.id] = draft, draft.record
        return nodes

    def _joined(self, new: Floats2d, known: Sequence[Draft], X: Floats2d) -> list[str]:
        """Return the earlier group that each new row joins, given nodes with their vectors."""
        parents = [self._parents(self._earlier(draft)) for draft in known]
        groups = sorted({group for of in parents for group in of})
        if not groups:
            return [""] * len(new)
        grouped = [i for i, of in enumerate(parents) if of]
        M = weight_matrix([parents[i] for i in grouped], groups)
        return [groups[g] for g in joined(new, X[grouped], M)]

    def _memberships(self, nodes: Sequence[Draft], group_of: Mapping[str, str]) -> csr_array:
        """Return the weights of nodes in the earlier groups, and of new ones in what they join."""
        weights = []
        for draft in nodes:
            if earlier := self._earlier(draft):
                weights.append(self._parents(earlier))
            else:
                group = group_of.get(draft.id)
                weights.append({group: 1.0} if group else {})
        return weight_matrix(weights, self._groups)

    def _place(self, draft: Draft) -> tuple[int, int, str]:
        """Return a key that sorts nodes by document and text."""
        record = draft.record
        spans = [span.start for span in record.citations if span.document == record.documents[0]]
        return self._order[record.documents[0]], min(spans, default=-1), draft.id
