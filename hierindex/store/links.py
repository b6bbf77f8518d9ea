"""Taking nodes out of a tree without leaving links to them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo

from hierindex.record import NodeRecord

if TYPE_CHECKING:
    import pyarrow as pa

BESIDE = (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)


def beside(nodes: Sequence[BaseNode]) -> set[str]:
    """Ids of the nodes before and after these."""
    related = (node.relationships.get(relation) for node in nodes for relation in BESIDE)
    return {info.node_id for info in related if isinstance(info, RelatedNodeInfo)}


def linked_to(rows: "pa.Table", gone: set[str]) -> list[str]:
    """Ids of the rows that stay and have a parent or child among those that go.

    Parameters
    ----------
    rows : Table
        With the columns id, parent_ids and child_ids.
    gone : set[str]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    going = pa.array(sorted(gone), pa.string())
    linked: set[str] = set()
    for name in ("parent_ids", "child_ids"):
        column = rows[name]
        lost = pc.is_in(pc.list_flatten(column), value_set=going)
        at = pc.filter(pc.list_parent_indices(column), lost)
        linked.update(rows["id"].take(at).to_pylist())
    return sorted(linked - gone)


def highest_level(rows: "pa.Table", gone: set[str]) -> int:
    """The highest cut that a row which stays belongs to; 0 if none stays."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stays = pc.invert(pc.is_in(rows["id"], value_set=pa.array(sorted(gone), pa.string())))
    return pc.max(pc.filter(rows["level_max"], stays)).as_py() or 0


def has_lost(node: BaseNode, gone: set[str]) -> bool:
    """Whether a parent or a child of a node is among those that go.

    Then its summary is missing above, or it summarises what is no longer there.
    """
    parents = (parent for parent, _ in NodeRecord.from_metadata(node.metadata).parents)
    children = (child.node_id for child in node.child_nodes or ())
    return not gone.isdisjoint([*parents, *children])


def unlinked(nodes: Sequence[BaseNode], gone: set[str], top: int) -> list[BaseNode]:
    """The nodes, changed in place, without links to what is gone.

    The weights of the parents that are left sum to 1 again, and the strongest of them is
    PARENT. A node that has lost all becomes a root: it belongs to every cut up to `top`.
    """
    for node in nodes:
        record = NodeRecord.from_metadata(node.metadata)
        left = [(parent, weight) for parent, weight in record.parents if parent not in gone]
        total = sum(weight for _, weight in left)
        parents = tuple((parent, weight / total) for parent, weight in left)
        if parents != record.parents:
            highest = record.level_max if parents else top
            changed = replace(record, parents=parents, level_max=highest)
            node.metadata |= changed.to_metadata()
        for relation, related in list(node.relationships.items()):
            if isinstance(related, list):
                node.relationships[relation] = [r for r in related if r.node_id not in gone]
            elif related.node_id in gone:
                del node.relationships[relation]
        if parents:
            node.relationships[NodeRelationship.PARENT] = RelatedNodeInfo(node_id=parents[0][0])
    return list(nodes)
