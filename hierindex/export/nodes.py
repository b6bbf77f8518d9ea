"""Reading of all nodes in a reproducible order."""

from llama_index.core.schema import BaseNode, TextNode

from hierindex.errors import InputError
from hierindex.record import NodeRecord
from hierindex.store.nodes import to_nodes
from hierindex.store.rows import documents_of
from hierindex.store.schema import NODE_COLUMNS
from hierindex.store.snapshot import Snapshot
from hierindex.threads import wait_for

NO_NODES = "The index is empty: there is nothing to export."


def ordered_nodes(snapshot: Snapshot) -> list[TextNode]:
    """Return all nodes without vectors, sorted by level, documents, place in them and id.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, or it is empty.
    """
    snapshot.require()
    nodes = to_nodes(wait_for(snapshot.select(*NODE_COLUMNS)))
    if not nodes:
        raise InputError(NO_NODES)
    return sorted(nodes, key=_place)


def _place(node: BaseNode) -> tuple[int, list[str], int, str]:
    record = NodeRecord.from_metadata(node.metadata)
    return record.level, documents_of(node, record), record.start, node.node_id
