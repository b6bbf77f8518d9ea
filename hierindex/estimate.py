"""Estimates of what a build would cost."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from llama_index.core.node_parser import NodeParser

from hierindex.build import Source, checked, read_and_split
from hierindex.cache.file import Cache, cache_file, open_cache
from hierindex.embed.model_identity import fingerprint
from hierindex.hierarchy.expected import Expected
from hierindex.hierarchy.hierarchy import Hierarchy
from hierindex.progress import Progress
from hierindex.store.vector_store import HierarchyStore
from hierindex.timing import Stopwatch

Number = int | tuple[int, int]
"""A count, or its lower and upper bound."""


@dataclass(frozen=True)
class Estimate:
    """The estimated requests of a build to a language model.

    `levels` has the number of nodes of each level, `completion_tokens` is an upper bound, and
    `cached_summaries` cost nothing. In a quick estimate, numbers are pairs of bounds.
    """

    levels: list[dict[str, Number]]
    llm_calls: Number
    prompt_tokens: Number
    completion_tokens: Number
    cached_summaries: Number

    def price(self, prompt: float, completion: float) -> float | tuple[float, float]:
        """Return the maximum price, given prices per million tokens."""
        pairs = zip(_pair(self.prompt_tokens), _pair(self.completion_tokens), strict=True)
        low, high = (round((p * prompt + c * completion) / 1e6, 4) for p, c in pairs)
        return (low, high) if isinstance(self.prompt_tokens, tuple) else high

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as plain dictionaries, lists and numbers."""
        return asdict(self)


def estimate_tree(
    sources: Source | Sequence[Source],
    store: HierarchyStore,
    hierarchy: Hierarchy,
    *,
    splitter: NodeParser | None,
    chunk_size: int | None,
    quick: bool,
    progress: Progress | None,
) -> Estimate:
    """Estimate the cost of a build by growing its tree with placeholders for summaries.

    The chunks are embedded, and their vectors are cached for the build. A quick estimate embeds
    nothing and bounds the tree by arithmetic. Neither changes the index.
    """
    progress = progress or hierarchy.progress
    rehearsal = hierarchy.rehearsal()
    sources, is_built = checked(sources), cache_file(store.uri).exists()
    model = fingerprint(hierarchy.embedder.embed_model)
    with open_cache(store.uri, model) if is_built or not quick else nullcontext(Cache()) as cache:
        _, _, chunks = read_and_split(
            sources, hierarchy, splitter, chunk_size, cache.readings, progress, Stopwatch()
        )
        if quick:
            return _between(*rehearsal.expected(chunks), may_be_cached=is_built)
        grown = rehearsal.grow(chunks, cache, progress)
    return Estimate(
        levels=[{"level": level.level, "nodes": level.nodes} for level in grown.statistics],
        llm_calls=grown.usage.llm_calls,
        prompt_tokens=grown.usage.prompt_tokens,
        completion_tokens=grown.usage.completion_tokens,
        cached_summaries=grown.usage.cached_summaries,
    )


def _between(one: Expected, other: Expected, *, may_be_cached: bool) -> Estimate:
    """Return an estimate of ranges; which summaries are cached is unknown without vectors."""

    def cost(n: int, m: int) -> tuple[int, int]:
        return 0 if may_be_cached else min(n, m), max(n, m)

    (n_chunks, _), *above = zip_longest(one.nodes, other.nodes, fillvalue=0)
    levels: list[dict[str, Number]] = [
        {"level": i, "nodes": (min(n), max(n))} for i, n in enumerate(above, start=1)
    ]
    calls = cost(one.usage.llm_calls, other.usage.llm_calls)
    return Estimate(
        levels=[{"level": 0, "nodes": n_chunks}, *levels],
        llm_calls=calls,
        prompt_tokens=cost(one.usage.prompt_tokens, other.usage.prompt_tokens),
        completion_tokens=cost(one.usage.completion_tokens, other.usage.completion_tokens),
        cached_summaries=(0, calls[1] if may_be_cached else 0),
    )


def _pair(n: Number) -> tuple[int, int]:
    return n if isinstance(n, tuple) else (n, n)
