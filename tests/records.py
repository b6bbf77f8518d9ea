"""LlamaIndex nodes with a place in a tree, as a hierarchy would have written them."""

from typing import Any

from hierindex.node import Maker, Node
from hierindex.text_node import to_text_node


def metadata_of(maker: Maker = Maker(), **fields: Any) -> dict[str, Any]:  # noqa: B008
    """Return the metadata entries that store attributes of a node."""
    return to_text_node(Node("", "", maker=maker, **fields)).metadata
