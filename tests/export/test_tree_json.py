"""The tree as JSON."""

import json

import pytest
from export.test_report import data_of
from indexes import built
from llama_index.core.schema import TextNode
from records import metadata_of
from store.trees import columns_of
from summarize.groups import RewriterOf

from hierindex import HierarchicalIndex, HierarchyStore, Quote, Span
from hierindex.export import to_html, to_json, to_langchain_documents, to_tree
from hierindex.summarize import TwoStageSummarizer


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


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """An index whose summaries have a sentence of their sources and an invented one."""

    def written(text: str) -> str:
        return f"{text.partition('.')[0]}. The bell cost 777 crowns."

    summarizer = TwoStageSummarizer(RewriterOf(written), unsupported="keep")
    text = " ".join(
        f"On day {i} the keeper of the lamp met the crew of boat {i}." for i in range(9)
    )
    options = {"summarizer": summarizer, "chunk_size": 50, "max_children": 3}
    return built({"a.txt": text}, tmp_path_factory.mktemp("checked"), **options)


def test_what_became_of_sentences_is_exported(checked, tmp_path) -> None:
    to_json(checked, tmp_path / "tree.json")
    tree = json.loads((tmp_path / "tree.json").read_bytes())
    assert tree == to_tree(checked)
    chunks, summaries = ([n for n in tree["nodes"] if (n["level"] > 0) == up] for up in (0, 1))
    assert all((n["grounding"], n["sentences"]) == (None, []) for n in chunks)
    first = [n for n in summaries if n["level"] == 1]
    assert first
    for node in first:
        faults = ["numbers not in the sources: 777"]
        counts = dict.fromkeys(("corrected", "replaced", "dropped"), 0)
        assert node["grounding"] == {"supported": 1, **counts, "unsupported": 1, "faults": faults}
        told = [(node["text"][s["at"] : s["to"]], s["is"]) for s in node["sentences"]]
        assert [is_what for _, is_what in told] == ["verbatim", "unsupported"]
        assert told[1][0] == "The bell cost 777 crowns."
    total = checked.last_build.grounding
    assert total.unsupported == sum(n["grounding"]["unsupported"] for n in summaries)
    assert total.supported == sum(n["grounding"]["supported"] for n in summaries)
    assert json.loads(json.dumps(checked.last_build.to_json()))["grounding"] == total.to_json()
    for document, node in zip(to_langchain_documents(checked), tree["nodes"], strict=True):
        for key in ("grounding", "sentences"):
            assert document.metadata[f"hierindex_{key}"] == node[key]


def test_a_report_tells_what_no_source_supports(checked, tmp_path) -> None:
    to_html(checked, tmp_path / "report.html")
    nodes = data_of(tmp_path / "report.html")["nodes"]
    for node in nodes:
        described = checked.describe(node["id"])
        assert node["grounding"] == described["grounding"]
        unsupported = [q for q in node["quotes"] if "document" not in q]
        bounds = [(s["at"], s["to"]) for s in described["sentences"] if s["is"] == "unsupported"]
        assert [(q["at"], q["to"]) for q in unsupported] == bounds
    assert any(node["grounding"] for node in nodes)
