"""A table of contents has each node once, under its strongest parent; a map has each chunk once."""

import pytest
from fakes import HashingEmbedding
from indexes import built
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from records import metadata_of
from store.trees import HIERARCHIES, documents, record, tree

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy
from hierindex.errors import IndexNotFoundError, InputError, LevelError
from hierindex.retrieve.tree import chunk_map


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
    for i, (node, _) in enumerate([*entries(whole["nodes"])][::3]):
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


def found(index, *arguments):
    return chunk_map(index.store.snapshot(), *arguments)


def way_up(nodes, node_id):
    while node_id is not None:
        yield nodes[node_id]
        node_id = next((parent for parent, _ in record(nodes[node_id]).parents), None)


@pytest.mark.spread
@pytest.mark.parametrize("level", [0, 1, 2, "top"])
@pytest.mark.parametrize("hierarchy", HIERARCHIES)
def test_each_chunk_is_under_its_ancestor_of_the_level(stored, hierarchy, level):
    index, nodes = stored[hierarchy]
    at = max(record(n).level for n in nodes.values()) if level == "top" else level
    answer = found(index, level)
    chunks = sorted(node_id for node_id, node in nodes.items() if record(node).level == 0)
    assert [point["id"] for point in answer["points"]] == chunks
    assert answer["chunks"] == len(chunks)
    counts = [0] * len(answer["parents"])
    for point in answer["points"]:
        (expected,) = [
            node.node_id
            for node in way_up(nodes, point["id"])
            if record(node).level <= at <= record(node).level_max
        ]
        if expected == point["id"]:
            assert point["parent"] is None
        else:
            assert answer["parents"][point["parent"]]["id"] == expected
            counts[point["parent"]] += 1
    assert counts == sorted(counts, reverse=True)
    assert 0 not in counts
    assert all(p["title"] == record(nodes[p["id"]]).title for p in answer["parents"])


def test_all_levels_have_the_same_places_which_are_found_once(stored, monkeypatch):
    index, _ = stored[SemanticHierarchy]
    placed = {p["id"]: (p["x"], p["y"]) for p in found(index, 1)["points"]}
    monkeypatch.setattr("hierindex.retrieve.tree.plane_coordinates", None)
    assert placed == {p["id"]: (p["x"], p["y"]) for p in found(index, 2)["points"]}
    again = HierarchicalIndex.open(index.store.uri)
    with pytest.raises(TypeError):
        found(again, 1)
    monkeypatch.undo()
    assert placed == {p["id"]: (p["x"], p["y"]) for p in found(again, 1)["points"]}


def test_a_large_index_is_a_sample(stored, monkeypatch):
    index, _ = stored[SemanticHierarchy]
    whole = found(index)
    few = found(index, 1, 5)
    assert len(few["points"]) == 5
    assert few["chunks"] == whole["chunks"] > 5
    ids = [point["id"] for point in few["points"]]
    assert ids == sorted({*ids})
    monkeypatch.setattr("hierindex.retrieve.tree.MAX_POINTS", 7)
    sample = found(HierarchicalIndex.open(index.store.uri))
    assert len(sample["points"]) == 7
    assert sample["chunks"] == whole["chunks"]
    assert {p["id"] for p in sample["points"]} < {p["id"] for p in whole["points"]}
    assert {p["parent"] for p in sample["points"]} - {None} == {*range(len(sample["parents"]))}


def test_an_index_of_one_chunk_and_of_none(tmp_path):
    index = built({"a": "A bridge."}, tmp_path)
    (point,) = found(index, 0)["points"]
    assert (point["x"], point["y"], point["parent"]) == (0, 0, None)
    index.store.delete("a")
    assert found(index, 0) == {"points": [], "parents": [], "chunks": 0}


def test_what_is_not_there_is_named(stored, tmp_path):
    index, _ = stored[SemanticHierarchy]
    with pytest.raises(LevelError, match="got level 99"):
        found(index, 99)
    with pytest.raises(InputError, match="n must be an integer of at least 1, got 0"):
        found(index, 1, 0)
    with pytest.raises(IndexNotFoundError):
        found(HierarchicalIndex.open(tmp_path / "none"))
