"""What holds of every tree, and what an updated index has in common with a fresh build."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from indexes import Hierarchy
from records import as_plain

from hierindex import HierarchicalIndex, Node, RaptorHierarchy


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


def check_tree(nodes: Sequence[Node]) -> None:
    """There is one root, which is the highest node."""
    highest = max(nodes, key=lambda node: node.level)
    assert [node.id for node in nodes if not node.parents] == [highest.id]
    check_links(nodes)


def check_links(nodes: Sequence[Node]) -> None:
    """Links both ways, weights of 1, and no gap between a node and its parents."""
    by_id = {node.id: node for node in nodes}
    for node in nodes:
        parents = dict(node.parents)
        assert len(parents) == len(node.parents)
        assert sum(parents.values()) == pytest.approx(1.0 if parents else 0.0)
        assert all(by_id[parent].level == node.level_max + 1 for parent in parents)
        assert all(node.id in by_id[parent].children for parent in parents)
        assert all(node.id in dict(by_id[child].parents) for child in node.children)
