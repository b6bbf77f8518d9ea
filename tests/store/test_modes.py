"""Query modes and what their scores are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from strategies import seeds

from hierindex import HierarchyStore
from hierindex.errors import InputError
from hierindex.store import search

Mode = VectorStoreQueryMode
Op = FilterOperator
TEXTS = {
    "fox": "The quick brown fox's den is near the Café Müller, see chapter 3.",
    "foxes": "Foxes and more foxes ran; a fox is running still.",
    "tokyo": "東京都の図書館で本を読む。",
    "beijing": "我喜欢北京的天气和图书馆。",
    "seoul": "한국어 문서 검색 시스템",
    "thai": "ห้องสมุดภาษาไทย",
    "empty": "",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add(
        [
            TextNode(id_=name, text=text, embedding=[1.0, i / 4], metadata={"i": i})
            for i, (name, text) in enumerate(TEXTS.items())
        ]
    )
    return store


def ask(store, mode, words=None, vector=(1.0, 0.0), top_k=10, options=None, **fields):
    vector = None if vector is None else list(vector)
    query = VectorStoreQuery(vector, top_k, query_str=words, mode=mode, **fields)
    return store.query(query, **(options or {}))


FOUND = {
    "cafe": ["fox"],
    "MÜLLER": ["fox"],
    "fox": ["foxes", "fox"],
    "run": ["foxes"],
    "3": ["fox"],
    "図書館": ["tokyo"],
    "图书馆": ["beijing"],
    "我": ["beijing"],
    "검색": ["seoul"],
    "ห้องสมุด": ["thai"],
    "the": [],
    "": [],
    " ": [],
    "zebra": [],
}


@pytest.mark.parametrize(("words", "expected"), FOUND.items(), ids=map(repr, FOUND))
def test_words_of_any_script_are_found(store, words, expected):
    result = ask(store, Mode.TEXT_SEARCH, words, vector=None)
    assert result.ids == expected
    assert all(score > 0 for score in result.similarities)


SYNTAX = ['"', "'", "fox AND", "(", "fox)", "+fox -den", "text:fox", "fo*", "fox~2", "fox^9", "\\"]
SYNTAX += ["\0", "\ud800", "{}", '{"match": {}}', "' OR 1=1 --", "ü" * 5000, "[1 TO 2]", "NOT"]


@pytest.mark.parametrize("words", SYNTAX, ids=lambda words: repr(words[:20]))
def test_no_words_are_syntax(store, words):
    plain = "fox" if "fox" in words else "zebra"
    expected = ask(store, Mode.TEXT_SEARCH, plain, vector=None).ids
    found = ask(store, Mode.TEXT_SEARCH, words, vector=None).ids
    assert set(found) == set(expected)
    assert len(ask(store, Mode.HYBRID, words).ids) == len(TEXTS)


def ranks(ids):
    return {node_id: rank for rank, node_id in enumerate(ids, 1)}


@pytest.mark.parametrize("alpha", [None, 0.0, 0.3, 1.0])
def test_hybrid_is_reciprocal_rank_fusion(store, alpha):
    words, vector = "foxes of 東京", (0.5, 1.0)
    dense = ranks(ask(store, Mode.DEFAULT, vector=vector).ids)
    sparse = ranks(ask(store, Mode.TEXT_SEARCH, words).ids)
    a = 0.5 if alpha is None else alpha
    expected = {
        i: a * 61 / (60 + dense[i]) + ((1 - a) * 61 / (60 + sparse[i]) if i in sparse else 0)
        for i in dense
    }
    result = ask(store, Mode.HYBRID, words, vector, alpha=alpha)
    kept = {i: score for i, score in expected.items() if score > 0}
    assert dict(zip(result.ids, result.similarities, strict=True)) == pytest.approx(kept)
    assert result.similarities == sorted(kept.values(), reverse=True)


def test_how_many_are_fused(store):
    assert len(ask(store, Mode.HYBRID, "fox", top_k=2).ids) == 2
    assert len(ask(store, Mode.HYBRID, "fox", top_k=4, hybrid_top_k=3).ids) == 3
    apart = ask(store, Mode.HYBRID, "fox", (0.0, 1.0), 1, sparse_top_k=1, hybrid_top_k=9)
    assert sorted(apart.ids) == ["empty", "foxes"]
    assert len(ask(store, Mode.TEXT_SEARCH, "fox", sparse_top_k=1).ids) == 1


@given(seeds(), st.sampled_from([None, 0.0, 0.3, 1.0]), st.integers(1, 12))
def test_mmr_chooses_what_is_alike_the_question_and_unlike_the_rest(
    tmp_path_factory, seed, threshold, top_k
):
    rng = np.random.default_rng(seed)
    X, question = rng.normal(size=(10, 3)), rng.normal(size=3)
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add([TextNode(id_=str(i), text="", embedding=list(x)) for i, x in enumerate(X)])
    result = ask(store, Mode.MMR, vector=question, top_k=top_k, mmr_threshold=threshold)
    weight = 0.5 if threshold is None else threshold
    X, question = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (X, question))
    pool = np.argsort(-X @ question)[: max(4 * top_k, top_k)]
    chosen: list[int] = []
    for score in result.similarities:
        margins = {
            i: weight * (X[i] @ question)
            - (1 - weight) * max((X[i] @ X[j] for j in chosen), default=0.0)
            for i in map(int, pool)
            if i not in chosen
        }
        best = int(result.ids[len(chosen)])
        assert score == pytest.approx(max(margins.values()), abs=1e-5)
        assert margins[best] == pytest.approx(score, abs=1e-5)
        chosen.append(best)
    assert len(chosen) == min(top_k, 10)


def test_from_how_many_mmr_chooses(store):
    few_rows = ask(store, Mode.MMR, top_k=2, mmr_threshold=0.0, options={"mmr_prefetch_k": 2})
    assert few_rows.ids == ["fox", "foxes"]
    factor = {"mmr_prefetch_factor": 1.5}
    some = ask(store, Mode.MMR, top_k=2, mmr_threshold=0.0, options=factor)
    assert some.ids == ["fox", "tokyo"]


BAD = {
    "no words": ({"mode": Mode.TEXT_SEARCH}, "A query in mode 'text_search' needs a query_str"),
    "no words for hybrid": ({"mode": Mode.HYBRID}, "A query in mode 'hybrid' needs a query_str"),
    "no vector": ({"mode": Mode.HYBRID, "words": "x", "vector": None}, "needs an embedding"),
    "no vector for mmr": ({"mode": Mode.MMR, "vector": (0.0, 0.0)}, "needs an embedding"),
    "alpha": ({"mode": Mode.HYBRID, "words": "x", "alpha": 1.5}, r"alpha must be in \[0, 1\]"),
    "threshold": ({"mode": Mode.MMR, "mmr_threshold": -1.0}, r"mmr_threshold must be in \[0, 1\]"),
    "top_k": ({"mode": Mode.DEFAULT, "top_k": 0}, "similarity_top_k must be at least 1, got 0"),
    "sparse": ({"mode": Mode.DEFAULT, "sparse_top_k": 0}, "sparse_top_k must be at least 1"),
    "svm": ({"mode": Mode.SVM}, r"must be one of 'default', .*'mmr', got 'svm'\.$"),
}


@pytest.mark.parametrize(("asked", "says"), BAD.values(), ids=BAD)
def test_what_a_mode_needs(store, asked, says):
    with pytest.raises(InputError, match=says):
        ask(store, **asked)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A store that has all its indices, of 600 rows in a circle."""
    angles = 2 * np.pi * np.arange(600) / 600
    X = np.stack([np.cos(angles), np.sin(angles), *np.zeros((6, 600))], axis=1)
    nodes = [
        TextNode(id_=f"{i}", text=f"row {i}", embedding=list(x), metadata={"n": i, "odd": i % 2})
        for i, x in enumerate(X)
    ]
    store = HierarchyStore(tmp_path_factory.mktemp("large"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "SCALAR_ROWS", 500)
        patch.setattr(search, "VECTOR_ROWS", 500)
        patch.setattr(search, "UNINDEXED_ROWS", (100, 100))
        store.add(nodes[:400])
        assert {i.index_type for i in store.client.open_table("nodes").list_indices()} == {"FTS"}
        store.add(nodes[400:])
    return store


@pytest.fixture
def indexed(monkeypatch, large):
    monkeypatch.setattr(search, "VECTOR_ROWS", 500)
    return large


def test_a_large_table_has_its_indices(large):
    table = large.client.open_table("nodes")
    made = {i.columns[0]: i.index_type for i in table.list_indices()}
    assert made == {
        "words": "FTS",
        "id": "BTree",
        "whole_document": "BTree",
        "previous_id": "BTree",
        "next_id": "BTree",
        "text_hash": "BTree",
        "stale": "Bitmap",
        "level": "Bitmap",
        "level_max": "Bitmap",
        "digests": "LabelList",
        "vector": "IvfSq",
    }
    assert all(table.index_stats(i.name).num_unindexed_rows == 0 for i in table.list_indices())


@pytest.mark.spread
@pytest.mark.parametrize("exact_rows", [0, 1000], ids=["by the index", "exact"])
@pytest.mark.parametrize("operator", [None, Op.LT, Op.NE])
def test_a_large_table_gives_the_true_scores(indexed, monkeypatch, exact_rows, operator):
    monkeypatch.setattr(search, "FEW_ROWS", exact_rows)
    filters = operator and MetadataFilters(
        filters=[
            MetadataFilter(key="odd", value=1),
            MetadataFilter(key="n", value=20, operator=operator),
        ]
    )
    result = ask(indexed, Mode.DEFAULT, vector=[1.0] + 7 * [0.0], top_k=9, filters=filters)
    least = {None: 4, Op.LT: 17, Op.NE: 9}[operator]  # the farthest of the nine
    assert result.similarities[-1] == pytest.approx(np.cos(least * np.pi / 300), abs=1e-5)
    for node_id, score in zip(result.ids, result.similarities, strict=True):
        assert score == pytest.approx(np.cos(int(node_id) * np.pi / 300), abs=1e-5)


def test_more_than_an_index_looks_at_come_all_the_same(indexed):
    result = ask(indexed, Mode.DEFAULT, vector=[1.0] + 7 * [0.0], top_k=600)
    assert len(set(result.ids)) == 600


def test_of_an_emptied_table_nothing_is_found(tmp_path):
    store = HierarchyStore(tmp_path)
    store.add([TextNode(id_="a", text="kettle", embedding=[1.0, 0.0])])
    store.delete_nodes(["a"])
    for mode in (Mode.DEFAULT, Mode.TEXT_SEARCH, Mode.HYBRID, Mode.MMR):
        assert ask(store, mode, "kettle").ids == []
