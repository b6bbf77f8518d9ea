"""What a build would cost, before it is built."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from llama_index.core.node_parser import NodeParser

from hierindex.build import Source, read_and_split
from hierindex.cache.file import cache_file, open_cache
from hierindex.embed.embedder import fingerprint
from hierindex.hierarchy.expected import Expected
from hierindex.hierarchy.hierarchy import Hierarchy
from hierindex.progress import Progress
from hierindex.store.vector_store import HierarchyStore
from hierindex.timing import Stopwatch

Number = int | tuple[int, int]
"""A count, or the least and the most that it may be."""


@dataclass(frozen=True)
class Estimate:
    """What a build would ask of a language model.

    `levels` has the nodes of each level's cut; `completion_tokens` is the most that the
    answers may have; `cached_summaries` are known already, and cost nothing. Of a quick
    estimate, each number is a pair of the least and the most.
    """

    levels: list[dict[str, Number]]
    llm_calls: Number
    prompt_tokens: Number
    completion_tokens: Number
    cached_summaries: Number

    def price(self, prompt: float, completion: float) -> float | tuple[float, float]:
        """What it would cost at most, at these prices of a million tokens each."""
        pairs = zip(_pair(self.prompt_tokens), _pair(self.completion_tokens), strict=True)
        low, high = (round((p * prompt + c * completion) / 1e6, 4) for p, c in pairs)
        return (low, high) if isinstance(self.prompt_tokens, tuple) else high

    def to_json(self) -> dict[str, Any]:
        """The same as plain dictionaries, lists and numbers."""
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
    """Grow the tree with stand-ins for a model's summaries, and write nothing but vectors.

    The chunks are embedded, and their vectors kept for the build, unless it is to be quick.
    """
    progress = progress or hierarchy.progress
    rehearsal = hierarchy.rehearsal()
    _, _, chunks = read_and_split(sources, hierarchy, splitter, chunk_size, progress, Stopwatch())
    if quick:
        return _between(*rehearsal.expected(chunks), may_be_known=cache_file(store.uri).exists())
    with open_cache(store.uri, fingerprint(hierarchy.embedder.embed_model)) as cache:
        grown = rehearsal.grow(chunks, cache, progress)
    return Estimate(
        levels=[{"level": level.level, "nodes": level.nodes} for level in grown.statistics],
        llm_calls=grown.usage.llm_calls,
        prompt_tokens=grown.usage.prompt_tokens,
        completion_tokens=grown.usage.completion_tokens,
        cached_summaries=grown.usage.cached_summaries,
    )


def _between(one: Expected, other: Expected, *, may_be_known: bool) -> Estimate:
    """An estimate of ranges; what is known already cannot be told without vectors."""

    def cost(n: int, m: int) -> tuple[int, int]:
        return 0 if may_be_known else min(n, m), max(n, m)

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
        cached_summaries=(0, calls[1] if may_be_known else 0),
    )


def _pair(n: Number) -> tuple[int, int]:
    return n if isinstance(n, tuple) else (n, n)
