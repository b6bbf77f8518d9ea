"""Pools of similar leaves, grown one after the other if there are too many leaves for memory.

Leaves are stored in a file, read pool by pool, and written when all pools are grown.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np

from hierindex.core.arguments import Floats2d
from hierindex.core.rows import blocks
from hierindex.models.embedder import unit_vectors
from hierindex.node import Node
from hierindex.store.rows import Row, node_of, parent_columns, row_of
from hierindex.store.temporary_files import RowFile
from hierindex.tree.leaves import level_rows, vectors_of
from hierindex.tree.levels import GrownPart, Level, Levels
from hierindex.tree.recipe import Recipe
from hierindex.tree.titles import (
    Chunk,
    chunks_of,
    documents_alone,
    note_documents,
)

T = TypeVar("T")

PoolRows = Sequence[Sequence[Row]]
"""Rows of the leaves of some pools, with the titles that their documents give them."""


class GrownPools(NamedTuple):
    """The nodes grown over pools, and the parents of each leaf with their weights.

    A leaf without parents is one of the grown nodes.
    """

    part: GrownPart
    parents: Sequence[Sequence[tuple[str, float]]]


GrowPools = Callable[[Iterable[PoolRows]], Iterable[GrownPools]]
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
        self._parents: dict[int, Sequence[tuple[str, float]]] = {}  # by number of the leaf

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
            grown = zip(batches, grow(map(self._rows_of, batches)), strict=True)
            for n_done, (pools, (part, parents)) in enumerate(grown, start=1):
                self._parents.update(zip(chain(*pools), parents, strict=True))
                self._recipe.progress("grow pools", n_done, len(batches))
                yield part

    def order(self, tops: Sequence[Node]) -> list[int]:
        """Return the positions of the pools' top nodes, sorted by their leaves."""
        number = {node_id: i for i, node_id in enumerate(self.chunks)}
        leaves = [[number[i] for i in node.children or [node.id]] for node in tops]
        return sorted(range(len(tops)), key=leaves.__getitem__)

    def rows(self, alone: Mapping[str, Node]) -> Iterator[Row]:
        """Yield the rows of all leaves in order; `alone` has the leaves without parents.

        The documents of an index are in this order.
        """
        for number, leaf_id in enumerate(self.chunks):
            if parents := self._parents[number]:
                yield self._waiting[number] | parent_columns(parents)
            else:
                yield row_of(alone[leaf_id])

    def _put(self, part: GrownPart) -> GrownPart:
        """Store leaves in the file, with the titles from their documents; return the others."""
        leaves, chunks = part.tops, chunks_of(part.tops)
        note_documents(leaves, documents_alone(leaves), chunks)
        self._waiting.add(map(row_of, leaves))
        self.chunks |= chunks
        return replace(part, left=(), tops=(), X=part.X[:0], statistics=())

    def _rows_of(self, pools: Sequence[Sequence[int]]) -> PoolRows:
        return [[*map(self._waiting.__getitem__, pool)] for pool in pools]

    def _vectors(self) -> Floats2d:
        """Return the unit vectors of all leaves, (n_leaves, n_dims)."""
        X = self._waiting.vectors()
        for block in blocks(X):
            block[:] = unit_vectors(block)
        return X


def grow_pools(recipe: Recipe, pools: PoolRows) -> GrownPools:
    """Group pools of leaves, and write the parents of their groups.

    Parameters
    ----------
    recipe : Recipe
    pools : PoolRows
    """
    levels = Levels(recipe)
    nodes = [[*map(node_of, pool)] for pool in pools]
    leaves = [*chain(*nodes)]
    ends = np.cumsum([len(pool) for pool in nodes])
    grouper = partial(recipe.across[0].of_pools, pools=np.split(np.arange(ends[-1]), ends[:-1]))
    rows = level_rows(leaves, vectors_of(leaves), 0)
    top = levels.grow(Level(leaves, rows), [grouper], most=1)
    return GrownPools(levels.part(top, top.nodes), [leaf.parents for leaf in leaves])


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
