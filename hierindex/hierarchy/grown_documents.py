"""The trees of some documents, which grow without those of others."""

from collections import Counter
from collections.abc import Generator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import BaseNode, TextNode

from hierindex.cache.texts import TextCache
from hierindex.core.membership import Floats2d
from hierindex.core.statistics import Tally
from hierindex.hierarchy.leaves import embedded_leaves
from hierindex.hierarchy.level_rows import headings_between, level_rows
from hierindex.hierarchy.levels import Levels, note_documents, note_models
from hierindex.hierarchy.nodes import Draft
from hierindex.hierarchy.recipe import Recipe, Work
from hierindex.hierarchy.titles import note_phrases
from hierindex.llm.usage import Usage
from hierindex.timing import Timing


@dataclass(frozen=True)
class GrownDocuments:
    """The trees of some documents, as the levels above need them.

    `tops` are the highest nodes of the trees, and `X`, (n_tops, n_dims), their unit vectors.
    `finished` are the nodes below the roots of the documents `done`, those that have one root;
    `left` are all others, the roots among them. `tallies` are by level, the lowest first, and
    `shares` the grounding of each summary that a model wrote.
    """

    left: Sequence[Draft]
    tops: Sequence[Draft]
    X: Floats2d
    finished: Sequence[TextNode]
    done: Set[str]
    tallies: Sequence[Tally]
    usage: Usage
    shares: Sequence[float]
    timings: Sequence[Timing]


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
        left, finished = _finished(levels.made, done, recipe)
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


def _of_one_root(drafts: Sequence[Draft]) -> set[str]:
    n_roots = Counter(d.record.documents[0] for d in drafts if not d.record.parents)
    return {document for document, n in n_roots.items() if n == 1}


def _finished(
    drafts: Sequence[Draft], done: Set[str], recipe: Recipe
) -> tuple[list[Draft], list[TextNode]]:
    """Finish the nodes below the roots of documents; also return the other nodes."""
    whole = [draft for draft in drafts if draft.record.documents[0] in done]
    note_documents(whole, done)
    below = [draft for draft in whole if draft.record.parents]
    note_phrases(below)
    note_models(below, recipe)
    left = [d for d in drafts if d.record.documents[0] not in done or not d.record.parents]
    return left, [draft.finished() for draft in below]
