"""The tree as JSON."""

import json

import pytest
from llama_index.core.schema import TextNode
from records import metadata_of
from store.trees import columns_of

from hierindex import HierarchicalIndex, HierarchyStore, InputError, to_json, to_tree
from hierindex.node import Quote, Span


def test_the_tree_hangs_together(soft) -> None:
    tree = to_tree(soft)
    nodes = {node["id"]: node for node in tree["nodes"]}
    assert len(nodes) == len(tree["nodes"]) == len(columns_of(soft.store, "id")["id"])
    assert tree["documents"] == ["a.txt", "b.txt", "c.txt", "d.txt"]
    assert tree["embed_model"] == "hashing"
    assert tree["roots"] == soft.info()["roots"]
    for node in tree["nodes"]:
        assert node == soft.describe(node["id"])
        assert node["citations"]
        assert all(node["id"] in nodes[parent["id"]]["children"] for parent in node["parents"])
        assert sum(parent["weight"] for parent in node["parents"]) in (0, pytest.approx(1))
        for child in node["children"]:
            assert node["id"] in {parent["id"] for parent in nodes[child]["parents"]}


def test_the_order_is_that_of_the_documents(soft, tmp_path) -> None:
    tree = to_tree(soft)
    places = [
        (node["level"], node["documents"][0], node["citations"][0]["start"])
        for node in tree["nodes"]
        if node["level"] == 0
    ]
    assert places == sorted(places)
    other = HierarchyStore(tmp_path / "other")
    other.add(soft.store.get_nodes()[::-1])
    assert to_tree(HierarchicalIndex(other)) == tree


def test_a_file_holds_the_tree(soft, tmp_path) -> None:
    assert to_json(soft, tmp_path / "tree.json") == len(soft.store.get_nodes())
    assert json.loads((tmp_path / "tree.json").read_bytes()) == to_tree(soft)


def test_several_parents_any_script_and_no_number(tmp_path) -> None:
    record = metadata_of(
        level_max=1,
        parents=(("aa", 0.75), ("bb", 0.25)),
        documents=("ü.pdf",),
        quotes=(Quote(0, 2, Span("ü.pdf", 7, 9, page=3)),),
    )
    node = TextNode(
        id_="cc",
        text="塔\U0001f5fc",
        embedding=[1.0],
        metadata={"größe": float("nan"), **record},
    )
    store = HierarchyStore(tmp_path / "index")
    store.add([node])
    to_json(HierarchicalIndex(store), tmp_path / "tree.json")
    written = (tmp_path / "tree.json").read_text("utf-8")
    assert "塔\U0001f5fc" in written
    (read,) = json.loads(written, parse_constant=pytest.fail)["nodes"]
    assert read["parents"] == [{"id": "aa", "weight": 0.75}, {"id": "bb", "weight": 0.25}]
    assert read["citations"] == [{"document": "ü.pdf", "start": 7, "end": 9, "page": 3}]
    assert read["metadata"] == {"größe": None}


def test_what_is_deleted_is_not_named(index) -> None:
    gone = {n["id"] for n in to_tree(index)["nodes"] if "a.txt" in n["documents"]}
    index.store.delete("a.txt")
    tree = to_tree(index)
    assert tree["documents"] == ["b.txt", "c.txt", "d.txt"]
    linked = {i for n in tree["nodes"] for i in [*n["children"], *(p["id"] for p in n["parents"])]}
    assert linked
    assert not linked & gone


def test_nothing_to_write(nothing, tmp_path) -> None:
    with pytest.raises(InputError, match=r"holds no index|is empty"):
        to_json(nothing, tmp_path / "tree.json")
    assert not (tmp_path / "tree.json").exists()
