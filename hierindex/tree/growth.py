"""The growth of a tree, part by part and then above the parts."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import NamedTuple

import numpy as np

from hierindex.core.arrays import Floats2d
from hierindex.core.revision import Revised
from hierindex.core.statistics import LevelStatistics, Tally, added
from hierindex.errors import InputError
from hierindex.models.record import Usage
from hierindex.node import Node
from hierindex.progress import Stopwatch, Timing
from hierindex.store.rows import Row, row_of
from hierindex.store.waiting import LeafFile
from hierindex.tree.arrays import headings_between, level_rows, vector_of
from hierindex.tree.earlier import EarlierTree
from hierindex.tree.leaves import embedded_leaves
from hierindex.tree.levels import GrownPart, Levels
from hierindex.tree.pools import GrownPools, GrowPools, PoolRows, Pools, grow_pools
from hierindex.tree.recipe import Models, Recipe
from hierindex.tree.titles import chunks_of, documents_alone, note_documents, note_phrases


@dataclass(frozen=True)
class Grown:
    """A finished tree, or what an update changes of it.

    `nodes` are embedded, level by level; none if they were set aside.
    `gone` are the ids of the earlier nodes that the tree no longer has. `made` are the ids of all
    nodes that were grown in place of earlier ones, also of those that were there before.
    `source_similarity` is the mean of the summaries that a model wrote, None if it wrote none.
    `statistics` are of the nodes that were grouped.
    """

    nodes: list[Node]
    gone: frozenset[str]
    made: frozenset[str]
    usage: Usage
    source_similarity: float | None
    statistics: list[LevelStatistics]
    timings: list[Timing]


Parts = Iterable[Sequence[Node]]
"""Chunks of all documents, those of one document in one part."""

Finished = Callable[[Iterable[Row]], None]
"""Takes rows of nodes that nothing changes any more."""


class Aside(NamedTuple):
    """Where finished nodes, and the leaves of pools, are written during a build.

    `finished` takes nodes that nothing changes any more, and `waiting` the leaves of pools if
    there are more than `most`.
    """

    finished: Finished
    waiting: LeafFile
    most: int


@dataclass(frozen=True)
class Grower:
    """Grows trees by a recipe with models."""

    recipe: Recipe
    models: Models

    def grow(
        self, parts: Parts, earlier: EarlierTree | None = None, aside: Aside | None = None
    ) -> Grown:
        """Grow a tree over chunks; see `Hierarchy.grow`."""
        documents = (self.documents(chunks, finish=aside is not None) for chunks in parts)
        return self.above(documents, earlier, aside)

    def documents(self, chunks: Sequence[Node], *, finish: bool) -> GrownPart:
        """Grow the trees of documents by themselves; see `grow_documents`."""
        return grow_documents(chunks, self.recipe, self.models, finish=finish)

    def pools(self, pools: PoolRows) -> GrownPools:
        """Group pools of leaves; see `grow_pools`."""
        return grow_pools(pools, self.recipe, self.models)

    def above(
        self,
        parts: Iterable[GrownPart],
        earlier: EarlierTree | None = None,
        aside: Aside | None = None,
        grow: GrowPools | None = None,
    ) -> Grown:
        """Grow the levels above the trees of documents, or above leaves.

        By default, this process grows pools one after the other.
        """
        pools = None
        if aside and not (earlier or self.recipe.within):
            pools = Pools(self.recipe, aside.waiting, aside.most, self.models.progress)
            parts = pools.grown(parts, grow or partial(map, self.pools))
        growth = Growth(self.recipe, self.models, earlier, aside and aside.finished, pools)
        deque(map(growth.add, parts), maxlen=0)  # a loop would keep the part before
        growth.above_parts()
        return growth.finished()


def grow_documents(
    chunks: Sequence[Node], recipe: Recipe, models: Models, *, finish: bool
) -> GrownPart:
    """Grow the trees of documents over all their chunks, which are not modified.

    Parameters
    ----------
    chunks : Sequence[Node]
    recipe : Recipe
    models : Models
    finish : bool
        Whether to finish the nodes that the levels above do not change; else all are left.
    """
    levels = Levels(recipe, models)
    leaves, X = embedded_leaves(chunks, recipe, models, levels.watch)
    levels.made += leaves
    rows = level_rows(leaves, X, 0, headings_between(leaves))
    tops, rows = levels.grow(leaves, rows, recipe.within)
    with levels.watch("link", None):
        done = _of_one_root(levels.made) if finish else set()
        whole = [node for node in levels.made if node.documents[0] in done]
        note_documents(whole, done, chunks_of(whole))
        below = [node for node in whole if not _is_top(node)]
        note_phrases(below)
        left = [d for d in levels.made if d.documents[0] not in done or _is_top(d)]
    return levels.part(tops, rows, left, below, done)


def _is_top(node: Node) -> bool:
    return not node.parents


def _of_one_root(nodes: Sequence[Node]) -> set[str]:
    n_roots = Counter(node.documents[0] for node in nodes if _is_top(node))
    return {document for document, n in n_roots.items() if n == 1}


class Growth:
    """A tree while it grows from its parts: trees of documents, or pools of leaves.

    If finished nodes are set aside, memory is needed for the nodes above documents or pools, and
    for all nodes of documents without one root.

    Parameters
    ----------
    recipe : Recipe
    models : Models
    earlier : EarlierTree, optional
        The tree to change.
    aside : Finished, optional
        Takes nodes that are finished.
    pools : Pools, optional
        Have the leaves.
    """

    def __init__(
        self,
        recipe: Recipe,
        models: Models,
        earlier: EarlierTree | None = None,
        aside: Finished | None = None,
        pools: Pools | None = None,
    ) -> None:
        self._recipe, self._earlier, self._aside, self._pools = recipe, earlier, aside, pools
        self._levels = Levels(recipe, models, earlier)  # above the parts
        self._ids: set[str] = set()  # also of finished nodes, if there is an earlier tree
        self._done: set[str] = set()  # documents of the finished nodes
        self._tops: list[Node] = []  # of the parts
        self._vectors: list[Floats2d] = []  # theirs, by part
        self._tallies: list[Sequence[Tally]] = []  # by part
        self._part_levels = 0  # of the parts, above the chunks

    @property
    def watch(self) -> Stopwatch:
        """What the growth takes."""
        return self._levels.watch

    @property
    def _pooled(self) -> Pools | None:
        """The pools, if leaves wait for them."""
        return self._pools if self._pools and self._pools.chunks else None

    def add(self, part: GrownPart) -> None:
        """Add a part, whose finished nodes are set aside."""
        levels = self._levels
        levels.made += part.left
        levels.usage += part.usage
        levels.shares += part.shares
        levels.watch.add(part.timings)
        if part.tallies:
            self._tallies.append(part.tallies)
        self._tops += part.tops
        self._done |= part.done
        if part.tops:
            self._vectors.append(part.X)
            _share(part.X, part.tops)
        if len(widths := {X.shape[1] for X in self._vectors}) > 1:
            raise InputError(f"Embeddings must have one dimension, got {sorted(widths)}.")
        if self._earlier:
            self._ids.update(node.id for node in part.left)
            self._ids.update(node.id for node in part.finished)
        if self._aside:
            with self.watch("write", None):
                self._aside(map(row_of, part.finished))

    def above_parts(self) -> None:
        """Grow the levels above the parts, of an earlier tree among them."""
        with self.watch("link", None):
            X = np.concatenate(self._vectors) if self._vectors else np.zeros((0, 1))
            self._vectors = []
            if pools := self._pooled:
                order = pools.order(self._tops)
                X, self._tops = X[order], [self._tops[i] for i in order]
                self._levels.made = [*self._tops]
            _share(X, self._tops)
            earlier, recipe, tops = self._earlier, self._recipe, self._tops
            level = max(map(len, self._tallies), default=1) - 1
            if earlier:
                is_grouped = bool(recipe.within)
                level = earlier.replace_documents(tops, self._ids, level, is_grouped=is_grouped)
            self._part_levels = level
            for node in tops:
                node.level_max = level
            if earlier and recipe.across:
                nodes, rows = earlier.around(tops, X, level)
            else:
                nodes, rows = tops, level_rows(tops, X, level)
        groupers = [Revised(each) for each in recipe.across] if earlier else recipe.across
        self._levels.grow(nodes, rows, groupers)

    def finished(self) -> Grown:
        """Return the tree; its nodes are set aside if the growth can do so."""
        with self.watch("cluster", None):
            statistics = [tally.statistics() for tally in self._all_tallies()]
        with self.watch("link", None):
            nodes = self._noted()
        if self._aside:
            with self.watch("write", None):
                self._aside(self._rows(nodes))
        shares, earlier = self._levels.shares, self._earlier
        return Grown(
            [] if self._aside else nodes,
            frozenset(earlier.gone if earlier else ()),
            frozenset(self._ids),
            self._levels.usage,
            round(fmean(shares), 3) if shares else None,
            statistics,
            self.watch.timings,
        )

    def _noted(self) -> list[Node]:
        """Return all nodes, which are not kept, after noting what depends on all of the tree."""
        earlier, made = self._earlier, self._levels.made
        nodes, documents = made, documents_alone(made)
        if earlier:
            self._ids.update(node.id for node in made)
            earlier.finish(self._ids)
            documents |= documents_alone(d for d in earlier.changed if d.level > self._part_levels)
            nodes = earlier.among_related(made, documents - self._done)
        chunks = self._pooled.chunks if self._pooled else chunks_of(nodes)
        note_documents(nodes, documents - self._done, chunks)
        note_phrases(sorted(nodes, key=lambda node: node.level))
        self._levels.made, self._tops = [], []
        return [*made, *(earlier.changed if earlier else ())]

    def _rows(self, nodes: list[Node]) -> Iterator[Row]:
        """Yield the rows of nodes, of which the list keeps none."""
        if pools := self._pooled:
            alone = {node.id: node for node in nodes if node.level == 0}
            nodes = [node for node in nodes if node.level > 0]
            yield from pools.rows(alone)
        nodes.reverse()
        while nodes:
            yield row_of(nodes.pop())

    def _all_tallies(self) -> list[Tally]:
        """Return the tallies of all levels; of a tree that is changed, of what was grouped."""
        within, across = added(self._tallies), self._levels.tallies()
        if within:  # the highest nodes of parts stand among those that they are grouped with
            top = replace(within.pop(), level=across[0].level)
            across[0] = replace(top, nodes=across[0].nodes, tokens=across[0].tokens)
        return [*within, *across]


def _share(X: Floats2d, nodes: Sequence[Node]) -> None:
    """Let vectors be the rows of a matrix, which is in memory, instead of copies."""
    for node, x in zip(nodes, X, strict=True):
        if np.array_equal(vector_of(node), x):
            node.vector = x
