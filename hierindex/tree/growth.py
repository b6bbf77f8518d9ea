"""Growing a tree, part by part and then above the parts.

The parts are trees of documents, or pools of similar leaves. If there are too many leaves for
memory, they are stored in a file, read pool by pool, and written when all pools are grown.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np

from hierindex.core.arguments import Floats2d
from hierindex.core.membership import blocks
from hierindex.core.tree import Revised
from hierindex.errors import InputError
from hierindex.models.embedder import unit_vectors
from hierindex.node import Node
from hierindex.store.temporary_files import RowFile
from hierindex.tree.earlier import Cut, EarlierTree
from hierindex.tree.levels import GrownPart, Growth, Level, Parents, summed
from hierindex.tree.nodes import embedded_leaves, headings_between, level_rows, vectors_of
from hierindex.tree.recipe import Recipe
from hierindex.tree.titles import (
    Chunk,
    chunks_of,
    documents_alone,
    note_documents,
    note_names,
)

T = TypeVar("T")

Leaves = Sequence[Sequence[Node]]
"""The leaves of some pools, with the titles that their documents give them."""


GrowPools = Callable[[Iterable[Leaves]], Iterable[GrownPart]]
"""Grows the pools of each batch, in order."""


class Pools:
    """The leaves of a tree; they are stored in a file if there are more than `most`.

    Parameters
    ----------
    recipe : Recipe
    waiting : RowFile
    most : int
        Approximate number of leaves that may be in memory.
    """

    def __init__(self, recipe: Recipe, waiting: RowFile, most: int) -> None:
        self.chunks: dict[str, Chunk] = {}
        """The documents and sections of the leaves in the file, by id, in order."""
        self._recipe, self._waiting, self._most = recipe, waiting, most
        self._number: dict[str, int] = {}  # of each leaf in the file, by id
        self._parents: dict[str, Parents] = {}  # of each leaf that has any, by id

    def grown(self, parts: Iterable[GrownPart], grow: GrowPools) -> Iterator[GrownPart]:
        """Yield parts of leaves unchanged if there are few leaves, otherwise the grown pools.

        Parameters
        ----------
        parts : Iterable[GrownPart]
            Leaves without nodes above them.
        grow : GrowPools
        """
        few, n_leaves = list[GrownPart](), 0
        for part in parts:
            n_leaves += len(part.tops)
            few.append(part)
            while n_leaves > self._most and few:
                yield self._put(few.pop(0))
        yield from few
        if self.chunks:
            pools_of = self._recipe.across[0].pools(self._vectors())
            batches = [*parted([pool.tolist() for pool in pools_of], len, self._most)]
            leaves = ([[*map(self._leaf, pool)] for pool in pools] for pools in batches)
            for n_done, part in enumerate(grow(leaves), start=1):
                self._parents |= part.leaf_parents
                self._recipe.progress("grow pools", n_done, len(batches))
                yield part

    def order(self, tops: Sequence[Node]) -> list[int]:
        """Return the positions of the pools' top nodes, sorted by their leaves."""
        leaves = [[self._number[i] for i in node.children or [node.id]] for node in tops]
        return sorted(range(len(tops)), key=leaves.__getitem__)

    def with_leaves(self, nodes: Sequence[Node]) -> Iterator[Node]:
        """Yield all leaves, in the order of the documents of the index, and then the other nodes.

        The leaves without parents are among the nodes.
        """
        alone = {node.id: node for node in nodes if node.level == 0}
        for leaf_id, number in self._number.items():
            if leaf_id in self._parents:
                yield replace(self._leaf(number), parents=self._parents[leaf_id])
            else:
                yield alone[leaf_id]
        yield from (node for node in nodes if node.level > 0)

    def text_of(self, node_id: str) -> str:
        """Return the text of a leaf, given its id."""
        return str(self._waiting[self._number[node_id]]["text"])

    def _put(self, part: GrownPart) -> GrownPart:
        """Store leaves in the file, with the titles from their documents; return the others."""
        leaves, chunks = part.tops, chunks_of(part.tops)
        note_documents(leaves, documents_alone(leaves), chunks)
        self._waiting.add(leaves)
        self._number |= {leaf.id: len(self._number) + i for i, leaf in enumerate(leaves)}
        self.chunks |= chunks
        return GrownPart(replace(part.growth, nodes=[], statistics=[]), (), part.X[:0])

    def _leaf(self, number: int) -> Node:
        return self._waiting.node(number)

    def _vectors(self) -> Floats2d:
        """Return the unit vectors of all leaves, (n_leaves, n_dims)."""
        X = np.empty((len(self._waiting), len(self._waiting.vector(0))), np.float32)
        for i in range(len(X)):
            X[i] = self._waiting.vector(i)
        for block in blocks(X):
            block[:] = unit_vectors(block)
        return X


def grow_pools(recipe: Recipe, pools: Leaves) -> GrownPart:
    """Group pools of leaves, and write the parents of their groups.

    Parameters
    ----------
    recipe : Recipe
    pools : Leaves
    """
    growth, leaves = Growth(), [*chain(*pools)]
    ends = np.cumsum([len(pool) for pool in pools])
    grouper = partial(recipe.across[0].of_pools, pools=np.split(np.arange(ends[-1]), ends[:-1]))
    rows = level_rows(leaves, vectors_of(leaves), 0)
    top = growth.grow(recipe, Level(leaves, rows), [grouper], most=1)
    growth.nodes = [*top.nodes]
    parents = {leaf.id: leaf.parents for leaf in leaves if leaf.parents}
    return GrownPart(growth, top.nodes, top.rows.X, leaf_parents=parents)


def parted(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Yield items in order, in parts of at least one item and at most a total size.

    >>> [*parted(["ab", "abc", "a" * 9, "a"], len, 5)]
    [['ab', 'abc'], ['aaaaaaaaa'], ['a']]
    """
    part, total = list[T](), 0
    for item in items:
        if part and total + size(item) > most:
            yield part
            part, total = [], 0
        part.append(item)
        total += size(item)
    if part:
        yield part


Parts = Iterable[Sequence[Node]]
"""Chunks of all documents, those of one document in one part."""


class Sink(NamedTuple):
    """Where finished nodes, and the leaves of pools, are written during a build.

    `finished` receives nodes that will not change any more, and `waiting` the leaves of pools if
    there are more than `most`.
    """

    finished: Callable[[Iterable[Node]], None]
    waiting: RowFile
    most: int


def grow_documents(recipe: Recipe, chunks: Sequence[Node], *, finish: bool) -> GrownPart:
    """Grow the trees of documents over all their chunks, which are not modified.

    Parameters
    ----------
    recipe : Recipe
    chunks : Sequence[Node]
    finish : bool
        Whether to finish nodes that the levels above do not change; otherwise no node is finished.
    """
    growth = Growth()
    leaves, X = embedded_leaves(chunks, recipe, growth.watch)
    growth.nodes += leaves
    rows = level_rows(leaves, X, 0, headings_between(leaves))
    top = growth.grow(recipe, Level(leaves, rows), recipe.within)
    with growth.watch("link"):
        n_roots = Counter(node.documents[0] for node in growth.nodes if not node.parents)
        done = {document for document, n in n_roots.items() if n == 1 and finish}
        whole = [node for node in growth.nodes if node.documents[0] in done]
        note_documents(whole, done, chunks_of(whole))
        below = [node for node in whole if node.parents]
        growth.nodes = [d for d in growth.nodes if d.documents[0] not in done or not d.parents]
    return GrownPart(growth, top.nodes, top.rows.X, below, done)


def grow_above(
    recipe: Recipe,
    parts: Iterable[GrownPart],
    earlier: EarlierTree | None = None,
    aside: Sink | None = None,
    grow: GrowPools | None = None,
) -> Growth:
    """Grow the levels above the parts of a tree, which are trees of documents or pools of leaves.

    If finished nodes are written to a `Sink`, only two kinds of nodes stay in memory: those above
    documents or pools, and all nodes of documents without a single root. By default, pools are
    grown in this process, one after the other.
    """
    growth, kept, ids = Growth(), list[GrownPart](), set[str]()
    pools = None
    if aside and not (earlier or recipe.within):
        pools = Pools(recipe, aside.waiting, aside.most)
        parts = pools.grown(parts, grow or partial(map, partial(grow_pools, recipe)))
    for part in parts:
        growth.add(part.growth)
        if part.tops:
            kept.append(replace(part, finished=()))
        if earlier:
            ids.update(node.id for node in chain(part.growth.nodes, part.finished))
        if aside:
            with growth.watch("write"):
                aside.finished(part.finished)
    if pools and not pools.chunks:  # all leaves are in memory
        pools = None
    with growth.watch("link"):
        level, height = _lowest(recipe, growth, kept, ids, earlier, pools)
    across = recipe.across
    last = growth.grow(recipe, level, [*map(Revised, across)] if earlier else across)
    # The highest nodes of the parts are among those that are grouped above them.
    below = summed([part.growth.statistics for part in kept])[:-1]
    growth.statistics = [*below, *growth.statistics]
    with growth.watch("link"):
        if earlier and isinstance(last, Cut):
            earlier.finish(last, ids.union(node.id for node in growth.nodes))
        done = set[str]().union(*(part.done for part in kept))
        growth.nodes = _noted(growth.nodes, done, height, earlier, pools)
        growth.gone = earlier.gone if earlier else frozenset()
    if aside:
        with growth.watch("write"):
            aside.finished(pools.with_leaves(growth.nodes) if pools else growth.nodes)
        growth.nodes = []
    return growth


def _lowest(
    recipe: Recipe,
    growth: Growth,
    parts: Sequence[GrownPart],
    ids: Set[str],
    earlier: EarlierTree | None,
    pools: Pools | None,
) -> tuple[Level, int]:
    """Return the lowest level above the parts, and the number of levels below it.

    If an earlier tree is updated, `ids` are those of all nodes of the parts, and the level is a cut
    of that tree.
    """
    if len(widths := {part.X.shape[1] for part in parts}) > 1:
        raise InputError(f"Embeddings must have the same dimension, got {sorted(widths)}.")
    X = np.concatenate([part.X for part in parts] or [np.zeros((0, 1))])
    tops = [node for part in parts for node in part.tops]
    height = max((len(part.growth.statistics) - 1 for part in parts), default=0)
    if pools:
        order = pools.order(tops)
        X, tops = X[order], [tops[i] for i in order]
        growth.nodes = [*tops]
    if earlier:
        cut = earlier.replaced(tops, ids, height, is_grouped=bool(recipe.within))
        height = cut.level + cut.shift
    for node in tops:
        node.level_max = height
    if earlier and recipe.across:
        return cut.around(tops, X), height
    return Level(tops, level_rows(tops, X, height)), height


def _noted(
    made: list[Node],
    done: Set[str],
    height: int,
    earlier: EarlierTree | None,
    pools: Pools | None,
) -> list[Node]:
    """Return all nodes after setting the fields that depend on the whole tree.

    The fields of nodes of the documents `done` are set already.
    """
    nodes, documents = made, documents_alone(made)
    if earlier:
        documents |= documents_alone(d for d in earlier.changed if d.level > height)
        nodes = earlier.among_related(made, documents - done)
    chunks, text_of = (pools.chunks, pools.text_of) if pools else (chunks_of(nodes), None)
    note_documents(nodes, documents - done, chunks, text_of)
    note_names(nodes, {node.id for node in made} if earlier else None)
    return [*made, *(earlier.changed if earlier else ())]
