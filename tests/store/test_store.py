import asyncio
from concurrent.futures import ThreadPoolExecutor

import lancedb
import numpy as np
import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import Document, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from records import replace_all
from store.trees import HIERARCHIES, columns_of, linked, record, tree
from strategies import seeds

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy
from hierindex.errors import FormatError, InputError


def node(node_id="a", text="text", embedding=(1.0, 0.0), **metadata):
    return TextNode(id_=node_id, text=text, embedding=list(embedding), metadata=metadata)


def ids(nodes):
    return [node.node_id for node in nodes]


def by_id(nodes):
    return {node.node_id: node for node in nodes}


def where(key, value, operator=FilterOperator.EQ):
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def asking(*embedding, **fields):
    return VectorStoreQuery(query_embedding=list(embedding), similarity_top_k=100, **fields)


def single_precision(nodes):
    """The nodes as a store of 32-bit numbers keeps them."""
    kept = [node.model_copy(deep=True) for node in nodes]
    for node in kept:
        node.embedding = np.float32(node.embedding).tolist()
    return kept


@pytest.fixture
def store(tmp_path):
    return HierarchyStore(tmp_path / "index")


def test_adding_twice_is_adding_once(store):
    nodes = tree()
    assert store.add(nodes) == store.add(nodes) == ids(nodes)
    assert by_id(store.get_nodes()) == by_id(single_precision(nodes))


@pytest.mark.parametrize(
    "before", [[], ["b"], ["a"]], ids=["new table", "id is new", "id is known"]
)
def test_of_one_id_twice_in_a_batch_the_last_stays(store, before):
    store.add([node(node_id, "old") for node_id in before])
    store.add([node("a", "first"), node("a", "last")])
    columns = columns_of(store, "id", "text")
    assert sorted(columns["id"]) == sorted({"a", *before})
    assert columns["text"][columns["id"].index("a")] == "last"


def test_an_addition_waits_for_another_writer(tmp_path):
    """A table that another writer makes meanwhile is added to and not overwritten."""
    builder = HierarchyStore(tmp_path)
    with ThreadPoolExecutor(1) as pool, builder.table.writing("build"):
        waiting = pool.submit(HierarchyStore(tmp_path).add, [node("b")])
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        builder.add([node("a")])
    assert waiting.result() == ["b"]
    assert set(ids(HierarchyStore(tmp_path).get_nodes())) == {"a", "b"}


def test_input_nodes_are_not_modified(store):
    nodes = tree()
    before = [node.model_copy(deep=True) for node in nodes]
    store.add(nodes)
    store.delete_nodes([nodes[0].node_id])
    assert nodes == before


def test_ids_that_are_not_there_are_left_out(store):
    store.add([node(i) for i in "ab"])
    assert ids(store.get_nodes(["x", "b", "x' OR 1=1 --", "\0"])) == ["b"]
    assert store.get_nodes([]) == []
    assert store.get_nodes(["x"]) == []


def test_nodes_by_ids_and_filters(store):
    store.add([node(i, n=n) for n, i in enumerate("abcd")])
    assert ids(store.get_nodes(["d", "c", "a"], where("n", 2, FilterOperator.GTE))) == ["d", "c"]
    assert ids(store.get_nodes(filters=where("n", 2))) == ["c"]


def test_a_document_is_stored_as_a_text_node(store):
    store.add([Document(id_="d", text="Whole.", embedding=[1.0, 0.0], metadata={"a": 1})])
    (found,) = store.get_nodes()
    assert (found.node_id, found.text, found.metadata) == ("d", "Whole.", {"a": 1})
    store.delete("d")
    assert store.get_nodes() == []


@pytest.mark.spread
@pytest.mark.parametrize("hierarchy", HIERARCHIES)
@pytest.mark.parametrize("gone", ["a.txt", "c.txt", "d.txt"])
def test_nothing_derived_from_a_deleted_document_survives(store, hierarchy, gone):
    nodes = tree(hierarchy)
    store.add(nodes)
    store.delete(gone)
    left = store.get_nodes()
    assert set(ids(left)) == {n.node_id for n in nodes if gone not in record(n).documents}
    assert not set().union(*map(linked, left)) - set(ids(left))
    columns = columns_of(store, "parent_ids", "child_ids", "documents")
    assert {i for name in ("parent_ids", "child_ids") for row in columns[name] for i in row} <= set(
        ids(left)
    )
    assert gone not in {document for row in columns["documents"] for document in row}
    before = by_id(single_precision(nodes))
    for n in left:
        assert (n.text, n.embedding) == (before[n.node_id].text, before[n.node_id].embedding)


def test_deleting_an_unknown_document_changes_nothing(store):
    store.add(tree())
    before = store.snapshot().generation
    for document in ("", "nobody.txt", "a.tx", "x' OR 1=1 --", "*", "%"):
        store.delete(document)
    assert store.snapshot().generation == before
    assert len(store.get_nodes()) == len(tree())


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        pytest.param({"node_ids": ["a", "x"]}, "bcd", id="ids"),
        pytest.param({"node_ids": []}, "abcd", id="no ids"),
        pytest.param({"filters": where("n", 2, FilterOperator.LT)}, "cd", id="filters"),
        pytest.param({"node_ids": ["a", "d"], "filters": where("n", 3)}, "abc", id="both"),
        pytest.param({"filters": where("n", "x' OR 1=1 --")}, "abcd", id="SQL"),
        pytest.param({"node_ids": ["x' OR 1=1 --"]}, "abcd", id="SQL as an id"),
    ],
)
def test_deleting_nodes(store, arguments, left):
    store.add([node(i, n=n) for n, i in enumerate("abcd")])
    store.delete_nodes(**arguments)
    assert ids(store.get_nodes()) == list(left)


def test_after_clearing_any_vectors_may_come(store):
    store.add([node("a")])
    store.clear()
    store.clear()
    assert not store.snapshot().exists
    assert store.get_nodes() == []
    store.add([node("b", embedding=(1.0, 2.0, 3.0))])
    assert ids(store.get_nodes()) == ["b"]


NOTHING = {
    "get_nodes": lambda store: store.get_nodes() == [],
    "get_nodes by id": lambda store: store.get_nodes(["a"]) == [],
    "query": lambda store: store.query(asking(1.0)).ids == [],
    "query with filters": lambda store: store.query(asking(1.0, node_ids=["a"])).nodes == [],
    "columns": lambda store: columns_of(store, "id", "level") == {"id": [], "level": []},
    "exists": lambda store: store.snapshot().exists is False,
    "delete": lambda store: store.delete("a.txt") is None,
    "delete_nodes": lambda store: store.delete_nodes(["a"]) == 0,
    "clear": lambda store: store.clear() is None,
    "add nothing": lambda store: store.add([]) == [],
}


@pytest.mark.spread
@pytest.mark.parametrize("ask", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("folder", ["missing", "missing/in/missing", "."])
def test_where_nothing_was_written_nothing_is_found_and_made(tmp_path, ask, folder):
    assert ask(HierarchyStore(tmp_path / folder))
    assert list(tmp_path.iterdir()) == []


def test_what_llama_index_passes_on_is_an_option_or_refused(store):
    store.add(nodes := tree())
    index = VectorStoreIndex.from_vector_store(store, embed_model=HashingEmbedding())
    known = {"partial_summaries": True, "mmr_prefetch_k": 5}
    assert index.as_retriever(vector_store_kwargs=known).retrieve("kettle")
    retriever = index.as_retriever(vector_store_kwargs={"where": "author = 'Ada'"})
    for call in (
        lambda: retriever.retrieve("kettle"),
        lambda: store.add(nodes, where="x"),
        lambda: asyncio.run(store.async_add(nodes, where="x")),
        lambda: index.delete_ref_doc("a", where="x"),
        lambda: store.delete_nodes([nodes[0].node_id], where="x"),
        lambda: store.get_nodes(where="x"),
    ):
        with pytest.raises(TypeError, match="'where'"):
            call()
    assert len(store.get_nodes()) == len(nodes)


@given(seeds(), st.integers(1, 8), st.sampled_from([1e-3, 1.0, 1e3]))
def test_scores_are_cosines_best_first(tmp_path_factory, seed, n_dims, scale):
    rng = np.random.default_rng(seed)
    X, question = scale * rng.normal(size=(7, n_dims)), rng.normal(size=n_dims)
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add([node(str(i), embedding=x) for i, x in enumerate(X)])
    result = store.query(asking(*question))
    cosines = X @ question / np.linalg.norm(X, axis=1) / np.linalg.norm(question)
    assert sorted(result.ids) == [str(i) for i in range(7)]
    assert ids(result.nodes) == result.ids
    np.testing.assert_allclose(
        result.similarities, [cosines[int(i)] for i in result.ids], atol=1e-5
    )
    assert result.similarities == sorted(result.similarities, reverse=True)


def test_a_query_gives_whole_nodes_without_vectors(store):
    nodes = tree()
    store.add(nodes)
    found = by_id(store.query(asking(*nodes[0].embedding)).nodes)
    for n in nodes:
        assert found[n.node_id] == n.model_copy(update={"embedding": None})


BAD_VECTORS = {
    "none": (None, "has 0"),
    "empty": ([], "0"),
    "another dimension": ([1.0, 0.0, 0.0], "3"),
    "not a number": ([float("nan"), 1.0], "finite"),
    "infinite": ([float("inf"), 1.0], "finite"),
}


@pytest.mark.spread
@pytest.mark.parametrize(("embedding", "says"), BAD_VECTORS.values(), ids=BAD_VECTORS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_nodes_with_a_bad_vector_are_refused_whole(store, embedding, says, place):
    store.add([node("held")])
    new = [node("b"), node("c")]
    new.insert(place, TextNode(id_="bad", text="text", embedding=embedding))
    with pytest.raises(InputError, match=says):
        store.add(new)
    assert ids(store.get_nodes()) == ["held"]


def test_vectors_of_another_dimension_are_refused_by_name(store):
    store.add([node()])
    with pytest.raises(InputError, match=r"vectors of 2 dimensions, the nodes have 3; use the"):
        store.add([node("b", embedding=(1.0, 2.0, 3.0))])
    with pytest.raises(InputError, match=r"vectors of 2 dimensions, the question has 1; use the"):
        store.query(asking(1.0))


@pytest.mark.parametrize(
    "embedding",
    [None, [], [float("nan"), 1.0], [1.0, float("inf")], [0.0, 0.0]],
    ids=["none", "empty", "not a number", "infinite", "zeros"],
)
def test_a_question_needs_a_direction(store, embedding):
    store.add([node()])
    with pytest.raises(InputError, match=r"A query needs an embedding of finite numbers"):
        store.query(VectorStoreQuery(query_embedding=embedding))


def sync(store, name, *arguments):
    return getattr(store, name)(*arguments)


def sync_in_a_running_loop(store, name, *arguments):
    async def inside():
        return sync(store, name, *arguments)

    return asyncio.run(inside())


def awaited(store, name, *arguments):
    twin = "async_add" if name == "add" else f"a{name}"
    return asyncio.run(getattr(store, twin)(*arguments))


@pytest.mark.parametrize("call", [sync, sync_in_a_running_loop, awaited])
def test_sync_and_async_do_the_same(store, call):
    assert call(store, "query", asking(1.0, 0.0)).ids == []
    assert call(store, "add", [node(i, n=n) for n, i in enumerate("abcd")]) == list("abcd")
    assert ids(call(store, "get_nodes", ["c", "a"])) == ["c", "a"]
    result = call(store, "query", asking(1.0, 0.0, filters=where("n", 1)))
    assert (result.ids, result.similarities) == (["b"], [1.0])
    call(store, "delete_nodes", ["b"])
    call(store, "delete", "c")
    assert ids(call(store, "get_nodes", None, where("n", 0, FilterOperator.GT))) == ["d"]
    call(store, "clear")
    assert not store.snapshot().exists


def test_a_report_outlives_changes_and_a_generation_grows_with_each(store):
    report = {"é\0": [1, True, None], "": -(2**70), "text": "日本"}
    store.add([node("z")])
    assert store.snapshot().report() == {}
    generations = [replace_all(store, [node("a"), node("b")], report)]
    for change in (
        lambda: store.add([node("c")]),
        lambda: store.delete("a"),
        lambda: store.delete_nodes(["b"]),
    ):
        change()
        generations.append(store.snapshot().generation)
        assert HierarchyStore(store.uri).snapshot().report() == report
    assert generations == [2, 3, 4, 5]


def test_a_table_of_another_version_says_so_and_can_be_replaced(store):
    store.add(tree())
    table = store.client.open_table("nodes")
    table.drop_columns(["whole_document"])
    table.tags.update("generation-1", table.version)
    asked = [
        store.snapshot,
        store.get_nodes,
        lambda: store.query(asking(*[1.0] * 64)),
        lambda: store.add(tree()),
        lambda: store.delete("a.txt"),
    ]
    for ask in asked:
        with pytest.raises(
            FormatError, match=r"another version of hierindex.*; build it again with --replace"
        ):
            ask()
    replace_all(store, tree())
    assert len(store.get_nodes()) == len(tree())


def test_a_table_of_somebody_else_is_neither_read_nor_replaced(tmp_path):
    theirs = lancedb.connect(tmp_path).create_table("nodes", [{"mine": "x", "vector": [0.1]}])
    with pytest.raises(InputError, match="a table that hierindex did not write; name another"):
        HierarchyStore(tmp_path).get_nodes()
    with pytest.raises(InputError, match="did not write"):
        HierarchicalIndex.build(
            [Document(text="A text.")], tmp_path, hierarchy=SemanticHierarchy(HashingEmbedding())
        )
    assert theirs.to_arrow()["mine"].to_pylist() == ["x"]


def test_deletions_at_once_delete_all_that_they_name(tmp_path):
    nodes = tree()
    (store := HierarchyStore(tmp_path)).add(nodes)
    going = [n.node_id for n in nodes if record(n).level == 0][:4]

    async def delete_all():
        await asyncio.gather(*(store.adelete_nodes([node_id]) for node_id in going))

    asyncio.run(delete_all())
    left = {n.node_id for n in store.get_nodes()}
    assert left == {n.node_id for n in nodes} - set(going)
    assert not {i for n in store.get_nodes() for i in linked(n)} & set(going)


def test_empty_filters_delete_nothing(store):
    store.add([node()])
    with pytest.raises(InputError, match=r"clear\(\) deletes all"):
        store.delete_nodes()
    for condition in FilterCondition:
        with pytest.raises(InputError, match="Name the nodes"):
            store.delete_nodes(filters=MetadataFilters(filters=[], condition=condition))
    with pytest.raises(InputError, match="Name the nodes"):
        store.delete_nodes(filters=MetadataFilters(filters=[MetadataFilters(filters=[])]))
    assert ids(store.get_nodes()) == ["a"]


def test_the_first_write_is_one_commit(tmp_path):
    (store := HierarchyStore(tmp_path)).add(tree())
    assert len(store.client.open_table("nodes").list_versions()) <= 3  # rows, indices, details
