"""The map of an index: every chunk once, under its parent at a level."""

import pytest
from indexes import built
from store.trees import HIERARCHIES, record

from hierindex import HierarchicalIndex, SemanticHierarchy
from hierindex.errors import IndexNotFoundError, InputError, LevelError
from hierindex.retrieve import tree
from hierindex.retrieve.tree import chunk_map


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
    assert all(
        nodes[p["id"]].metadata and p["title"] == record(nodes[p["id"]]).title
        for p in answer["parents"]
    )


def test_all_levels_have_the_same_places_which_are_found_once(stored, monkeypatch):
    index, _ = stored[SemanticHierarchy]
    placed = {p["id"]: (p["x"], p["y"]) for p in found(index, 1)["points"]}
    monkeypatch.setattr(tree, "plane_coordinates", None)
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
    monkeypatch.setattr(tree, "MAX_POINTS", 7)
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
