"""Pools of similar leaves: with more leaves than one pool holds, each pool is grown by itself.

Leaves of all documents wait in a file until their pools are known.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from hierindex.core.groupers import ByMixture
from hierindex.core.membership import Floats2d
from hierindex.core.rows import blocks
from hierindex.embed.embedder import unit_vectors
from hierindex.hierarchy.grown_documents import GrownDocuments
from hierindex.hierarchy.levels import note_documents
from hierindex.hierarchy.nodes import Draft
from hierindex.hierarchy.similar import vectors_of
from hierindex.hierarchy.whole_documents import chunks_of, documents_alone
from hierindex.store.node_file import NodeFile

GrowPool = Callable[[Sequence[Draft], Floats2d], GrownDocuments]
"""Grows a pool of leaves with their unit vectors."""


def in_pools(
    parts: Iterable[GrownDocuments], grouper: ByMixture, waiting: NodeFile, grow: GrowPool
) -> Iterator[GrownDocuments]:
    """Yield parts of leaves as they are, or pools of them if they are too many for one.

    Parameters
    ----------
    parts : Iterable[GrownDocuments]
        Leaves with nothing above them.
    grouper : ByMixture
        What groups them.
    waiting : NodeFile
    grow : GrowPool
    """
    few, n_leaves = list[GrownDocuments](), 0
    for part in parts:
        few.append(part)
        n_leaves += len(part.tops)
        if n_leaves > grouper.max_pool:
            yield from (_put(each, waiting) for each in few)
            few = []
    yield from few
    if len(waiting):
        for pool in grouper.pools(_unit_vectors(waiting)):
            leaves = [Draft.of(*waiting[number]) for number in pool.tolist()]
            yield grow(leaves, vectors_of(leaves))


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
