"""Growing a tree, part by part and then above the parts.

The parts are trees of documents, or leaves.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from hierindex.core.tree import Revised
from hierindex.errors import InputError
from hierindex.models.record import Usage
from hierindex.node import Grounding, Node
from hierindex.store.rows import Row, row_of
from hierindex.tree.earlier import Cut, EarlierTree
from hierindex.tree.leaves import embedded_leaves, headings_between, level_rows
from hierindex.tree.levels import GrownPart, Level, Levels, LevelStatistics, summed
from hierindex.tree.recipe import Recipe
from hierindex.tree.titles import documents_alone, note_documents, note_names

T = TypeVar("T")


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


@dataclass(frozen=True)
class Grown:
    """A finished tree, or the changes of an update.

    `nodes` are embedded, level by level; empty if they were written. `gone` are the ids
    of earlier nodes that the tree no longer has. `grounding` is the check of all summaries that a
    model wrote. `statistics` cover the nodes that were grouped.
    """

    nodes: list[Node] = field(default_factory=list)
    gone: frozenset[str] = frozenset()
    usage: Usage = field(default_factory=Usage)
    grounding: Grounding = field(default_factory=Grounding)
    statistics: list[LevelStatistics] = field(default_factory=list)
    seconds: Mapping[str, float] = field(default_factory=dict)


Parts = Iterable[Sequence[Node]]
"""Chunks of all documents, those of one document in one part."""


Write = Callable[[Iterable[Row]], None]
"""Writes the rows of finished nodes, which will not change any more, during a build."""


def grow_documents(recipe: Recipe, chunks: Sequence[Node], *, finish: bool) -> GrownPart:
    """Grow the trees of documents over all their chunks, which are not modified.

    Parameters
    ----------
    recipe : Recipe
    chunks : Sequence[Node]
    finish : bool
        Whether to finish nodes that the levels above do not change; otherwise no node is finished.
    """
    levels = Levels(recipe)
    leaves, X = embedded_leaves(chunks, recipe, levels.watch)
    levels.made += leaves
    rows = level_rows(leaves, X, 0, headings_between(leaves))
    top = levels.grow(Level(leaves, rows), recipe.within)
    with levels.watch("link"):
        n_roots = Counter(node.documents[0] for node in levels.made if not node.parents)
        done = {document for document, n in n_roots.items() if n == 1 and finish}
        whole = [node for node in levels.made if node.documents[0] in done]
        note_documents(whole, done)
        below = [node for node in whole if node.parents]
        left = [d for d in levels.made if d.documents[0] not in done or not d.parents]
    spent = levels.statistics, levels.usage, levels.grounding, levels.watch.seconds
    return GrownPart(left, top.nodes, top.rows.X, below, done, *spent)


def grow_above(
    recipe: Recipe,
    parts: Iterable[GrownPart],
    earlier: EarlierTree | None = None,
    write: Write | None = None,
) -> Grown:
    """Grow the levels above the parts of a tree, which are trees of documents or leaves.

    If finished nodes are written, only two kinds of nodes stay in memory: those above documents,
    and all nodes of documents without a single root.
    """
    levels, kept, ids = Levels(recipe), list[GrownPart](), set[str]()
    for part in parts:
        levels.made += part.left
        levels.usage += part.usage
        levels.grounding += part.grounding
        levels.watch.add(part.seconds)
        if part.tops:
            kept.append(replace(part, finished=()))
        if earlier:
            ids.update(node.id for node in chain(part.left, part.finished))
        if write:
            with levels.watch("write"):
                write(map(row_of, part.finished))
    with levels.watch("link"):
        level, height = _lowest(levels, kept, ids, earlier)
    across = recipe.across
    last = levels.grow(level, [*map(Revised, across)] if earlier else across)
    # The highest nodes of the parts are among those that are grouped above them.
    below = summed([part.statistics for part in kept])[:-1]
    with levels.watch("link"):
        if earlier and isinstance(last, Cut):
            earlier.finish(last, ids.union(node.id for node in levels.made))
        done = set[str]().union(*(part.done for part in kept))
        nodes = _noted(levels.made, done, height, earlier)
    if write:
        with levels.watch("write"):
            write(map(row_of, nodes))
    return Grown(
        [] if write else nodes,
        frozenset(earlier.gone if earlier else ()),
        levels.usage,
        levels.grounding,
        [*below, *levels.statistics],
        levels.watch.seconds,
    )


def _lowest(
    levels: Levels,
    parts: Sequence[GrownPart],
    ids: Set[str],
    earlier: EarlierTree | None,
) -> tuple[Level, int]:
    """Return the lowest level above the parts, and the number of levels below it.

    If an earlier tree is updated, `ids` are those of all nodes of the parts, and the level is a cut
    of that tree.
    """
    if len(widths := {part.X.shape[1] for part in parts}) > 1:
        raise InputError(f"Embeddings must have the same dimension, got {sorted(widths)}.")
    X = np.concatenate([part.X for part in parts] or [np.zeros((0, 1))])
    tops = [node for part in parts for node in part.tops]
    height = max((len(part.statistics) - 1 for part in parts), default=0)
    cut = None
    if earlier:
        is_grouped = bool(levels.recipe.within)
        cut = earlier.replaced(tops, ids, height, is_grouped=is_grouped)
        height = cut.level + cut.shift
    for node in tops:
        node.level_max = height
    if cut and levels.recipe.across:
        return cut.around(tops, X), height
    return Level(tops, level_rows(tops, X, height)), height


def _noted(
    made: list[Node], done: Set[str], height: int, earlier: EarlierTree | None
) -> list[Node]:
    """Return all nodes after setting the fields that depend on the whole tree.

    The fields of nodes of the documents `done` are set already.
    """
    nodes, documents = made, documents_alone(made)
    if earlier:
        documents |= documents_alone(d for d in earlier.changed if d.level > height)
        nodes = earlier.among_related(made, documents - done)
    note_documents(nodes, documents - done)
    note_names(nodes, {node.id for node in made} if earlier else None)
    return [*made, *(earlier.changed if earlier else ())]
