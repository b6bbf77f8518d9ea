"""What was found, and where it stands in the tree."""

from collections.abc import Mapping, Sequence

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import BaseNode, NodeWithScore

from hierindex.record import NodeRecord, Span


class Found(NodeWithScore):
    """A node with its score and its place.

    Parameters
    ----------
    path : list[str]
        Ids from its strongest parent up to its root; empty for a root.
    why : str, optional
        Why its level was asked, where that was chosen for the question.
    """

    path: list[str] = Field(default_factory=list)
    why: str | None = None

    @property
    def citations(self) -> list[Span]:
        """Where what it says stands in the documents."""
        return NodeRecord.from_metadata(self.node.metadata).citations


def placed(
    nodes: Sequence[NodeWithScore], above: Mapping[str, str | None], why: str | None = None
) -> list[Found]:
    """Nodes with their paths to the root; `above` has the parent of each summary."""
    return [
        Found(node=node.node, score=node.score, path=_path(node.node, above), why=why)
        for node in nodes
    ]


def _path(node: BaseNode, above: Mapping[str, str | None]) -> list[str]:
    path: list[str] = []  # as far as there are nodes: a parent may not be written yet
    parents = NodeRecord.from_metadata(node.metadata).parents
    parent = parents[0][0] if parents else None
    while parent is not None and parent in above and parent not in path:
        path.append(parent)
        parent = above[parent]
    return path
