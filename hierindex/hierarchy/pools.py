"""Pools of similar leaves, which are grouped by themselves if one pool does not hold all leaves.

Leaves of all documents wait in a file until their pools are known, and until their parents are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from llama_index.core.schema import TextNode

from hierindex.core.membership import Floats2d, Ints1d
from hierindex.core.rows import blocks
from hierindex.embed.embedder import unit_vectors
from hierindex.hierarchy.grown_documents import Grouped, GrownDocuments
from hierindex.hierarchy.levels import note_documents, note_models
from hierindex.hierarchy.nodes import Draft
from hierindex.hierarchy.recipe import Recipe
from hierindex.hierarchy.whole_documents import chunks_of, documents_alone
from hierindex.store.node_file import NodeFile

AT_ONCE = 1024  # leaves that are read again at once

GrowPools = Callable[[Sequence[Sequence[Draft]]], GrownDocuments]
"""Grows pools of leaves."""


def in_pools(
    parts: Iterable[GrownDocuments], recipe: Recipe, waiting: NodeFile, most: int, grow: GrowPools
) -> Iterator[GrownDocuments]:
    """Yield parts of leaves as they are, or pools of them if there are too many for memory.

    Parameters
    ----------
    parts : Iterable[GrownDocuments]
        Leaves with nothing above them.
    recipe : Recipe
    waiting : NodeFile
    most : int
        Number of leaves, about, that may be in memory.
    grow : GrowPools
    """
    few, n_leaves = list[GrownDocuments](), 0
    for part in parts:
        few.append(part)
        n_leaves += len(part.tops)
        if n_leaves > most:
            yield from (_put(each, waiting) for each in few)
            few = []
    yield from few
    if len(waiting):
        grouped = dict[str, Grouped]()
        for pools in _together(recipe.across[0].pools(_unit_vectors(waiting)), most):
            grown = grow([[Draft.of(*waiting[i]) for i in pool.tolist()] for pool in pools])
            grouped |= grown.grouped
            yield grown
        yield GrownDocuments(waiting=partial(_finished, waiting, grouped, recipe))


def _put(part: GrownDocuments, waiting: NodeFile) -> GrownDocuments:
    """Put leaves into a file, with the titles that documents give them; return the rest."""
    leaves, chunks = part.tops, chunks_of(part.tops)
    note_documents(leaves, documents_alone(leaves), chunks)
    for leaf in leaves:
        x, leaf.vector = leaf.embedding, None
        waiting.add(leaf.finished(), x)
    return replace(part, left=(), tops=(), X=part.X[:0], tallies=(), chunks=chunks)


def _unit_vectors(waiting: NodeFile) -> Floats2d:
    X = waiting.vectors()
    for block in blocks(X):
        block[:] = unit_vectors(block)
    return X


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


def _finished(
    waiting: NodeFile, grouped: Mapping[str, Grouped], recipe: Recipe, alone: Mapping[str, Draft]
) -> Iterator[TextNode]:
    """Yield all leaves in their order, in which an index has its documents."""
    for first in range(0, len(waiting), AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, len(waiting)))
        leaves = [Draft.of(*waiting[number]) for number in numbers]
        for leaf in leaves:
            if leaf.id in grouped:
                leaf.note(**grouped[leaf.id]._asdict())
        note_models(leaves, recipe)
        yield from (alone.get(leaf.id, leaf).finished() for leaf in leaves)
