"""LlamaIndex nodes with a place in a tree, as a hierarchy would have written them."""

from typing import Any

from hierindex.node import Maker, Node
from hierindex.text_node import metadata_of as entries


def metadata_of(maker: Maker = Maker(), **fields: Any) -> dict[str, Any]:  # noqa: B008
    """Return the metadata entries that store attributes of a node."""
    return entries(Node("", "", maker=maker, **fields))
