"""Retrieved nodes with their paths in the tree."""

from collections.abc import Mapping, Sequence

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
        Why mode "auto" chose chunks or an outline.
    share : float, optional
        In an outline, the share of the text that the node stands for.
    named : bool
        Whether the question names the documents that were searched, and no others were.
    snapshot : Snapshot, optional
        Version of the table that the node was found in.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    path: list[str] = Field(default_factory=list)
    why: str | None = None
    share: float | None = None
    named: bool = Field(default=False, exclude=True, repr=False)
    snapshot: Snapshot | None = Field(default=None, exclude=True, repr=False)

    @property
    def citations(self) -> list[Span]:
        """Spans of the documents that support the text."""
        return NodeRecord.from_metadata(self.node.metadata).citations


def is_outline(nodes: Sequence[NodeWithScore]) -> bool:
    """Return whether nodes are those of an outline, which have shares."""
    return any(isinstance(node, RetrievedNode) and node.share is not None for node in nodes)


def placed(
    nodes: Sequence[NodeWithScore],
    snapshot: Snapshot,
    why: str | None = None,
    shares: Mapping[str, float] | None = None,
    named: bool = False,
) -> list[RetrievedNode]:
    """Add their paths, and their shares by id, to nodes of a snapshot."""
    parents = snapshot.parents_of_summaries()
    return [
        RetrievedNode(
            node=found.node,
            score=found.score,
            path=_path_to_root(found.node, parents),
            why=why,
            share=(shares or {}).get(found.node_id),
            named=named,
            snapshot=snapshot,
        )
        for found in nodes
    ]


def _path_to_root(node: BaseNode, parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the ids from a node's strongest parent up."""
    path: list[str] = []  # ends early if a parent is not stored yet
    parent = node.parent_node.node_id if node.parent_node else ""
    while parent in parents and parent not in path:
        path.append(parent)
        parent = next(iter(parents[parent]), "")
    return path
