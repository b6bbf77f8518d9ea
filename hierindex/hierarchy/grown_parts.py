"""Parts of a tree that grow without the others, and the trees of some documents."""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from hierindex.core.arrays import Floats2d
from hierindex.core.statistics import Tally
from hierindex.hierarchy.arrays import headings_between, level_rows, vectors_of
from hierindex.hierarchy.levels import Levels, note_documents
from hierindex.hierarchy.nodes import make_leaves
from hierindex.hierarchy.recipe import Models, Recipe
from hierindex.hierarchy.titles import note_phrases
from hierindex.hierarchy.whole_documents import chunks_of
from hierindex.llm.record import Usage
from hierindex.node import Node
from hierindex.progress import Stopwatch, Timing
from hierindex.store.rows import Row, row_of


@dataclass(frozen=True)
class GrownPart:
    """A part of a tree, as the levels above need it.

    `tops` are the highest nodes of the part, and `X`, (n_tops, n_dims), their unit vectors.
    `finished` are rows of nodes below that nothing changes any more; `left` are all others, the
    tops among them. Of the documents `done`, all nodes but the root are finished. `tallies` are by
    level, the lowest first, and `shares` the similarity to the sources of each summary that a model
    wrote.
    """

    left: Sequence[Node]
    tops: Sequence[Node]
    X: Floats2d
    finished: Sequence[Row]
    done: Set[str]
    tallies: Sequence[Tally]
    usage: Usage
    shares: Sequence[float]
    timings: Sequence[Timing]


def grow_documents(
    chunks: Sequence[Node], recipe: Recipe, models: Models, *, finish: bool
) -> GrownPart:
    """Grow the trees of documents over all their chunks, which are not modified.

    Parameters
    ----------
    chunks : Sequence[Node]
    recipe : Recipe
    models : Models
    finish : bool
        Whether to finish the nodes that the levels above do not change; else all are left.
    """
    levels = Levels(recipe, models)
    leaves, X = _embedded_leaves(chunks, recipe, models, levels.watch)
    levels.made += leaves
    rows = level_rows(leaves, X, 0, headings_between(leaves))
    tops, rows = levels.grow(leaves, rows, recipe.within)
    with levels.watch("cluster", None):
        tallies = levels.tallies()
    with levels.watch("link", None):
        done = _of_one_root(levels.made) if finish else set()
        whole = [node for node in levels.made if node.documents[0] in done]
        note_documents(whole, done, chunks_of(whole))
        below = [node for node in whole if not _is_top(node)]
        note_phrases(below)
        finished = [row_of(node) for node in below]
        left = [d for d in levels.made if d.documents[0] not in done or _is_top(d)]
    return GrownPart(
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


def _is_top(node: Node) -> bool:
    return not node.parents


def _of_one_root(nodes: Sequence[Node]) -> set[str]:
    n_roots = Counter(node.documents[0] for node in nodes if _is_top(node))
    return {document for document, n in n_roots.items() if n == 1}


def _embedded_leaves(
    chunks: Sequence[Node], recipe: Recipe, models: Models, watch: Stopwatch
) -> tuple[list[Node], Floats2d]:
    """Return leaves made of chunks with their unit vectors, (n_leaves, n_dims).

    Those without a vector are embedded.
    """
    embedder = recipe.embedder
    with watch("link", 0):
        leaves = make_leaves(chunks, recipe.namespace, recipe.maker)
    embedder.warn_of_summaries(recipe.summary_tokens)
    if not leaves:
        return [], np.zeros((0, 1))
    with watch("embed", 0):
        texts = [leaf.embedded_text for leaf in leaves]
        n_tokens = embedder.count_tokens(texts)
        embedder.warn_of_cut(n_tokens)
        for leaf, n in zip(leaves, n_tokens.tolist(), strict=True):
            leaf.n_tokens = n
        new = [i for i, leaf in enumerate(leaves) if leaf.vector is None]
        if new:
            X = models.embed([texts[i] for i in new], "embed chunks")
            for i, x in zip(new, X, strict=True):
                leaves[i].vector = x.copy()  # not all of them
        return leaves, vectors_of(leaves)
