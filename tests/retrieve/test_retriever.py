import asyncio

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import QueryBundle
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from store.trees import HIERARCHIES, record, tree

from hierindex.errors import HierindexError, InputError, LevelError
from hierindex.retrieve.retriever import HierarchyRetriever
from hierindex.store.lance import HierarchyStore

QUESTION = "the lantern of b3 met a falcon"
ALL = {"top_k": 1000, "token_budget": None}


@pytest.fixture(scope="module", params=HIERARCHIES)
def nodes(request):
    return tree(request.param)


@pytest.fixture(scope="module")
def store(nodes, tmp_path_factory):
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add(nodes)
    return store


@pytest.fixture
def embed_model():
    return HashingEmbedding()


def ids(found):
    return [n.node.node_id for n in found]


def cut(nodes, level):
    return [n for n in nodes if record(n).level <= level <= record(n).level_max]


def highest(nodes):
    return max(record(n).level_max for n in nodes)


def where(condition=FilterCondition.AND, **values):
    filters = [MetadataFilter(key=key, value=value) for key, value in values.items()]
    return MetadataFilters(filters=filters, condition=condition)


def test_a_level_is_its_cut(store, nodes, embed_model):
    for level in range(highest(nodes) + 1):
        found = HierarchyRetriever(store, embed_model, level=level, **ALL).retrieve(QUESTION)
        assert sorted(ids(found)) == sorted(n.node_id for n in cut(nodes, level))


def test_a_cut_stands_for_every_leaf(store, nodes, embed_model):
    by_id = {n.node_id: n for n in nodes}

    def leaves(node):
        children = node.child_nodes or ()
        if not children:
            return {node.node_id}
        return set().union(*(leaves(by_id[child.node_id]) for child in children))

    for level in range(highest(nodes) + 1):
        found = HierarchyRetriever(store, embed_model, level=level, **ALL).retrieve(QUESTION)
        under = set().union(*(leaves(by_id[node_id]) for node_id in ids(found)))
        assert under == {n.node_id for n in nodes if record(n).level == 0}


def test_a_row_that_passed_up_is_in_each_of_its_cuts(tmp_path, embed_model):
    nodes, store = tree(), HierarchyStore(tmp_path)
    store.add(nodes)
    passed = [n for n in nodes if record(n).level == 0 and record(n).level_max == 2]
    assert passed
    for level, there in [(0, True), (1, True), (2, True), (3, False)]:
        found = HierarchyRetriever(store, embed_model, level=level, **ALL).retrieve(QUESTION)
        assert [n.node_id in ids(found) for n in passed] == [there] * len(passed)


@pytest.mark.parametrize("mode", ["collapsed", None])
def test_collapsed_sees_all_levels_best_first(store, nodes, embed_model, mode):
    found = HierarchyRetriever(store, embed_model, mode=mode, **ALL).retrieve(QUESTION)
    assert sorted(ids(found)) == sorted(n.node_id for n in nodes)
    assert {record(n.node).level for n in found} == set(range(highest(nodes) + 1))
    question = embed_model.get_query_embedding(QUESTION)
    cosine = {n.node_id: np.dot(n.embedding, question) for n in nodes}
    np.testing.assert_allclose([n.score for n in found], [cosine[i] for i in ids(found)], atol=1e-5)
    assert (np.diff([n.score for n in found]) <= 0).all()


@pytest.mark.parametrize("top_k", [1, 3, 1000])
@pytest.mark.parametrize("level", [None, 0, 1])
def test_top_k_are_the_first_of_all(store, embed_model, top_k, level):
    options = {"level": level, "token_budget": None}
    of_all = HierarchyRetriever(store, embed_model, top_k=1000, **options).retrieve(QUESTION)
    found = HierarchyRetriever(store, embed_model, top_k=top_k, **options).retrieve(QUESTION)
    assert len(found) == min(top_k, len(of_all))
    assert [n.score for n in found] == [n.score for n in of_all[:top_k]]


@pytest.mark.parametrize("offset", [-1, -1000, 1, 2**40])
def test_a_level_that_is_not_there(store, nodes, embed_model, offset):
    level = offset if offset < 0 else highest(nodes) + offset
    retriever = HierarchyRetriever(store, embed_model, level=level)
    says = rf"^The index has levels 0 to {highest(nodes)}, got level {level}\.$"
    with pytest.raises(LevelError, match=says):
        retriever.retrieve(QUESTION)
    with pytest.raises(LevelError, match=says):
        asyncio.run(retriever.aretrieve(QUESTION))


@pytest.mark.parametrize("level", ["1", 0.5])
def test_a_level_is_a_whole_number(tmp_path, embed_model, level):
    store = HierarchyStore(tmp_path)
    store.add(tree())
    with pytest.raises(InputError):
        HierarchyRetriever(store, embed_model, level=level).retrieve(QUESTION)


def test_nothing_of_a_level_that_is_there_is_no_error(store, embed_model):
    retriever = HierarchyRetriever(store, embed_model, level=1, filters=where(author="nobody"))
    assert retriever.retrieve(QUESTION) == []
    assert asyncio.run(retriever.aretrieve(QUESTION)) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"mode": "level"}, "'level' needs a level", id="level without level"),
        pytest.param({"mode": "collapsed", "level": 1}, "no other takes one", id="level elsewhere"),
        pytest.param({"mode": "traversal"}, "got 'traversal'", id="unknown mode"),
        pytest.param({"top_k": 0}, "at least 1, got 0", id="no top_k"),
        pytest.param({"top_k": -1}, "at least 1, got -1", id="negative top_k"),
        pytest.param({"token_budget": 0}, "at least 1, got 10 and 0", id="no budget"),
        pytest.param({"token_budget": -5}, "and -5", id="negative budget"),
    ],
)
def test_what_does_not_go_together_is_refused_at_once(tmp_path, embed_model, options, says):
    with pytest.raises(InputError, match=says) as caught:
        HierarchyRetriever(HierarchyStore(tmp_path), embed_model, **options)
    assert isinstance(caught.value, HierindexError)
    assert caught.value.exit_status == 2


FILTERS = {
    "one author": where(author="Ada"),
    "either author": where(FilterCondition.OR, author="Bo", level=3),
    "not an author": where(FilterCondition.NOT, author="Ada"),
    "a kind": where(kind="extractive"),
    "another level": where(level=0),
    "documents": MetadataFilters(
        filters=[
            MetadataFilter(key="documents", value=["b.txt", "c.txt"], operator=FilterOperator.ANY)
        ]
    ),
}
ORACLES = {
    "one author": lambda n: n.metadata["author"] == "Ada",
    "either author": lambda n: n.metadata["author"] == "Bo" or record(n).level == 3,
    "not an author": lambda n: n.metadata["author"] != "Ada",
    "a kind": lambda n: record(n).kind == "extractive",
    "another level": lambda n: record(n).level == 0,
    "documents": lambda n: not {"b.txt", "c.txt"}.isdisjoint(record(n).documents),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_hold_within_a_level_and_without(store, nodes, embed_model, name):
    def found(level):
        options = {"level": level, "filters": FILTERS[name], **ALL}
        return ids(HierarchyRetriever(store, embed_model, **options).retrieve(QUESTION))

    assert sorted(found(None)) == sorted(n.node_id for n in nodes if ORACLES[name](n))
    for level in range(highest(nodes) + 1):
        expected = [n.node_id for n in cut(nodes, level) if ORACLES[name](n)]
        assert sorted(found(level)) == sorted(expected)


@pytest.mark.parametrize(
    "options", [{}, {"level": 1}, {"level": 0, "top_k": 3}, {"token_budget": 60}], ids=str
)
def test_async_finds_the_same(store, embed_model, options):
    retriever = HierarchyRetriever(store, embed_model, **options)
    found = retriever.retrieve(QUESTION)
    assert found
    assert asyncio.run(retriever.aretrieve(QUESTION)) == found


@pytest.mark.parametrize("embedding", [[1.0] * 64, [0.1, -0.2] * 32])
def test_an_embedding_that_is_there_is_not_computed_again(store, nodes, embed_model, embedding):
    retriever = HierarchyRetriever(store, embed_model, top_k=1)
    query = QueryBundle(QUESTION, embedding=embedding)
    cosines = np.array([n.embedding for n in nodes]) @ embedding / np.linalg.norm(embedding)
    for (found,) in (retriever.retrieve(query), asyncio.run(retriever.aretrieve(query))):
        assert found.score == pytest.approx(cosines.max(), abs=1e-5)
    assert embed_model.queries == []
    assert embed_model.batches == []


def test_a_question_is_embedded_once(store, embed_model):
    HierarchyRetriever(store, embed_model, level=1).retrieve(QUESTION)
    assert embed_model.queries == [QUESTION]
    asyncio.run(HierarchyRetriever(store, embed_model).aretrieve(QUESTION))
    assert embed_model.queries == [QUESTION] * 2
    assert embed_model.batches == []


def test_another_models_question_is_refused(store):
    with pytest.raises(InputError, match="64 dimensions, the question has 8"):
        HierarchyRetriever(store, HashingEmbedding(dim=8)).retrieve(QUESTION)


@pytest.mark.parametrize("folder", ["missing", "."])
def test_an_empty_folder_has_nothing_to_find(tmp_path, embed_model, folder):
    retriever = HierarchyRetriever(HierarchyStore(tmp_path / folder), embed_model)
    assert retriever.retrieve(QUESTION) == []
    assert asyncio.run(retriever.aretrieve(QUESTION)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_budget_bounds_what_is_retrieved(store, embed_model):
    of_all = HierarchyRetriever(store, embed_model, **ALL).retrieve(QUESTION)
    found = HierarchyRetriever(store, embed_model, top_k=1000, token_budget=100).retrieve(QUESTION)
    assert 0 < len(found) < len(of_all)
    assert ids(found) == [i for i in ids(of_all) if i in set(ids(found))]
