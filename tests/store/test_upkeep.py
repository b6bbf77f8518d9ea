"""What a store does beside answering: stale summaries, many writes, places."""

import asyncio
import json
import logging
from pathlib import Path

import lancedb
import pytest
from fakes import HashingEmbedding
from lancedb.table import Tags
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    VectorStoreQuery,
)
from records import metadata_of, replace_all
from store.trees import columns_of, record, tree

from hierindex import DocumentHierarchy, HierarchicalIndex, HierarchyStore
from hierindex.store import search


def node(i, **fields):
    fields = {"text": f"text {i}", "embedding": [1.0, i], **fields}
    return TextNode(id_=f"{i:04}", **fields)


def stale(store):
    columns = columns_of(store, "id", "stale")
    return {i for i, lost in zip(columns["id"], columns["stale"], strict=True) if lost}


@pytest.fixture
def store(tmp_path):
    return HierarchyStore(tmp_path / "index")


def test_what_lost_its_summary_is_stale_until_it_is_written_again(store):
    nodes = tree(DocumentHierarchy)
    replace_all(store, nodes)
    index = HierarchicalIndex(store, HashingEmbedding())
    assert index.info()["stale"] == 0
    store.delete("a.txt")
    orphans = {n.node_id for n in nodes if record(n).level == 1} & set(
        columns_of(store, "id")["id"]
    )
    assert stale(store) == orphans != set()
    assert index.info()["stale"] == len(orphans)
    store.delete("c.txt")
    assert stale(store) == orphans & set(columns_of(store, "id")["id"])
    assert stale(HierarchyStore(store.uri)) == stale(store)
    store.add(nodes)
    assert stale(store) == set()


@pytest.mark.parametrize("n_documents", [1, 99])
def test_a_summary_of_many_documents_goes_with_any_of_them(store, n_documents):
    documents = tuple(f"doc {i}" for i in range(n_documents))
    store.add([node(0, metadata=metadata_of(documents=documents)), node(1)])
    assert store.query(VectorStoreQuery([1.0, 0.0], doc_ids=["doc 0", "x"])).ids == ["0000"]
    store.delete(f"doc {n_documents}")
    assert columns_of(store, "id") == {"id": ["0000", "0001"]}
    store.delete(documents[-1])
    assert columns_of(store, "id") == {"id": ["0001"]}


def test_an_upkeep_that_fails_spoils_no_write(store, monkeypatch, caplog):
    def conflict(table):
        raise RuntimeError("preempted by a concurrent transaction")

    monkeypatch.setattr(search, "neglected", conflict)
    with caplog.at_level(logging.INFO, "hierindex"):
        store.add([node(0)])
    assert columns_of(store, "id") == {"id": ["0000"]}
    assert "is postponed to the next write" in caplog.text


def test_a_recovery_that_is_killed_loses_nothing(store, monkeypatch):
    for i in range(2):
        store.add([node(i)])
    lancedb.connect(store.uri).open_table("nodes").delete("id = '0001'")  # and not published
    Path(store.uri, ".writer").write_text("killed")
    update, done = Tags.update, []

    def killed(*args):
        if done:
            raise KeyboardInterrupt
        done.append(update(*args))

    with monkeypatch.context() as patch:
        patch.setattr(Tags, "update", killed)
        with pytest.raises(KeyboardInterrupt):
            store.add([node(2)])
    again = HierarchyStore(store.uri)
    again.add([node(2)])
    assert columns_of(again, "id") == {"id": ["0000", "0001", "0002"]}


def test_first_writers_at_once_lose_nothing(tmp_path):
    async def all_at_once():
        stores = [HierarchyStore(tmp_path / "index") for _ in range(8)]
        await asyncio.gather(*(s.async_add([node(i), node(8)]) for i, s in enumerate(stores)))

    asyncio.run(all_at_once())
    ids = columns_of(HierarchyStore(tmp_path / "index"), "id")["id"]
    assert sorted(ids) == [f"{i:04}" for i in range(9)]  # node 8 once


@pytest.mark.parametrize("folder", ["db", "db1", "a b", "日本", "s3"])
def test_a_folder_of_any_name(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    store = HierarchyStore(folder)
    store.add([node(0)])
    assert (tmp_path / folder / "nodes.lance").is_dir()
    assert store.client.open_table("nodes").count_rows() == 1


def test_options_reach_lancedb_and_nothing_else(tmp_path, monkeypatch):
    given, options = [], {"secret_access_key": "hush"}
    connect = lancedb.connect

    def connected(uri, **kwargs):
        given.append(kwargs["storage_options"])
        return connect(str(tmp_path / "index"))

    monkeypatch.setattr(lancedb, "connect", connected)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    store = HierarchyStore("s3://bucket/index", storage_options=options)
    store.add([node(0)])
    store.delete_nodes(["0000"])
    assert given == [options]
    shown = [repr(store), str(store), json.dumps(store.to_dict()), store.model_dump_json()]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any("hush" in text for text in shown)
    assert not any(b"hush" in held for held in files)
    again = HierarchyStore.from_dict(store.to_dict(), storage_options=options)
    assert again.snapshot().exists
    assert given == [options, options]
