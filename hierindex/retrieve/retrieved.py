"""What was found, and where it stands in the tree."""

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.schema import BaseNode, NodeWithScore

from hierindex.record import NodeRecord, Span
from hierindex.store.snapshot import Snapshot


class RetrievedNode(NodeWithScore):
    """A node with its score and its place.

    Parameters
    ----------
    path : list[str]
        Ids from its strongest parent up to its root; empty for a root.
    why : str, optional
        Why its level was asked, where that was chosen for the question.
    snapshot : Snapshot, optional
        The version of the table that it was found in.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    path: list[str] = Field(default_factory=list)
    why: str | None = None
    snapshot: Snapshot | None = Field(default=None, exclude=True, repr=False)

    @property
    def citations(self) -> list[Span]:
        """Where what it says stands in the documents."""
        return NodeRecord.from_metadata(self.node.metadata).citations


def placed(
    nodes: Sequence[NodeWithScore], above: Mapping[str, Sequence[str]], **of_all: Any
) -> list[RetrievedNode]:
    """Nodes with their paths to the root; `above` has the parents of each summary."""
    return [
        RetrievedNode(node=node.node, score=node.score, path=_path(node.node, above), **of_all)
        for node in nodes
    ]


def _path(node: BaseNode, above: Mapping[str, Sequence[str]]) -> list[str]:
    path: list[str] = []  # as far as there are nodes: a parent may not be written yet
    parents: Sequence[str] = [
        parent for parent, _ in NodeRecord.from_metadata(node.metadata).parents
    ]
    while parents and parents[0] in above and parents[0] not in path:
        path.append(parents[0])
        parents = above[parents[0]]
    return path
