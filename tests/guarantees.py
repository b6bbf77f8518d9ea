"""What an updated index has in common with a fresh build of its documents."""

from dataclasses import replace

from llama_index.core.schema import NodeRelationship

from hierindex import HierarchicalIndex, Node, RaptorHierarchy
from hierindex.hierarchy.hierarchy import Hierarchy


def guaranteed(index: HierarchicalIndex, kind: type[Hierarchy], **instead: str) -> list[dict]:
    """All that an update leaves as a fresh build makes it: documents' trees, or the chunks.

    What places them among others, such as parents across documents, is left out; `instead` are
    fields of records that are of no account.
    """
    nodes = {node.node_id: node for node in index.store.get_nodes()}
    records = {i: Node.of(node) for i, node in nodes.items()}
    plain = []
    for i, node in sorted(nodes.items()):
        record = records[i]
        if len(record.documents) > 1 or (kind is RaptorHierarchy and record.level):
            continue
        inside = record.parents and len(records[record.parents[0][0]].documents) == 1
        if kind is RaptorHierarchy or not inside:
            record = replace(record, parents=(), level_max=record.level, title="")
            node.relationships.pop(NodeRelationship.PARENT, None)
        node.metadata |= replace(record, **instead).to_metadata()
        plain.append(node.to_dict())
    return plain


def inconsistent(index: HierarchicalIndex) -> list[str]:
    """Nodes whose parents' weights do not sum to 1, or whose documents are not their children's."""
    nodes = {node.node_id: node for node in index.store.get_nodes()}
    records = {i: Node.of(node) for i, node in nodes.items()}
    wrong = []
    for i, record in records.items():
        children = [records[child.node_id] for child in nodes[i].child_nodes or ()]
        documents = {d for child in children or [record] for d in child.documents}
        total = sum(weight for _, weight in record.parents)
        if {*record.documents} != documents or (record.parents and abs(total - 1) > 1e-6):
            wrong.append(i)
    return wrong
