"""All documents of nodes that are to be written and name only the first of them."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import chain

from llama_index.core.schema import BaseNode

from hierindex.errors import InputError
from hierindex.record import NodeRecord
from hierindex.store.rows import documents_of
from hierindex.store.snapshot import Snapshot


async def all_documents(
    nodes: Sequence[BaseNode], snapshot: Callable[[], Awaitable[Snapshot]]
) -> dict[str, list[str]]:
    """Return, by id, all documents of the nodes that do not name them, see `NodeRecord`.

    They are those of a node's children, in order, or of the same node in the snapshot.

    Parameters
    ----------
    nodes : Sequence[BaseNode]
    snapshot : callable
        Returns that of the index before it is written, which may have children of the nodes.

    Raises
    ------
    InputError
        If children are unknown.
    """
    records = {node.node_id: NodeRecord.from_metadata(node.metadata) for node in nodes}
    partly = [node for node in nodes if records[node.node_id].more_documents]
    if not partly:
        return {}
    partly.sort(key=lambda node: records[node.node_id].level)
    children = {node.node_id: [info.node_id for info in node.child_nodes or ()] for node in partly}
    whole = [node for node in nodes if node.node_id not in children]
    held = await (await snapshot()).columns(
        "id", "documents", node_ids={*children, *chain.from_iterable(children.values())}
    )
    known = dict(zip(held["id"], held["documents"], strict=True))
    known |= {node.node_id: documents_of(node, records[node.node_id]) for node in whole}
    for node_id, below in children.items():
        n_named = len(records[node_id].documents)
        number = n_named + records[node_id].more_documents
        found = [*dict.fromkeys(d for child in below for d in known.get(child, ()))]
        if len(found) == number:
            known[node_id] = found
        elif len(known.get(node_id, ())) != number:
            raise InputError(
                f"Node {node_id!r} names only {n_named:,} of its {number:,} documents; write its "
                "children with it or before it."
            )
    return {node_id: known[node_id] for node_id in children}
