"""Levels of nodes that grow above one another, of a part of a tree or of all of it."""

from collections import defaultdict
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from hierindex.core.arrays import Floats2d
from hierindex.core.membership import Membership, centroids, groups_of
from hierindex.core.rows import Rows
from hierindex.core.statistics import Tally, tallies
from hierindex.core.tree import Grouper, grow_tree
from hierindex.models.record import Usage
from hierindex.node import Node
from hierindex.progress import Stopwatch, Timing
from hierindex.tree.arrays import level_rows
from hierindex.tree.earlier import EarlierTree
from hierindex.tree.parents import parents_of
from hierindex.tree.recipe import Models, Recipe

Level = tuple[Sequence[Node], Rows]


@dataclass(frozen=True)
class GrownPart:
    """A part of a tree, as the levels above need it.

    `tops` are the highest nodes of the part, and `X`, (n_tops, n_dims), their unit vectors.
    `finished` are nodes below that nothing changes any more; `left` are all others, the
    tops among them. Of the documents `done`, all nodes but the root are finished. `tallies` are by
    level, the lowest first, and `shares` the similarity to the sources of each summary that a model
    wrote.
    """

    left: Sequence[Node]
    tops: Sequence[Node]
    X: Floats2d
    finished: Sequence[Node]
    done: Set[str]
    tallies: Sequence[Tally]
    usage: Usage
    shares: Sequence[float]
    timings: Sequence[Timing]


@dataclass
class Levels:
    """Levels while they grow, and what they cost.

    Attributes
    ----------
    recipe : Recipe
    models : Models
    earlier : EarlierTree or None
        The tree that they change.
    made : list[Node]
        The nodes of all levels but the lowest.
    usage : Usage
    shares : list[float]
        The `source_similarity` of each summary that a model wrote.
    watch : Stopwatch
    """

    recipe: Recipe
    models: Models
    earlier: EarlierTree | None = None
    made: list[Node] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    shares: list[float] = field(default_factory=list)
    watch: Stopwatch = field(default_factory=Stopwatch)
    _layers: list[Membership] = field(default_factory=list)
    _rows: list[Rows] = field(default_factory=list)

    def grow(self, nodes: Sequence[Node], rows: Rows, groupers: Sequence[Grouper]) -> Level:
        """Grow levels above one until the groupers are done, and return the highest."""
        most = self.recipe.max_levels
        growth = grow_tree(rows, groupers, max_levels=None if most is None else most - rows.level)
        self._rows.append(rows)
        with suppress(StopIteration):
            with self.watch("cluster", rows.level + 1):
                M = next(growth)
            while True:
                nodes, rows = self._level_above(nodes, rows, M)
                self._layers.append(M)
                self._rows.append(rows)
                with self.watch("cluster", rows.level + 1):
                    M = growth.send(rows)
        return nodes, rows

    def part(
        self,
        tops: Sequence[Node],
        rows: Rows,
        left: Sequence[Node],
        finished: Sequence[Node] = (),
        done: Set[str] = frozenset(),
    ) -> GrownPart:
        """Return the levels as a part of a tree; `rows` are those of `tops`."""
        with self.watch("cluster", None):
            tallies = self.tallies()
        return GrownPart(
            left=left,
            tops=tops,
            X=rows.X,
            finished=finished,
            done=done,
            tallies=tallies,
            usage=self.usage,
            shares=self.shares,
            timings=self.watch.timings,
        )

    def tallies(self) -> list[Tally]:
        """Return the tallies of the levels, the lowest first."""
        return tallies(self._layers, self._rows)

    def _level_above(self, nodes: Sequence[Node], rows: Rows, M: Membership) -> Level:
        """Return the parents of nodes with their rows; a group of one passes up unchanged."""
        earlier, level, groups = self.earlier, rows.level + 1, groups_of(M)
        kept = earlier.kept(nodes, M) if earlier else {}
        alone = self.recipe.summarize_single_documents and rows.level == 0
        new = [g for g, of in enumerate(groups) if g not in kept and (len(of) > 1 or alone)]
        made, X_new, usage = parents_of(
            [[nodes[row] for row in groups[g]] for g in new],
            centroids(M, rows.X)[new],
            level,
            self.recipe,
            self.models,
            self.watch,
        )
        self.made += made
        self.usage += usage
        self.shares += [
            node.source_similarity
            for node in made
            if node.kind == "abstractive" and node.source_similarity is not None
        ]
        with self.watch("link", level):
            first = np.array([group[0] for group in groups], dtype=np.int64)
            X = rows.X[first]
            X[new] = X_new
            parents: list[Node | str] = [nodes[row] for row in first]  # passing up
            for g, parent in zip(new, made, strict=True):
                parents[g] = parent
            for g, node_id in kept.items():
                parents[g] = node_id
            _link(nodes, parents, M, level, earlier)
            if earlier:
                return earlier.rise(nodes, M, parents, X)
            current = [node for node in parents if isinstance(node, Node)]
            return current, level_rows(current, X, level, rows.heading[first])


def _link(
    nodes: Sequence[Node],
    parents: list[Node | str],
    M: Membership,
    level: int,
    earlier: EarlierTree | None,
) -> None:
    """Note each node's parents, strongest first, or the level that it passes up to.

    A node that would pass up, but has parents beside these groups, stays with those parents.
    """
    for i, node in enumerate(nodes):
        row = slice(M.indptr[i], M.indptr[i + 1])
        columns, weights = M.indices[row], M.data[row]
        beside = earlier.parents_beside(node) if earlier else {}
        passes = parents[columns[0]] is node
        if passes and not beside:
            node.level_max = level
            continue
        total = sum(beside.values())
        if passes:
            parents[columns[0]] = next(iter(beside))
            weight_of = {parent: weight / total for parent, weight in beside.items()}
        else:
            weight_of = defaultdict(float, beside)
            for g, share in zip(columns, ((1 - total) * weights).tolist(), strict=True):
                weight_of[_id(parents[g])] += share
        pairs = sorted(weight_of.items(), key=lambda pair: -pair[1])
        known = {parent for parent, _ in node.parents}
        if known != {parent for parent, _ in pairs}:
            node.parents = tuple(pairs)
        node.level_max = level - 1


def _id(parent: Node | str) -> str:
    return parent if isinstance(parent, str) else parent.id
