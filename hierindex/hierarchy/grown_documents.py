"""Parts of a tree that grow without the others: of some documents, or of pools of chunks."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.schema import BaseNode, TextNode

from hierindex.cache.texts import TextCache
from hierindex.core.membership import Floats2d
from hierindex.core.statistics import Tally
from hierindex.hierarchy.leaves import embedded_leaves
from hierindex.hierarchy.level_rows import headings_between, level_rows
from hierindex.hierarchy.levels import Levels, note_documents, note_models
from hierindex.hierarchy.nodes import Draft
from hierindex.hierarchy.recipe import Recipe, Work
from hierindex.hierarchy.similar import vectors_of
from hierindex.hierarchy.titles import note_phrases
from hierindex.hierarchy.whole_documents import Chunk, chunks_of
from hierindex.llm.usage import Usage
from hierindex.timing import Timing

NO_USAGE = Usage()

FinishLeaves = Callable[[Mapping[str, Draft]], Iterator[TextNode]]


class Grouped(NamedTuple):
    """The parents of a leaf with their weights, see `NodeRecord`, and its title."""

    parents: tuple[tuple[str, float], ...]
    title: str


@dataclass(frozen=True)
class GrownDocuments:
    """A part of a tree, as the levels above need it.

    `tops` are the highest nodes of the part, and `X`, (n_tops, n_dims), their unit vectors.
    `finished` are nodes below that nothing changes any more; `left` are all others, the tops among
    them. Of the documents `done`, all nodes but the root are finished. `tallies` are by level, the
    lowest first, and `shares` the grounding of each summary that a model wrote.

    Of leaves that wait for their pools, there are only `chunks`; of pools, `grouped` has what is
    known of leaves that have parents, by id. When all pools are grown, `waiting` finishes their
    leaves in order, given those that have passed up.
    """

    left: Sequence[Draft] = ()
    tops: Sequence[Draft] = ()
    X: Floats2d = field(default_factory=lambda: np.zeros((0, 1)))
    finished: Sequence[TextNode] = ()
    done: Set[str] = frozenset()
    tallies: Sequence[Tally] = ()
    usage: Usage = NO_USAGE
    shares: Sequence[float] = ()
    timings: Sequence[Timing] = ()
    chunks: Mapping[str, Chunk] = field(default_factory=dict)
    grouped: Mapping[str, Grouped] = field(default_factory=dict)
    waiting: FinishLeaves | None = None


def grow_documents(
    chunks: Sequence[BaseNode], recipe: Recipe, memory: TextCache | None, *, finish: bool
) -> Generator[Work, Any, GrownDocuments]:
    """Grow the trees of documents over all their chunks, which are not modified.

    Parameters
    ----------
    chunks : Sequence[BaseNode]
    recipe : Recipe
    memory : TextCache or None
        Cache that summaries are read from and written to.
    finish : bool
        Whether to finish the nodes that the levels above do not change; else all are left.
    """
    levels = Levels(recipe, memory)
    leaves, X = yield from embedded_leaves(chunks, recipe, levels.watch)
    levels.made += leaves
    rows = level_rows(leaves, X, 0, headings_between([leaf.node for leaf in leaves]))
    tops, rows = yield from levels.grow(leaves, rows, recipe.within)
    with levels.watch("cluster", None):
        tallies = levels.tallies()
    with levels.watch("link", None):
        done = _of_one_root(levels.made) if finish else set()
        whole = [draft for draft in levels.made if draft.record.documents[0] in done]
        note_documents(whole, done, chunks_of(whole))
        below = [draft for draft in whole if not _is_top(draft)]
        note_phrases(below)
        note_models(below, recipe)
        finished = [draft.finished() for draft in below]
        left = [d for d in levels.made if d.record.documents[0] not in done or _is_top(d)]
    return GrownDocuments(
        left=left,
        tops=tops,
        X=rows.X,
        finished=finished,
        done=done,
        tallies=tallies,
        usage=levels.usage,
        shares=levels.shares,
        timings=levels.watch.timings,
    )


def grow_pools(
    pools: Sequence[Sequence[Draft]], recipe: Recipe, memory: TextCache | None
) -> Generator[Work, Any, GrownDocuments]:
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
        below = [leaf for leaf in leaves if not _is_top(leaf)]
        note_phrases(below)
    return GrownDocuments(
        left=tops,
        tops=tops,
        X=rows.X,
        tallies=tallies,
        usage=levels.usage,
        shares=levels.shares,
        timings=levels.watch.timings,
        grouped={leaf.id: Grouped(leaf.record.parents, leaf.record.title) for leaf in below},
    )


def _is_top(draft: Draft) -> bool:
    return not draft.record.parents


def _of_one_root(drafts: Sequence[Draft]) -> set[str]:
    n_roots = Counter(draft.record.documents[0] for draft in drafts if _is_top(draft))
    return {document for document, n in n_roots.items() if n == 1}
