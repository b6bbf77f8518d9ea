"""The models of a hierarchy, which answer the requests of its trees while they grow."""

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from llama_index.core.schema import BaseNode

from hierindex.cache.texts import TextCache
from hierindex.cache.vectors import VectorCache
from hierindex.embed.embedder import Embedder
from hierindex.hierarchy.earlier import EarlierTree
from hierindex.hierarchy.grown_parts import GrownPart, grow_documents
from hierindex.hierarchy.growth import Aside, Grown, Growth, Parts
from hierindex.hierarchy.pools import GrownPools, GrowPools, PoolRows, Pools, grow_pools
from hierindex.hierarchy.recipe import Embed, Recipe, Summarize, Work
from hierindex.progress import Progress
from hierindex.summarize.summary import Resources, Summarizer

T = TypeVar("T")


@dataclass(frozen=True)
class Grower:
    """Grows trees by a recipe with models, which share their caches, limits and usage.

    Attributes
    ----------
    recipe : Recipe
    embedder : Embedder
    summarizer : Summarizer
    resources : Resources
    vectors : VectorCache or None
    texts : TextCache or None
        Cache that summaries are read from and written to.
    progress : Progress
    """

    recipe: Recipe
    embedder: Embedder
    summarizer: Summarizer
    resources: Resources
    vectors: VectorCache | None
    texts: TextCache | None
    progress: Progress

    def grow(
        self, parts: Parts, earlier: EarlierTree | None = None, aside: Aside | None = None
    ) -> Grown:
        """Grow a tree over chunks; see `Hierarchy.grow`."""
        documents = (self.documents(chunks, finish=aside is not None) for chunks in parts)
        return self.above(documents, earlier, aside)

    def documents(self, chunks: Sequence[BaseNode], *, finish: bool) -> GrownPart:
        """Grow the trees of documents by themselves; see `grow_documents`."""
        return self._driven(grow_documents(chunks, self.recipe, self.texts, finish=finish))

    def pools(self, pools: PoolRows) -> GrownPools:
        """Group pools of leaves; see `grow_pools`."""
        return self._driven(grow_pools(pools, self.recipe, self.texts))

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
            pools = Pools(self.recipe, aside.waiting, aside.most, self.progress)
            parts = pools.grown(parts, grow or partial(map, self.pools))
        growth = Growth(self.recipe, self.texts, earlier, aside and aside.finished, pools)
        deque(map(growth.add, parts), maxlen=0)  # a loop would keep the part before
        self._driven(growth.above_parts())
        return growth.finished()

    def _driven(self, growth: Generator[Work, Any, T]) -> T:
        """Run a growth to its end and return its result."""
        work = _next(growth, None)
        while isinstance(work, Embed | Summarize):
            report = self.resources.progress = self._named(work)
            if isinstance(work, Embed):
                answer: Any = self.embedder.embed(work.texts, progress=report, memory=self.vectors)
            else:
                answer = self.summarizer.summarize(work.groups, work.budget, self.resources)
            work = _next(growth, answer)
        return work

    def _named(self, work: Work) -> Progress:
        """Report progress under the stage name of the work."""
        return lambda _, done, total, *cost: self.progress(work.stage, done, total, *cost)


def _next(growth: Generator[Work, Any, T], answer: Any) -> Work | T:
    """Return the next request or the result; a StopIteration cannot cross a thread boundary."""
    try:
        return growth.send(answer)
    except StopIteration as end:
        return cast(T, end.value)
