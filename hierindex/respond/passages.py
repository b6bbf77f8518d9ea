"""Passages for a language model: texts with their positions in the tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

import numpy as np
from llama_index.core.schema import MetadataMode, NodeWithScore

from hierindex.core.membership import Ints1d
from hierindex.record import NodeRecord
from hierindex.retrieve.retrieved import RetrievedNode

BETWEEN = "\n\n"  # separator in a prompt, as in LlamaIndex


@dataclass(frozen=True)
class Passage:
    """A text with its position in the tree and in its document.

    `path` are the ids of its known ancestors from the root down; `place` is its document and
    its start there in characters.
    """

    text: str
    path: tuple[str, ...] = ()
    place: tuple[str, int] = ("", 0)

    @classmethod
    def of(cls, found: NodeWithScore) -> "Passage":
        """Convert a node, with the text that a language model is shown."""
        record = NodeRecord.from_metadata(found.metadata)
        parents = [node_id for node_id, _ in record.parents[:1]]
        ancestors = found.path if isinstance(found, RetrievedNode) else parents
        return cls(
            found.node.get_content(MetadataMode.LLM),
            tuple(reversed(ancestors)),
            next(((span.document, span.start) for span in record.citations), ("", 0)),
        )


def along_the_tree(passages: Sequence[Passage]) -> list[Passage]:
    """Sort passages depth first, so that passages under one parent are adjacent.

    Branches keep the order of their first passage; under one parent, passages are in reading
    order.
    """
    first: dict[tuple[str, ...], int] = {}
    for rank, passage in enumerate(passages):
        for depth in range(len(passage.path)):
            first.setdefault(passage.path[: depth + 1], rank)

    def turn(passage: Passage) -> tuple[list[int], tuple[str, int]]:
        depths = range(len(passage.path))
        return [first[passage.path[: depth + 1]] for depth in depths], passage.place

    return sorted(passages, key=turn)


def together(passages: Sequence[Passage]) -> Ints1d:
    """Count the common ancestors of each passage and the next one, (n - 1,) int64."""
    return np.array([len(_shared(pair)) for pair in pairwise(passages)], dtype=np.int64)


def joined(passages: Sequence[Passage]) -> Passage:
    """Join passages into one, under their lowest common ancestor."""
    return Passage(BETWEEN.join(p.text for p in passages), _shared(passages), passages[0].place)


def _shared(passages: Sequence[Passage]) -> tuple[str, ...]:
    levels = zip(*(passage.path for passage in passages), strict=False)
    return tuple(ids[0] for ids in takewhile(lambda ids: len(set(ids)) == 1, levels))
