"""The tree in an index, from which an update keeps everything that does not change.

The trees of changed documents are replaced. Above them, an update works level by level. It reads
all nodes of the groups that lost a node or that a new node joins, and groups these nodes again.
Parents that change are the new nodes of the next level. All other groups are kept and not read.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.arguments import Floats2d
from hierindex.core.membership import Membership, groups_of
from hierindex.core.tree import NEIGHBOURS, continued, joined
from hierindex.node import Node
from hierindex.store.filters import EVERY_ROW, WHOLE, Prefilter, at_cut, by_ids, of_documents
from hierindex.store.rows import Row, node_of
from hierindex.store.search import nearest
from hierindex.store.snapshot import Snapshot
from hierindex.threads import each
from hierindex.tree.levels import Level
from hierindex.tree.nodes import level_rows, most_alike, stacked, weight_matrix

AT_ONCE = 32  # searches
FEW = 100  # nodes of a level that are read at once rather than searched
MANY_NEW = 0.02  # share of new nodes from which reading all of a level is faster than searching
MOST_NEW = 0.5  # share of new nodes above which a level is clustered anew
NO_ROWS = level_rows([], np.zeros((0, 1)), 0)
PLACE = ("id", "level", "level_max", "parent_ids", "parent_weights", "child_ids", "documents")


class Place(NamedTuple):
    """A node's position in the tree: its level, its parents with weights, and its children."""

    level: int
    level_max: int
    parents: Mapping[str, float]
    children: Set[str]
    documents: Sequence[str]


class EarlierTree:
    """The tree in an index, during an update that replaces parts of it.

    Parameters
    ----------
    snapshot : Snapshot
        Snapshot of an existing index.
    documents : Collection[str]
        Ids of the documents that are removed or replaced.
    order : Sequence[str]
        Ids of all documents of the new tree.

    Attributes
    ----------
    snapshot : Snapshot
    gone : set[str]
        Ids of the nodes that are not in the new tree.
    """

    def __init__(
        self, snapshot: Snapshot, documents: Collection[str], order: Sequence[str]
    ) -> None:
        self.gone: set[str] = set()
        self.snapshot = snapshot
        self._places: dict[str, Place] = {}
        self._documents = documents
        self._order = {document: i for i, document in enumerate(order)}
        self._read: dict[str, tuple[Node, Node]] = {}  # with copies as they were

    @property
    def changed(self) -> list[Node]:
        """The nodes that have changed since they were read."""
        return [node for node, before in self._read.values() if node != before]

    def is_unchanged(self, node_id: str) -> bool:
        """Return whether a node was read, so that its text and children are unchanged."""
        return node_id in self._read

    def replaced(
        self, tops: Sequence[Node], made: Set[str], height: int, *, is_grouped: bool
    ) -> "Cut":
        """Replace the trees of documents; return the cut above them, still without nodes.

        Parameters
        ----------
        tops : Sequence[Node]
            The roots of the new trees.
        made : Set[str]
            Ids of all nodes of the new trees.
        height : int
            Number of levels of the new trees above the chunks.
        is_grouped : bool
            Whether the nodes of each document are grouped before those of all documents together.
        """
        n_levels = self.document_levels() if is_grouped else 0
        places = self.of_documents(self._documents)
        before = {i: place for i, place in places.items() if place.level <= n_levels}
        self.gone = before.keys() - made
        left = {i for i, place in before.items() if place.level_max >= n_levels}
        follows = {node.id: node.id for node in tops if node.id in left}
        follows |= most_alike(
            [node for node in tops if node.id not in left], self.nodes(left - made)
        )
        level = height
        if n_levels > height:
            rows = self.snapshot.select("id", "level", where=at_cut(n_levels)).to_pylist()
            level = max([height, *(row["level"] for row in rows if row["id"] not in left)])
        shift = level - n_levels
        return Cut((), NO_ROWS, self, n_levels, shift, n_levels, left, follows)

    def remembered(self, nodes: list[Node]) -> list[Node]:
        """Store nodes that were read, with copies to detect changes, and return them."""
        self._read |= {node.id: (node, copy(node)) for node in nodes}
        return nodes

    def finish(self, cut: "Cut", made: Set[str]) -> None:
        """Turn the nodes of the last cut into roots, if they are a whole level.

        All earlier nodes above them are removed, except those that were `made` again.
        """
        if cut.is_whole:
            top = max((node.level for node in cut.nodes), default=0)
            for node in cut.nodes:
                node.parents, node.level_max = (), top
            above = Prefilter(f"level > {cut.level:d}")
            self.gone.update(self.snapshot.select("id", where=above)["id"].to_pylist())
            self.gone -= made

    def among_related(self, nodes: Sequence[Node], documents: Collection[str]) -> list[Node]:
        """Return new nodes together with the nodes that were read, and all nodes of some documents.

        They are sorted by level, then by position in the text.
        """
        known = self.gone.union(self._read, (node.id for node in nodes))
        self.remembered(self.nodes(self.of_documents(documents).keys() - known))
        related = [*nodes, *(node for node, _ in self._read.values())]
        return sorted(related, key=lambda node: (node.level, *self.place(node)[:2]))

    def place(self, node: Node) -> tuple[int, int, str]:
        """Return a key that sorts nodes by document and text."""
        document = node.documents[0]
        spans = [span.start for span in node.citations if span.document == document]
        return self._order[document], min(spans, default=-1), node.id

    def places(self, ids: Collection[str]) -> dict[str, Place]:
        """Return the positions of nodes in the tree by id, without those that the index lacks."""
        if unknown := [i for i in ids if i not in self._places]:
            self._learn(self.snapshot.rows(unknown, columns=PLACE))
        return {i: self._places[i] for i in ids if i in self._places}

    def of_documents(self, documents: Collection[str]) -> dict[str, Place]:
        """Return the positions of the nodes whose text is from exactly one of these documents."""
        if not documents:
            return {}
        ids = self._learn(self.snapshot.rows(where=of_documents(documents), columns=PLACE))
        several = self.places(ids).items()
        return {i: p for i, p in several if len(p.documents) == 1 and p.documents[0] in documents}

    def document_levels(self) -> int:
        """Return the number of levels of the trees of single documents, or 0.

        It is the highest level of a node that is a whole document.
        """
        highest = self.snapshot.highest_level()
        of_several = f"level_max = {highest:d} AND array_length(documents) > 1"
        if not self.snapshot.count(Prefilter(of_several)):
            return highest
        whole = self.snapshot.select("level", where=WHOLE)
        return max(whole["level"].to_pylist(), default=0)

    def nodes(self, ids: Collection[str] | None = None, where: Prefilter = EVERY_ROW) -> list[Node]:
        """Return the nodes with these ids that meet a condition, with their vectors."""
        found = self.snapshot.rows(ids, where=where) if ids is None or ids else []
        rows = sorted(found, key=itemgetter("id"))
        self._learn(rows)
        return [*map(node_of, rows)]

    def near(self, X: Floats2d, level: int, without: Collection[str]) -> list[str]:
        """Return the ids of the nodes of a cut, excluding some, that are nearest to any row.

        Parameters
        ----------
        X : (n_rows, n_dims) unit vectors
        level : int
        without : Collection[str]
        """
        others = at_cut(level) & ~by_ids(without) if without else at_cut(level)
        scope = self.snapshot.scope(where=others, columns=("id",))
        found = each((partial(nearest, scope, x.tolist(), NEIGHBOURS) for x in X), AT_ONCE)
        return sorted({i for rows in found for i in rows["id"].to_pylist()})

    def _learn(self, rows: Sequence[Row]) -> list[str]:
        """Store the positions of rows, and return their ids."""
        for row in rows:
            parents = dict(zip(row["parent_ids"], row["parent_weights"], strict=True))
            self._places[row["id"]] = Place(
                row["level"], row["level_max"], parents, {*row["child_ids"]}, row["documents"]
            )
        return [row["id"] for row in rows]


@dataclass(frozen=True)
class Cut(Level):
    """The nodes of a level that an update groups again; empty if no higher level changes.

    Attributes
    ----------
    tree : EarlierTree
    base : int
        Highest level of the earlier trees of documents.
    shift : int
        How many levels higher the new trees are.
    level : int
        Level of the cut in the earlier tree.
    left : Set[str]
        Ids of earlier nodes that are gone, changed or continued.
    follows : Mapping[str, str]
        The earlier node that a node equals or continues, by id.
    is_whole : bool
        Whether these are all nodes of the level.
    groups : Sequence[str]
        Ids of the earlier parents of these nodes.
    before : csr_array
        Weights of the nodes in these groups, (n_nodes, n_groups).
    """

    tree: EarlierTree
    base: int
    shift: int
    level: int
    left: Set[str]
    follows: Mapping[str, str]
    is_whole: bool = False
    groups: Sequence[str] = ()
    before: csr_array = field(default_factory=lambda: csr_array((0, 0)))

    def kept(self, M: Membership) -> dict[int, str]:
        """See `Level`.

        These are the parents of groups with the same nodes as before, all of them unchanged.
        """
        beside = map(self.parents_beside, self.nodes)
        places = self.tree.places({*self.groups}.union(*beside))
        parent_of = {frozenset(place.children): node_id for node_id, place in places.items()}
        kept = {}
        for g, group in enumerate(groups_of(M)):
            members = [self.nodes[row] for row in group]
            parent = parent_of.get(frozenset(node.id for node in members))
            if parent is not None and all(self.tree.is_unchanged(node.id) for node in members):
                kept[g] = parent
        return kept

    def parents_beside(self, node: Node) -> dict[str, float]:
        """See `Level`; these groups are not read and stay unchanged."""
        if not self.tree.is_unchanged(node.id):
            return {}
        parents = self._parents(node.id)
        return {i: weight for i, weight in parents.items() if i not in self.groups}

    def above(self, M: Membership, parents: Sequence[Node | str], X: Floats2d) -> "Cut":
        """Return the next higher cut; see `Level`."""
        current = {g: parent for g, parent in enumerate(parents) if isinstance(parent, Node)}
        made = {parent.id for parent in current.values()}
        replaced = {*self.groups}.difference(p for p in parents if isinstance(p, str))
        follows, groups, earlier_groups = dict[str, str](), groups_of(M), continued(M, self.before)
        for g, parent in current.items():
            before = earlier_groups[g]
            if parent is self.nodes[groups[g][0]]:  # it passes up
                earlier = self._earlier(parent)
                if earlier and not self._parents(earlier):
                    follows[parent.id] = earlier
            elif parent.id in replaced:
                follows[parent.id] = parent.id
            elif before >= 0 and self.groups[before] in replaced - made:
                follows[parent.id] = self.groups[before]
        passing = {earlier for earlier in map(self._earlier, self.nodes) if earlier} | self.left
        unchanged = {*filter(self.tree.is_unchanged, follows)}
        self.tree.gone |= replaced - made
        left = replaced | {i for i in passing if not self._parents(i)} - unchanged
        level = self.level + 1
        cut = Cut((), NO_ROWS, self.tree, self.base, self.shift, level, left, follows)
        return cut.around([*current.values()], X[[*current]])

    def around(self, current: Sequence[Node], X: Floats2d) -> "Cut":
        """Return the cut with the nodes to group again: new, changed, and related nodes."""
        tree, shift = self.tree, self.shift
        level = self.level + shift
        if not (shift or self.left) and all(tree.is_unchanged(node.id) for node in current):
            return replace(self, rows=level_rows([], X[:0], level))
        new = [node for node in current if node.id not in self.follows]
        is_new = np.array([node.id not in self.follows for node in current], dtype=bool)
        n_nodes = tree.snapshot.count(at_cut(self.level)) - len(self.left) + len(current)
        is_high = shift != 0 or self.level >= tree.snapshot.highest_level()
        is_whole = is_high or n_nodes <= max(FEW, len(new) / MANY_NEW)
        away = self.left | {node.id for node in current}
        tree.places(self.left)  # of all of them at once
        groups = {parent for node_id in self.left for parent in self._parents(node_id)}
        if is_whole:
            whole = tree.nodes(where=at_cut(self.level))
            near = beside = tree.remembered([node for node in whole if node.id not in away])
            groups |= {parent for node in beside for parent in self._parents(node.id)}
        else:
            near = tree.remembered(tree.nodes(tree.near(X[is_new], self.level, away)))
        known = [node for node in current if node.id in self.follows]
        joins = self._joined(X[is_new], [*known, *near], stacked(X[~is_new], near))
        group_of = {node.id: group for node, group in zip(new, joins, strict=True) if group}
        if not is_whole:
            groups |= {*group_of.values()}
            members = {i for place in tree.places(groups).values() for i in place.children}
            beside = tree.remembered(tree.nodes(members - away))
        for node in beside:
            if node.level > self.base:
                node.level += shift
                node.level_max = node.level
        nodes, X = [*current, *beside], stacked(X, beside)
        order = sorted(range(len(nodes)), key=lambda i: tree.place(nodes[i]))
        nodes = [nodes[i] for i in order]
        sorted_groups = sorted(groups)
        before = self._memberships(nodes, group_of, sorted_groups)
        is_anew = is_whole and (not groups or len(new) > MOST_NEW * n_nodes)
        rows = level_rows(nodes, X[order], level)
        rows = replace(rows, before=None if is_anew else before, is_part=not is_whole)
        cut = replace(
            self, nodes=nodes, rows=rows, is_whole=is_whole, groups=sorted_groups, before=before
        )
        return cut if nodes else cut.above(csr_array((0, 0)), [], X)  # all nodes of groups are gone

    def _parents(self, node_id: str) -> Mapping[str, float]:
        """Return the parents of an earlier node on the level above the cut, with weights."""
        place = self.tree.places([node_id])[node_id]
        return place.parents if place.level_max == self.level else {}

    def _earlier(self, node: Node) -> str:
        """Return the earlier node that a node equals or continues; "" if it is new."""
        return self.follows.get(node.id, node.id if self.tree.is_unchanged(node.id) else "")

    def _joined(self, new: Floats2d, known: Sequence[Node], X: Floats2d) -> list[str]:
        """Return the earlier group that each new row joins, given nodes with vectors."""
        parents = [self._parents(self._earlier(node)) for node in known]
        groups = sorted({group for of in parents for group in of})
        if not groups:
            return [""] * len(new)
        grouped = [i for i, of in enumerate(parents) if of]
        M = weight_matrix([parents[i] for i in grouped], groups)
        return [groups[g] for g in joined(new, X[grouped], M)]

    def _memberships(
        self, nodes: Sequence[Node], group_of: Mapping[str, str], groups: Sequence[str]
    ) -> csr_array:
        """Return the weights of nodes in the earlier groups; new nodes join similar ones."""
        of = [(self._earlier(node), group_of.get(node.id, "")) for node in nodes]
        weights = [self._parents(earlier) if earlier else {group: 1.0} for earlier, group in of]
        return weight_matrix(weights, groups)  # no group is ""
