"""Levels of nodes that grow one above the other, in a part of a tree or in all of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import numpy as np

from hierindex.core.arguments import Floats2d
from hierindex.core.membership import Membership, Rows, centroids, groups_of
from hierindex.core.tree import Grouper, grow_tree
from hierindex.models.record import Usage
from hierindex.node import Grounding, Node
from hierindex.progress import Stopwatch
from hierindex.tree.nodes import level_rows, parents_of
from hierindex.tree.recipe import Recipe

Parents = tuple[tuple[str, float], ...]
"""Ids of the parents of a node with weights; see `Node`."""


@dataclass(frozen=True)
class Level:
    """The nodes of a level, and their rows, which are to be grouped."""

    nodes: Sequence[Node]
    rows: Rows

    def kept(self, M: Membership) -> Mapping[int, str]:
        """Return the ids of earlier parents that stay unchanged, by the column of their group."""
        return {}

    def parents_beside(self, node: Node) -> Mapping[str, float]:
        """Return the node's parents, with weights, whose groups are not grouped again."""
        return {}

    def above(self, M: Membership, parents: Sequence[Node | str], X: Floats2d) -> "Level":
        """Return the next higher level.

        Parameters
        ----------
        M : (n_nodes, n_groups) csr_array
        parents : Sequence[Node or str]
            The parent of each group. A node that passes up is its own parent; an id means a parent
            that is kept.
        X : (n_groups, n_dims) unit vectors
        """
        heading = self.rows.heading[[group[0] for group in groups_of(M)]]
        nodes = [parent for parent in parents if isinstance(parent, Node)]
        return Level(nodes, level_rows(nodes, X, self.rows.level + 1, heading))


@dataclass(frozen=True)
class LevelStatistics:
    """Numbers of nodes and tokens of a level; nodes that pass up to it are included."""

    level: int
    nodes: int
    tokens: int

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Count the rows of a level."""
        return cls(rows.level, len(rows), int(rows.n_tokens.sum()))


def summed(parts: Sequence[Sequence[LevelStatistics]]) -> list[LevelStatistics]:
    """Return the statistics of the levels of all parts together, the lowest first.

    The highest nodes of a part with fewer levels pass up.
    """
    levels = []
    for level in range(max(map(len, parts), default=0)):
        same = [part[min(level, len(part) - 1)] for part in parts]
        n_nodes, n_tokens = sum(each.nodes for each in same), sum(each.tokens for each in same)
        levels.append(LevelStatistics(level, n_nodes, n_tokens))
    return levels


@dataclass
class Growth:
    """The nodes of a tree or of a part of it, and what it cost to grow them.

    Attributes
    ----------
    nodes : list[Node]
        Embedded, level by level, without those that are written already.
    gone : Set[str]
        Ids of earlier nodes that the tree no longer has.
    statistics : list[LevelStatistics]
        Of the levels whose nodes were grouped, the lowest first.
    usage : Usage
    grounding : Grounding
        Check of all summaries that a model wrote.
    watch : Stopwatch
    """

    nodes: list[Node] = field(default_factory=list)
    gone: Set[str] = frozenset()
    statistics: list[LevelStatistics] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    grounding: Grounding = field(default_factory=Grounding)
    watch: Stopwatch = field(default_factory=Stopwatch)

    def add(self, part: "Growth") -> None:
        """Add the nodes and the cost of a part."""
        self.nodes += part.nodes
        self.usage += part.usage
        self.grounding += part.grounding
        self.watch.add(part.watch.seconds)

    def grow(
        self, recipe: Recipe, level: Level, groupers: Sequence[Grouper], most: int | None = None
    ) -> Level:
        """Grow levels above a level until the groupers are done, and return the highest one.

        `most` is the highest level to grow, that of the settings by default.
        """

        def above(rows: Rows, M: Membership) -> Rows:
            nonlocal level
            parents, X = self._parents(recipe, level, M)
            level = level.above(M, parents, X)
            self.statistics.append(LevelStatistics.of(level.rows))
            return level.rows

        most = most or recipe.settings.max_levels
        timed = [partial(self._grouped, recipe, grouper) for grouper in groupers]
        most = None if most is None else most - level.rows.level
        self.statistics.append(LevelStatistics.of(level.rows))
        grow_tree(level.rows, timed, above, max_levels=most)
        return level

    def _grouped(self, recipe: Recipe, grouper: Grouper, rows: Rows) -> Membership | None:
        level = rows.level + 1
        with self.watch("cluster"):
            recipe.progress(f"cluster level {level}", 0, 1)
            M = grouper(rows)
            recipe.progress(f"cluster level {level}", 1, 1)
            return M

    def _parents(
        self, recipe: Recipe, below: Level, M: Membership
    ) -> tuple[list[Node | str], Floats2d]:
        """Return the parent of each group with its unit vector, (n_groups, n_dims), and link them.

        A group of one passes up unchanged. An id stands for a parent that stays as it was.
        """
        nodes, rows, kept = below.nodes, below.rows, below.kept(M)
        level, groups = rows.level + 1, groups_of(M)
        alone = recipe.settings.method == "document" and rows.level == 0
        new = [g for g, of in enumerate(groups) if g not in kept and (len(of) > 1 or alone)]
        made, X_new, usage = parents_of(
            [[nodes[row] for row in groups[g]] for g in new],
            centroids(M, rows.X)[new],
            level,
            recipe,
            self.watch,
        )
        self.nodes += made
        self.usage += usage
        self.grounding = sum(filter(None, (node.grounding for node in made)), self.grounding)
        with self.watch("link"):
            first = np.array([group[0] for group in groups], dtype=np.int64)
            X = rows.X[first]
            X[new] = X_new
            replaced: dict[int, Node | str] = {**dict(zip(new, made, strict=True)), **kept}
            parents = [replaced.get(g, nodes[row]) for g, row in enumerate(first)]
            _link(below, parents, M)
        return parents, X


@dataclass(frozen=True)
class GrownPart:
    """A part of a tree, in the form that the levels above need.

    `growth` has the nodes that may still change. `tops` are the highest of them, and `X`, (n_tops,
    n_dims), their unit vectors. `finished` are lower nodes that will not change any more. All nodes
    of the documents `done` are finished, except their roots. `leaf_parents` are the parents of the
    leaves that are stored elsewhere, by id.
    """

    growth: Growth
    tops: Sequence[Node]
    X: Floats2d
    finished: Sequence[Node] = ()
    done: Set[str] = frozenset()
    leaf_parents: Mapping[str, Parents] = field(default_factory=dict)


def _link(below: Level, parents: list[Node | str], M: Membership) -> None:
    """Set each node's parents, strongest first, or the level to which it passes up.

    A node that would pass up but has parents outside of these groups keeps those parents.
    """
    level = below.rows.level + 1
    ids = [parent if isinstance(parent, str) else parent.id for parent in parents]
    for i, node in enumerate(below.nodes):
        row = slice(M.indptr[i], M.indptr[i + 1])
        columns, weights = M.indices[row], M.data[row]
        others = below.parents_beside(node)
        passes = parents[columns[0]] is node
        if passes and not others:
            node.level_max = level
            continue
        total = sum(others.values())
        if passes:
            parents[columns[0]] = next(iter(others))
            weight_of = {parent: weight / total for parent, weight in others.items()}
        else:
            weight_of = defaultdict(float, others)
            for g, share in zip(columns, ((1 - total) * weights).tolist(), strict=True):
                weight_of[ids[g]] += share
        if dict(node.parents).keys() != weight_of.keys():
            node.parents = tuple(sorted(weight_of.items(), key=lambda pair: -pair[1]))
        node.level_max = level - 1
