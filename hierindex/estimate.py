"""What a build would cost, before it is built."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from llama_index.core.node_parser import NodeParser

from hierindex.build import Source, read_and_split
from hierindex.cache.file import Cache, cache_file, open_cache
from hierindex.embed.embedder import fingerprint
from hierindex.hierarchy.hierarchy import Hierarchy
from hierindex.progress import Progress
from hierindex.store.vector_store import HierarchyStore
from hierindex.timing import Stopwatch

WIDTH = 1.6  # of a quick estimate, down and up, where trees of words alone were compared with real

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
    rehearsal = hierarchy.rehearsal(quick=quick)
    _, _, chunks = read_and_split(sources, hierarchy, splitter, chunk_size, progress, Stopwatch())
    known = cache_file(store.uri).exists()
    model = None if quick else fingerprint(hierarchy.embedder.embed_model)
    with nullcontext(Cache()) if quick else open_cache(store.uri, model) as cache:
        grown = rehearsal.grow(chunks, cache, progress)
    usage = grown.usage
    exact = Estimate(
        levels=[{"level": level.level, "nodes": level.nodes} for level in grown.statistics],
        llm_calls=usage.llm_calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_summaries=usage.cached_summaries,
    )
    return _widened(exact, known) if quick else exact


def _widened(estimate: Estimate, may_be_known: bool) -> Estimate:
    """The estimate as ranges; what is known already cannot be told without vectors."""

    def wide(n: Number) -> tuple[int, int]:
        low, high = _pair(n)
        return 0 if may_be_known else int(low / WIDTH), int(high * WIDTH + 1)

    chunks, *above = estimate.levels
    return Estimate(
        levels=[chunks, *({"level": a["level"], "nodes": wide(a["nodes"])} for a in above)],
        llm_calls=wide(estimate.llm_calls),
        prompt_tokens=wide(estimate.prompt_tokens),
        completion_tokens=wide(estimate.completion_tokens),
        cached_summaries=(0, wide(estimate.llm_calls)[1] if may_be_known else 0),
    )


def _pair(n: Number) -> tuple[int, int]:
    return n if isinstance(n, tuple) else (n, n)
