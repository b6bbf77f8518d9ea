"""Retrieved nodes with their paths in the tree, as LlamaIndex's nodes with scores."""

from collections.abc import Sequence
from typing import ClassVar

from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.schema import NodeWithScore

from hierindex.node import SHOWN, Found, Span
from hierindex.retrieve.retrieval import Question, Retrieved
from hierindex.store.snapshot import Snapshot
from hierindex.text.display import passage_html
from hierindex.text_node import from_text_node, to_text_node
from hierindex.unsafe import beginning


class RetrievedNode(NodeWithScore):
    """A `NodeWithScore` with its path in the tree.

    Parameters
    ----------
    path : list[str]
        Ids from the strongest parent up to the root; empty for a root.
    why : str, optional
        Why mode "auto" chose chunks or an outline.
    share : float, optional
        In an outline, the share of the index's text that is under the node, in [0, 1].
    snapshot : Snapshot, optional
        The generation in which the node was found.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    path: list[str] = Field(default_factory=list)
    why: str | None = None
    share: float | None = None
    snapshot: Snapshot | None = Field(default=None, exclude=True, repr=False)

    @property
    def citations(self) -> list[Span]:
        """Spans of the documents that support the text."""
        return from_text_node(self.node).citations

    def __repr__(self) -> str:
        """Return the score, the level, the place and the beginning of the text."""
        node = from_text_node(self.node)
        text = beginning(node.text, SHOWN)
        score = f"{self.score or 0:.2f}"
        return f"RetrievedNode(score={score}, level={node.level}, {node.place!r}, {text!r})"

    def _repr_html_(self) -> str:
        node = from_text_node(self.node)
        head = f"{node.place} (score {self.score or 0:.2f}, level {node.level})"
        return passage_html(node.text, head)


def retrieved_of(question: Question, nodes: Sequence[NodeWithScore]) -> Retrieved:
    """Return LlamaIndex's nodes as what was found for a question."""
    placed = [node for node in nodes if isinstance(node, RetrievedNode)]
    return Retrieved(
        question,
        next((node.snapshot for node in placed), None),
        [Found(from_text_node(each.node), each.score or 0.0) for each in nodes],
        next((node.why for node in placed), None),
        {node.node_id: node.share for node in placed if node.share is not None},
    )


def retrieved_nodes(retrieved: Retrieved) -> list[RetrievedNode]:
    """Return what was found as LlamaIndex's nodes."""
    nodes = [NodeWithScore(node=to_text_node(node), score=score) for node, score in retrieved.found]
    return placed(nodes, retrieved)


def placed(nodes: Sequence[NodeWithScore], retrieved: Retrieved) -> list[RetrievedNode]:
    """Return nodes with their paths; a postprocessor may have made others of them."""
    found = {node.id: node for node, _ in retrieved.found}
    return [
        RetrievedNode(
            node=each.node,
            score=each.score,
            path=retrieved.path(found.get(each.node_id) or from_text_node(each.node)),
            why=retrieved.why,
            share=retrieved.shares.get(each.node_id),
            snapshot=retrieved.snapshot,
        )
        for each in nodes
    ]
