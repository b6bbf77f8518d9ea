"""Tables of contents list each node once, under its strongest parent."""

import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from records import metadata_of
from store.trees import HIERARCHIES, documents, record, tree

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy
from hierindex.errors import IndexNotFoundError, InputError


def entries(listed, parent=None):
    """All nodes of a table of contents with their parents' ids, in order."""
    for node in listed:
        yield node, parent
        yield from entries(node["nodes"], node["id"])


@pytest.mark.parametrize("hierarchy", HIERARCHIES)
def test_each_node_is_listed_once_under_its_strongest_parent(stored, hierarchy):
    index, nodes = stored[hierarchy]
    found = index.tree(depth=99)
    listed = [*entries(found["nodes"])]
    assert sorted(node["id"] for node, _ in listed) == sorted(nodes)
    assert found["hidden"] == 0
    for node, parent in listed:
        of = record(nodes[node["id"]])
        assert parent == next((each for each, _ in of.parents), None)
        assert node["title"] == of.title != ""
        assert (node["level"], node["documents"]) == (of.level, len(of.documents))
        assert node["document"] == (of.whole_document or None)
        below = sum(child["chunks"] for child in node["nodes"])
        assert node["chunks"] == (below if of.level else 1)
        order = [child.node_id for child in nodes[node["id"]].child_nodes or ()]
        assert [c["id"] for c in node["nodes"]] == [
            c for c in order if c in {child["id"] for child in node["nodes"]}
        ]
    assert {node["document"] for node, _ in listed} >= (
        {None} if hierarchy.__name__ == "RaptorHierarchy" else {d.doc_id for d in documents()}
    )


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_is_deeper_is_counted(stored, depth):
    index, nodes = stored[SemanticHierarchy]
    found = index.tree(depth=depth)
    (root,) = found["nodes"]
    listed = [node for node, _ in entries(found["nodes"])]
    assert found["hidden"] == len(nodes) - len(listed) > 0
    assert root["chunks"] == sum(record(node).level == 0 for node in nodes.values())
    deepest = max(_depths(found["nodes"]))
    assert deepest == depth


def _depths(listed, depth=0):
    for node in listed:
        yield depth
        yield from _depths(node["nodes"], depth + 1)


def test_by_default_as_many_generations_as_fit_but_one_at_least(stored, monkeypatch):
    index, _ = stored[SemanticHierarchy]
    sizes = [len([*entries(index.tree(depth=depth)["nodes"])]) for depth in range(4)]
    for most, depth in ((1, 1), (sizes[1], 1), (sizes[2] - 1, 1), (sizes[2], 2), (999, 3)):
        monkeypatch.setattr("hierindex.retrieve.tree.FIRST_LOOK", most)
        assert len([*entries(index.tree()["nodes"])]) == sizes[depth]


def test_under_a_node(stored):
    index, _ = stored[SemanticHierarchy]
    whole = index.tree(depth=99)
    for i, (node, _) in enumerate(entries(whole["nodes"])):
        (found,) = index.tree(node["id"][: 12 if i % 2 else None], depth=99)["nodes"]
        assert found == node


def test_more_nodes_than_are_read_by_their_ids(stored, monkeypatch):
    index, _ = stored[SemanticHierarchy]
    whole = index.tree(depth=1)
    monkeypatch.setattr("hierindex.retrieve.tree.MANY", 1)
    assert index.tree(depth=1) == whole


def test_a_deletion_leaves_roots_in_the_order_of_their_documents(tmp_path):
    store = HierarchyStore(tmp_path)
    store.add(tree())
    store.delete("a.txt")
    index = HierarchicalIndex(store)
    found = index.tree(depth=99)
    assert [node["document"] for node in found["nodes"]] == ["b.txt", "c.txt", "d.txt"]
    assert index.info()["titles"] == [
        {node["id"]: node["title"] for node in found["nodes"]}[root]
        for root in index.info()["roots"]
    ]
    for name in "bcd":
        store.delete(f"{name}.txt")
    assert index.tree() == {"nodes": [], "hidden": 0}


def test_a_child_that_its_parent_does_not_name_comes_last(tmp_path):
    """As while a pipeline adds nodes."""

    def node(name, level, parent=None, children=()):
        place = metadata_of(level=level, parents=((parent, 1.0),) if parent else ())
        links = {NodeRelationship.CHILD: [RelatedNodeInfo(node_id=c) for c in children]}
        return TextNode(
            id_=name,
            text=name,
            embedding=HashingEmbedding().get_text_embedding(name),
            metadata=place,
            relationships=links if children else {},
        )

    store = HierarchyStore(tmp_path)
    store.add([node("a", 0, "p"), node("b", 0, "p"), node("p", 1, None, ["b"])])
    (top,) = HierarchicalIndex(store).tree()["nodes"]
    assert [child["id"] for child in top["nodes"]] == ["b", "a"]


@pytest.mark.parametrize("depth", [-1, 1.5, True])
def test_a_depth_is_a_whole_number(stored, depth):
    with pytest.raises(InputError, match="depth must be an integer of at least 0"):
        stored[SemanticHierarchy][0].tree(depth=depth)


def test_an_unknown_node_and_no_index(stored, tmp_path):
    with pytest.raises(InputError, match="No nodes have an id that begins with 'zz'"):
        stored[SemanticHierarchy][0].tree("zz")
    with pytest.raises(IndexNotFoundError):
        HierarchicalIndex(HierarchyStore(tmp_path / "none")).tree()
