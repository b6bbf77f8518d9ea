"""Outlines of trees of each kind: what they cover, what they leave out and what they cost."""

import re

import pytest
from fakes import HashingEmbedding
from indexes import where
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.utils import get_tokenizer
from records import metadata_of
from store.oracle import Oracle
from store.trees import HIERARCHIES, documents, record, tree

from hierindex import HierarchicalIndex, HierarchyStore
from hierindex.errors import InputError

QUESTION = "the harbour met a lantern"
PLENTY = 100_000
BUDGETS = [60, 150, 400, PLENTY]


@pytest.fixture(scope="module")
def index(store):
    return HierarchicalIndex(store, HashingEmbedding())


def n_tokens(found):
    return sum(len(get_tokenizer()(each.text)) for each in found)


def ids(found):
    return [each.node_id for each in found]


@pytest.mark.spread
@pytest.mark.parametrize("nodes", HIERARCHIES, indirect=True)
@pytest.mark.parametrize("question", [None, QUESTION])
@pytest.mark.parametrize("budget", BUDGETS)
def test_no_node_is_above_another(index, budget, question):
    found = index.outline(budget, question)
    assert found
    assert n_tokens(found) <= budget
    assert not {above for each in found for above in each.path} & {*ids(found)}
    assert all(0 < each.score <= 1 for each in found)
    assert sum(each.score for each in found) <= 1 + 1e-9


@pytest.mark.spread
@pytest.mark.parametrize("nodes", HIERARCHIES, indirect=True)
@pytest.mark.parametrize("question", [None, QUESTION])
def test_plenty_of_tokens_show_all_of_the_text_in_order(index, nodes, question):
    found = index.outline(PLENTY, question)
    texts = {document.doc_id: document.text for document in documents()}
    said = [s for each in found for s in each.text.replace(". ", ".  ").split("  ")]
    assert said == [s for text in texts.values() for s in text.split("  ")]
    spans = [span for each in found for span in each.citations]
    assert said == [texts[span.document][span.start : span.end] for span in spans]
    assert sum(each.score for each in found) == pytest.approx(1)


def test_few_tokens_show_summaries(index):
    levels = [max(record(each.node).level for each in index.outline(b)) for b in BUDGETS]
    assert levels[0] > levels[-1] == 0


@pytest.mark.spread
@pytest.mark.parametrize("of", ["a.txt", ["b.txt", "d.txt"]])
@pytest.mark.parametrize("budget", BUDGETS)
def test_of_documents(index, of, budget):
    found = index.outline(budget, of=of)
    named = {of} if isinstance(of, str) else {*of}
    assert found
    assert all({*record(each.node).documents} <= named for each in found)
    if budget == PLENTY:
        assert sum(each.score for each in found) == pytest.approx(1)
        assert {d for each in found for d in record(each.node).documents} == named


@pytest.mark.parametrize("nodes", HIERARCHIES, indirect=True)
def test_of_a_node(index, nodes):
    """All chunks under it, also those that have a stronger parent."""
    oracle = Oracle(nodes)
    above = [node for node in nodes if record(node).level]
    for i, node in enumerate([nodes[0], *above[::2], above[-1]]):
        found = index.outline(PLENTY, of=node.node_id[: 12 if i % 2 else None])
        assert {*ids(found)} == {*oracle.chunks_under(node.node_id)}
        assert sum(each.score for each in found) == pytest.approx(1)


def soft(tmp_path):
    """Two chunks under a summary each, and under a summary of both that is nobody's strongest."""
    children = {"x": [], "y": [], "of x": ["x"], "of y": ["y"], "both": ["x", "y"]}
    parents = {each: ((f"of {each}", 0.9), ("both", 0.1)) for each in "xy"}
    nodes = []
    for at, (name, below) in enumerate(children.items()):
        record = metadata_of(
            level=int(bool(below)),
            level_max=int(bool(below)),
            documents=(*(below or [name]),),
            parents=parents.get(name, ()),
            n_tokens=8,
        )
        links = [RelatedNodeInfo(node_id=each) for each in below]
        nodes.append(
            TextNode(
                id_=name,
                text=f"The tale of {name}.",
                embedding=[1.0, at],
                metadata=record,
                relationships={NodeRelationship.CHILD: links} if links else {},
            )
        )
    store = HierarchyStore(tmp_path)
    store.add(nodes)
    return store


def test_a_summary_that_is_no_strongest_parent_is_not_text(tmp_path):
    index = HierarchicalIndex(soft(tmp_path))
    assert ids(index.outline(PLENTY)) == ["x", "y"]
    found = index.outline(PLENTY, of="both")
    assert ids(found) == ["x", "y"]
    assert sum(each.score for each in found) == pytest.approx(1)
    least = min(n_tokens([each]) for each in found)
    assert ids(index.outline(2 * least - 1, of="both")) == ["both"]


def test_a_summary_that_has_lost_its_text_is_not_text(tmp_path):
    store = soft(tmp_path)
    store.delete_nodes(["x"])
    index = HierarchicalIndex(store)
    assert ids(index.outline(PLENTY)) == ["y"]
    assert index.outline(PLENTY, of="of x") == []
    store.delete_nodes(["y"])
    assert index.outline(PLENTY) == []


@pytest.mark.parametrize("most", [0, 1000])
def test_of_a_node_beside_a_document(index, nodes, monkeypatch, most):
    """Whether the rows of the documents are read, or, as of too many documents, all rows."""
    monkeypatch.setattr("hierindex.retrieve.outline.MANY", most)
    chunk = next(node for node in nodes if record(node).documents == ("b.txt",))
    found = index.outline(PLENTY, of=[chunk.node_id, "c.txt"])
    assert {d for each in found for d in record(each.node).documents} == {"b.txt", "c.txt"}


def test_of_nothing(index):
    assert index.outline(of=[]) == []
    message = r"No document has the id 'bb.txt'; the nearest is b.txt\. No nodes have an id"
    with pytest.raises(InputError, match=message):
        index.outline(of=["a.txt", "bb.txt"])


def test_a_filter_on_levels(index, nodes):
    found = index.outline(PLENTY, filters=where(hierindex_level=1))
    assert found
    assert {record(each.node).level for each in found} == {1}


@pytest.mark.spread
@pytest.mark.parametrize("nodes", HIERARCHIES, indirect=True)
@pytest.mark.parametrize("question", [None, QUESTION])
@pytest.mark.parametrize("budget", BUDGETS)
def test_parts_have_only_sentences_of_theirs(index, nodes, budget, question):
    texts = {document.doc_id: document.text for document in documents()}
    whole = {node.node_id: node.text for node in nodes}
    for each in index.outline(budget, question):
        *quotes, last = record(each.node).quotes
        assert last.to == len(each.text)
        for quote in (*quotes, last):
            said, place = each.text[quote.at : quote.to], quote.source
            assert said == texts[place.document][place.start : place.end]
            assert said in texts[place.document].split("  ")
            assert said in whole[each.node_id]


@pytest.mark.parametrize("of", [None, "a.txt"])
def test_a_budget_smaller_than_any_sentence(index, of):
    with pytest.raises(InputError, match="No sentence fits a budget of 1 token") as error:
        index.outline(1, of=of)
    least = int(re.search(r"; the shortest has (\d+)\.", str(error.value))[1])
    with pytest.raises(InputError, match=f"a budget of {least - 1} tokens; the .* has {least}."):
        index.outline(least - 1, of=of)
    (found,) = index.outline(least, of=of)
    assert n_tokens([found]) <= least


@pytest.mark.parametrize("budget", [0, -1, 1.5, "9", None])
def test_a_budget_that_is_no_count(index, budget):
    with pytest.raises(InputError, match="budget must be an integer of at least 1"):
        index.outline(budget)


def test_what_is_like_the_question_counts_for_more(index, nodes):
    like = next(n for n in nodes if record(n).documents == ("b.txt",) and record(n).level == 0)
    asked, plain = index.outline(PLENTY, like.text), index.outline(PLENTY)
    gain = {one.node_id: one.score / two.score for one, two in zip(asked, plain, strict=True)}
    assert max(gain, key=gain.__getitem__) == like.node_id
    assert gain[like.node_id] > 1 > min(gain.values()) > 0


def test_without_a_question_no_model_is_loaded(store):
    class Unloaded(HierarchicalIndex):
        embed_model = property(lambda self: pytest.fail("loaded"))

    assert Unloaded(store).outline()


def test_an_empty_index(tmp_path):
    assert HierarchicalIndex(HierarchyStore(tmp_path)).outline() == []
    store = HierarchyStore(tmp_path / "emptied")
    store.add([TextNode(id_="n", text="t", embedding=[1.0, 0.0])])
    assert ids(HierarchicalIndex(store).outline()) == ["n"]
    store.delete_nodes(["n"])
    assert HierarchicalIndex(store).outline() == []


def test_a_tree_without_a_root_and_one_that_has_lost_rows(tmp_path):
    store = HierarchyStore(tmp_path)
    nodes = tree(max_levels=1)
    store.add(nodes)
    index = HierarchicalIndex(store)
    for budget in (60, 400):
        assert n_tokens(index.outline(budget)) <= budget
    store.delete_nodes([n.node_id for n in nodes if record(n).level == 1][:1])
    for budget in (60, 400):
        found = index.outline(budget)
        assert found
        assert n_tokens(found) <= budget
    store.delete("a.txt")
    gone = next(d.text for d in documents() if d.doc_id == "a.txt").split("  ")
    assert not [s for s in gone for each in index.outline(PLENTY) if s in each.text]


@pytest.mark.spread
@pytest.mark.parametrize("question", [None, QUESTION])
def test_the_order_of_the_rows_is_of_no_account(index, nodes, tmp_path, question):
    store = HierarchyStore(tmp_path)
    for half in (nodes[1::2], nodes[::2]):
        store.add(half[::-1])
    again = HierarchicalIndex(store, HashingEmbedding())
    for budget in (150, PLENTY):
        found, same = index.outline(budget, question), again.outline(budget, question)
        assert ids(found) == ids(same)
        assert [each.score for each in found] == pytest.approx([each.score for each in same])
