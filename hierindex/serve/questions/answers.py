"""What the endpoints answer, for their description."""

from typing import Any, NotRequired

from typing_extensions import TypedDict  # before Python 3.12, pydantic reads no other

from hierindex.respond.answer import Source
from hierindex.respond.citation import Citation
from hierindex.serve.endpoint import Place


class FoundNode(TypedDict):
    """A node with the score of the search; `path` are the ids from its parent up to the root."""

    id: str
    level: int
    title: str
    score: float
    text: str
    citations: list[Citation]
    path: list[str]


class Found(TypedDict):
    """Nodes, best first."""

    nodes: list[FoundNode]


class Outlined(TypedDict):
    """Nodes in reading order, and the sum of their tokens."""

    nodes: list[Source]
    tokens: int


class Parent(TypedDict):
    """A parent of a node, and the share of the node that is the parent's."""

    id: str
    weight: float


class PassageInContext(Place):
    """A passage of a document: `text`, with the text around it from `before_start` on."""

    before_start: int
    before: str
    text: str
    after: str
    after_end: int


class Block(TypedDict):
    """A part of a node's text, from `start` to `end` (exclusive), and what it is."""

    start: int
    end: int
    kind: str


class Shown(TypedDict):
    """A node: its text, its place in the tree, and what it cites."""

    id: str
    title: str
    level: int
    level_max: int
    kind: str
    grounding: dict[str, Any] | None
    n_tokens: int
    documents: list[str]
    more_documents: int
    parents: list[Parent]
    children: list[str]
    citations: list[Place]
    metadata: dict[str, Any]
    text: str
    sentences: list[dict[str, Any]]
    blocks: list[Block]
    passages: NotRequired[list[PassageInContext]]


class Healthy(TypedDict):
    """The version of hierindex, the generation that is the newest, and the server's process."""

    version: str
    generation: int
    process: int
