"""The growth of a tree by a hierarchy's recipe and models, part by part."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from hierindex.hierarchy.earlier import EarlierTree
from hierindex.hierarchy.grown_parts import GrownPart, grow_documents
from hierindex.hierarchy.growth import Aside, Grown, Growth, Parts
from hierindex.hierarchy.pools import GrownPools, GrowPools, PoolRows, Pools, grow_pools
from hierindex.hierarchy.recipe import Models, Recipe
from hierindex.node import Node


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
