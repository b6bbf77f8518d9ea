"""A search in memory finds what LanceDB finds."""

from pathlib import Path

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from store.trees import tree
from threadpoolctl import threadpool_limits

from hierindex import HierarchyStore
from hierindex.store import scan

FILTERS = [
    None,
    MetadataFilter(key="hierindex_level", value=0),
    MetadataFilter(key="hierindex_level", value=99),
    MetadataFilter(key="author", value="Ada"),
    MetadataFilter(key="author", value="a", operator=FilterOperator.TEXT_MATCH_INSENSITIVE),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> HierarchyStore:
    store = HierarchyStore(tmp_path_factory.mktemp("scanned"))
    store.add(tree())
    return store


def found(store: HierarchyStore, question: str, top_k: int, each) -> tuple[list[str], list[float]]:
    filters = None if each is None else MetadataFilters(filters=[each])
    query = VectorStoreQuery(
        query_embedding=HashingEmbedding().get_query_embedding(question),
        similarity_top_k=top_k,
        filters=filters,
    )
    result = store.query(query)
    return result.ids, result.similarities


@pytest.mark.parametrize("top_k", [1, 5, 1000])
@pytest.mark.parametrize("each", FILTERS, ids=repr)
def test_it_finds_the_same(store, monkeypatch, each, top_k) -> None:
    for question in ("the harbour of a1", "a violin"):
        ids, scores = found(store, question, top_k, each)
        with monkeypatch.context() as patch:
            patch.setattr(scan, "MOST_BYTES", 0)
            expected, theirs = found(store, question, top_k, each)
        np.testing.assert_allclose(scores, theirs, atol=1e-6)
        assert scores == sorted(scores, reverse=True)
        assert {*ids} == {*expected}
        assert (each is not None and each.value == 99) == (not ids)


def test_a_score_depends_on_its_row_alone(tmp_path: Path) -> None:
    """To the last bit: not on the other rows, nor on the threads of numeric libraries."""
    X = np.random.default_rng(0).normal(size=(1003, 64))
    rows = [TextNode(id_=f"{i:04}", text=str(i), embedding=X[i].tolist()) for i in range(len(X))]
    few, all_ = HierarchyStore(tmp_path / "few"), HierarchyStore(tmp_path / "all")
    few.add(rows[-20:])
    all_.add(rows)
    scores = list[dict[str, float]]()
    for store in (few, all_):
        for n_threads in (1, 2):
            with threadpool_limits(n_threads):
                scores.append(dict(zip(*found(store, "harbour", len(X), None), strict=True)))
    assert all(scores[0].items() <= other.items() for other in scores[1:])


def test_of_equal_vectors_the_first_rows_are_found(tmp_path: Path) -> None:
    store = HierarchyStore(tmp_path)
    vector = HashingEmbedding().get_text_embedding("harbour")
    store.add([TextNode(id_=str(i), text="harbour", embedding=vector) for i in range(9)])
    assert found(store, "harbour", 4, None)[0] == ["0", "1", "2", "3"]


def test_many_conditions_are_not_all_remembered(store, monkeypatch) -> None:
    monkeypatch.setattr(scan, "MOST_KNOWN", 3)
    for i in range(9):
        each = MetadataFilter(key="hierindex_level", value=i, operator=FilterOperator.LTE)
        assert found(store, "harbour", 5, each)[0]
        assert len(store.snapshot().known["meeting"]) <= 3


@pytest.mark.parametrize("most", [0, scan.MOST_ROW_BYTES])
def test_rows_in_memory_are_those_of_the_generation(tmp_path: Path, monkeypatch, most) -> None:
    monkeypatch.setattr(scan, "MOST_ROW_BYTES", most)
    store, model = HierarchyStore(tmp_path), HashingEmbedding()

    def written(words: dict[str, str]) -> None:
        vectors = {i: model.get_text_embedding(word) for i, word in words.items()}
        vectors["0"] = [0.0] * len(model.get_text_embedding(""))  # similar to nothing
        words = {"0": "", **words}
        store.add([TextNode(id_=i, text=words[i], embedding=vectors[i]) for i in words])

    def texts() -> dict[str, str]:
        query = VectorStoreQuery(model.get_query_embedding("harbour"), similarity_top_k=9)
        for _ in range(scan.SEARCHES):
            before = store.query(query)
        nodes = store.query(query).nodes
        assert nodes == before.nodes
        return {node.node_id: node.text for node in nodes}

    written({"a": "harbour", "b": "harbour bridge"})
    assert texts() == {"a": "harbour", "b": "harbour bridge"}
    old = store.snapshot()
    written({"b": "violin", "c": "harbour"})
    assert texts() == {"a": "harbour", "b": "violin", "c": "harbour"}
    store.delete_nodes(["a"])
    assert texts() == {"b": "violin", "c": "harbour"}
    assert ("a" in texts_kept(old)) == bool(most)
    assert texts_kept(store.snapshot()) == ({"b", "c"} if most else set())


def texts_kept(snapshot) -> set[str]:
    rows = snapshot.known["rows"]
    return set() if rows is None else {*rows["id"].to_pylist()}


def test_one_search_reads_its_rows_alone(tmp_path: Path, monkeypatch) -> None:
    HierarchyStore(tmp_path).add(tree())
    store = HierarchyStore(tmp_path)
    for _ in range(scan.SEARCHES - 1):
        assert found(store, "harbour", 3, None)[0]
    assert "rows" not in store.snapshot().known
    assert found(store, "harbour", 3, None)[0]
    assert store.snapshot().known["rows"].num_rows == store.snapshot().known["vectors"].X.shape[0]


def test_rows_that_cannot_be_read_fail_no_search(tmp_path: Path, monkeypatch) -> None:
    async def damaged(snapshot):
        raise RuntimeError("page 7 is damaged")

    HierarchyStore(tmp_path).add(tree())
    store = HierarchyStore(tmp_path)
    monkeypatch.setattr(scan, "_few_rows", damaged)
    for _ in range(scan.SEARCHES + 2):
        assert found(store, "harbour", 3, None)[0]
    assert store.snapshot().known["rows"] is None
