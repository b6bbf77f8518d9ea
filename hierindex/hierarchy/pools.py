"""Pools of similar leaves, which are grown one after the other if leaves are too many for memory.

Leaves wait in a file, are read pool by pool, and are written when all pools are grown.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from hierindex.cache.texts import TextCache
from hierindex.core.membership import Floats2d, Ints1d
from hierindex.core.rows import blocks
from hierindex.embed.embedder import unit_vectors
from hierindex.hierarchy.grown_parts import GrownPart
from hierindex.hierarchy.level_rows import level_rows
from hierindex.hierarchy.levels import Levels, note_documents, note_models
from hierindex.hierarchy.nodes import Draft
from hierindex.hierarchy.recipe import Recipe, Work
from hierindex.hierarchy.similar import vectors_of
from hierindex.hierarchy.titles import note_phrases
from hierindex.hierarchy.whole_documents import Chunk, chunks_of, documents_alone
from hierindex.store.leaf_file import LeafFile
from hierindex.store.rows import Row, parent_columns

GrowPools = Callable[[Sequence[Sequence[Draft]]], GrownPart]
"""Grows pools of leaves."""


class Grouped(NamedTuple):
    """The parents of a leaf with their weights, see `NodeRecord`, and its title."""

    parents: tuple[tuple[str, float], ...]
    title: str


class Pools:
    """The leaves of a tree, which are in a file if there are more than `most`.

    Parameters
    ----------
    recipe : Recipe
    waiting : LeafFile
    most : int
        Number of leaves, about, that may be in memory.
    """

    def __init__(self, recipe: Recipe, waiting: LeafFile, most: int) -> None:
        self.chunks: dict[str, Chunk] = {}
        """What the leaves in the file say of their documents, by id, in order."""
        self._recipe, self._waiting, self._most = recipe, waiting, most
        self._grouped: dict[int, Grouped] = {}  # the leaves that have parents, by number

    def grown(self, parts: Iterable[GrownPart], grow: GrowPools) -> Iterator[GrownPart]:
        """Yield parts of leaves as they are if these are few, or else pools of all leaves.

        Parameters
        ----------
        parts : Iterable[GrownPart]
            Leaves with nothing above them.
        grow : GrowPools
        """
        few, n_leaves = list[GrownPart](), 0
        for part in parts:
            n_leaves += len(part.tops)
            few.append(part)
            del part  # or it would stay until the end
            while n_leaves > self._most and few:
                yield self._put(few.pop(0))
        yield from few
        if self.chunks:
            pools = self._recipe.across[0].pools(self._vectors())
            for some in _together(pools, self._most):
                yield self._grow([pool.tolist() for pool in some], grow)

    def order(self, tops: Sequence[Draft]) -> list[int]:
        """Return the places of the nodes of all pools in the order of their leaves."""
        number = {node_id: i for i, node_id in enumerate(self.chunks)}
        leaves = [[number[i] for i in draft.children or [draft.id]] for draft in tops]
        return sorted(range(len(tops)), key=leaves.__getitem__)

    def rows(self, alone: Mapping[str, Draft]) -> Iterator[Row]:
        """Yield the rows of all leaves in order, given those that have passed up.

        An index has its documents in this order.
        """
        for number, leaf_id in enumerate(self.chunks):
            if leaf_id in alone:
                yield alone[leaf_id].row()
            else:
                parents, title = self._grouped[number]
                yield self._waiting[number] | parent_columns(parents) | {"title": title}

    def _put(self, part: GrownPart) -> GrownPart:
        """Put leaves into the file, with the titles that documents give them; return the rest."""
        leaves, chunks = part.tops, chunks_of(part.tops)
        note_documents(leaves, documents_alone(leaves), chunks)
        note_models(leaves, self._recipe)
        for leaf in leaves:
            self._waiting.add(leaf.row())
        self.chunks |= chunks
        return replace(part, left=(), tops=(), X=part.X[:0], tallies=())

    def _grow(self, pools: Sequence[Sequence[int]], grow: GrowPools) -> GrownPart:
        leaves = list(map(self._leaves, pools))
        part = grow(leaves)
        for number, leaf in zip(chain(*pools), chain(*leaves), strict=True):
            if leaf.record.parents:
                self._grouped[number] = Grouped(leaf.record.parents, leaf.record.title)
        return part

    def _leaves(self, numbers: Iterable[int]) -> list[Draft]:
        return [Draft.of(self._waiting[number]) for number in numbers]

    def _vectors(self) -> Floats2d:
        """Return the unit vectors of all leaves, (n_leaves, n_dims)."""
        X = self._waiting.vectors()
        for block in blocks(X):
            block[:] = unit_vectors(block)
        return X


def grow_pools(
    pools: Sequence[Sequence[Draft]], recipe: Recipe, memory: TextCache | None
) -> Generator[Work, Any, GrownPart]:
    """Group pools of leaves, and write the parents of their groups.

    Parameters
    ----------
    pools : Sequence[Sequence[Draft]]
        Leaves with the titles that their documents give them.
    recipe : Recipe
    memory : TextCache or None
        Cache that summaries are read from and written to.
    """
    levels = Levels(replace(recipe, max_levels=1), memory)
    leaves = [leaf for pool in pools for leaf in pool]
    ends = np.cumsum([len(pool) for pool in pools])
    grouper = partial(recipe.across[0].of_pools, pools=np.split(np.arange(ends[-1]), ends[:-1]))
    rows = level_rows(leaves, vectors_of(leaves), 0)
    tops, rows = yield from levels.grow(leaves, rows, [grouper])
    with levels.watch("cluster", None):
        tallies = levels.tallies()
    with levels.watch("link", None):
        note_phrases([leaf for leaf in leaves if leaf.record.parents])
    return GrownPart(
        left=tops,
        tops=tops,
        X=rows.X,
        finished=(),
        done=frozenset(),
        tallies=tallies,
        usage=levels.usage,
        shares=levels.shares,
        timings=levels.watch.timings,
    )


def _together(pools: Iterable[Ints1d], most: int) -> Iterator[list[Ints1d]]:
    """Yield pools that hold at most so many rows together, or one that holds more."""
    some, n_rows = list[Ints1d](), 0
    for pool in pools:
        if some and n_rows + len(pool) > most:
            yield some
            some, n_rows = [], 0
        some.append(pool)
        n_rows += len(pool)
    yield some
