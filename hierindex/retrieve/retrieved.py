"""Retrieved nodes with their paths in the tree."""

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.schema import BaseNode, NodeWithScore

from hierindex.record import NodeRecord, Span
from hierindex.store.snapshot import Snapshot


class RetrievedNode(NodeWithScore):
    """A `NodeWithScore` with its path in the tree.

    Parameters
    ----------
    path : list[str]
        Ids from the strongest parent up to the root; empty for a root.
    why : str, optional
        Why the node's level was searched, if mode "auto" chose it.
    snapshot : Snapshot, optional
        Version of the table that the node was found in.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    path: list[str] = Field(default_factory=list)
    why: str | None = None
    snapshot: Snapshot | None = Field(default=None, exclude=True, repr=False)

    @property
    def citations(self) -> list[Span]:
        """Spans of the documents that support the text."""
        return NodeRecord.from_metadata(self.node.metadata).citations


def placed(
    nodes: Sequence[NodeWithScore], above: Mapping[str, Sequence[str]], **of_all: Any
) -> list[RetrievedNode]:
    """Add paths to nodes; `above` maps each summary to its parents."""
    return [
        RetrievedNode(node=node.node, score=node.score, path=_path(node.node, above), **of_all)
        for node in nodes
    ]


def _path(node: BaseNode, above: Mapping[str, Sequence[str]]) -> list[str]:
    path: list[str] = []  # ends early if a parent is not stored yet
    parents: Sequence[str] = [
        parent for parent, _ in NodeRecord.from_metadata(node.metadata).parents
    ]
    while parents and parents[0] in above and parents[0] not in path:
        path.append(parents[0])
        parents = above[parents[0]]
    return path
