"""What an updated index has in common with a fresh build of its documents."""

from dataclasses import replace

from records import as_plain

from hierindex import HierarchicalIndex, RaptorHierarchy
from hierindex.tree.hierarchy import Hierarchy


def guaranteed(index: HierarchicalIndex, kind: type[Hierarchy], **instead: str) -> list[dict]:
    """All that an update leaves as a fresh build makes it: documents' trees, or the chunks.

    What places them among others, such as parents across documents, is left out; `instead` are
    fields that are of no account.
    """
    nodes = {node.id: node for node in index.store.snapshot().nodes()}
    found = []
    for node in nodes.values():
        if len(node.documents) > 1 or (kind is RaptorHierarchy and node.level):
            continue
        inside = node.parents and len(nodes[node.parents[0][0]].documents) == 1
        if kind is RaptorHierarchy or not inside:
            node = replace(node, parents=(), level_max=node.level, title="")
        found.append(replace(node, **instead))
    return as_plain(found)


def inconsistent(index: HierarchicalIndex) -> list[str]:
    """Nodes whose parents' weights do not sum to 1, or whose documents are not their children's."""
    nodes = {node.id: node for node in index.store.snapshot().nodes()}
    wrong = []
    for node in nodes.values():
        children = [nodes[child] for child in node.children]
        documents = {d for child in children or [node] for d in child.documents}
        total = sum(weight for _, weight in node.parents)
        if {*node.documents} != documents or (node.parents and abs(total - 1) > 1e-6):
            wrong.append(node.id)
    return wrong
