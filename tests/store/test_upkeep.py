"""What a store does beside answering: stale summaries, many writes, places, imports."""

import asyncio
import json
import logging
import random

import lancedb
import pyarrow as pa
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import IndexNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from store.trees import columns_of, record, tree

from hierindex.errors import InputError
from hierindex.hierarchy.transforms import DocumentHierarchy
from hierindex.index import HierarchicalIndex
from hierindex.record import NodeRecord
from hierindex.store import indices
from hierindex.store.hashed_metadata import MOST_ITEMS
from hierindex.store.vector_store import HierarchyStore


def node(i, **fields):
    fields = {"text": f"text {i}", "embedding": [1.0, i], **fields}
    return TextNode(id_=f"{i:04}", **fields)


def stale(store):
    columns = columns_of(store, "id", "stale")
    return {i for i, lost in zip(columns["id"], columns["stale"], strict=True) if lost}


@pytest.fixture
def store(tmp_path):
    return HierarchyStore(tmp_path / "index")


class TestStale:
    def test_what_lost_its_summary_is_stale_until_it_is_written_again(self, store):
        nodes = tree(DocumentHierarchy)
        store.replace(nodes, {})
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
        store.replace(nodes, {})
        assert stale(store) == set()

    def test_a_summary_of_what_is_gone_is_stale(self, store):
        nodes = tree()
        store.add(nodes)
        leaf = next(n for n in nodes if record(n).level == 0)
        store.delete_nodes([leaf.node_id])
        assert stale(store) == {parent for parent, _ in record(leaf).parents}
        store.add([n for n in nodes if n.node_id in stale(store)])
        assert stale(store) == set()

    def test_neighbours_and_strangers_are_not_stale(self, store):
        beside = {NodeRelationship.NEXT: RelatedNodeInfo(node_id="0001")}
        store.add([node(0, relationships=beside), node(1), node(2)])
        store.delete_nodes(["0001"])
        assert stale(store) == set()


@pytest.mark.parametrize("n_documents", [1, MOST_ITEMS, MOST_ITEMS + 1])
def test_a_summary_of_many_documents_goes_with_any_of_them(store, n_documents):
    documents = tuple(f"doc {i}" for i in range(n_documents))
    store.add([node(0, metadata=NodeRecord(documents=documents).to_metadata()), node(1)])
    assert store.query(VectorStoreQuery([1.0, 0.0], doc_ids=["doc 0", "x"])).ids == ["0000"]
    store.delete(f"doc {n_documents}")
    assert columns_of(store, "id") == {"id": ["0000", "0001"]}
    store.delete(documents[-1])
    assert columns_of(store, "id") == {"id": ["0001"]}


def test_many_small_writes_are_joined(store):
    for i in range(2 * indices.SMALL_FRAGMENTS):
        store.add([node(i)])
    stats = store.client.open_table("nodes").stats()
    assert stats["fragment_stats"]["num_fragments"] < indices.SMALL_FRAGMENTS
    assert stats["num_rows"] == 2 * indices.SMALL_FRAGMENTS


def test_indices_follow_any_row_of_writes(store, monkeypatch):
    monkeypatch.setattr(indices, "SCALAR_ROWS", 1)
    rng, held = random.Random(0), {}
    for step in range(24):
        some = [f"{i:04}" for i in rng.sample(range(12), rng.randint(1, 5))]
        if step % 4 == 3:
            store.delete_nodes(some)
            held = {i: at for i, at in held.items() if i not in some}
        else:
            metadata = {"step": step % 3}
            store.add([node(int(i), text=f"word{step}", metadata=metadata) for i in some])
            held |= dict.fromkeys(some, step)
        assert sorted(columns_of(store, "id")["id"]) == sorted(held)
        for rest in range(3):
            filters = MetadataFilters(filters=[MetadataFilter(key="step", value=rest)])
            found = store.query(VectorStoreQuery([1.0, 1.0], 99, filters=filters)).ids
            assert set(found) == {i for i, at in held.items() if at % 3 == rest}
        words = VectorStoreQuery(
            similarity_top_k=99, query_str=f"word{step - 1}", mode=VectorStoreQueryMode.TEXT_SEARCH
        )
        assert set(store.query(words).ids) == {i for i, at in held.items() if at == step - 1}


def test_an_upkeep_that_fails_spoils_no_write(store, monkeypatch, caplog):
    async def conflict(table):
        raise RuntimeError("preempted by a concurrent transaction")

    monkeypatch.setattr(indices, "_make_missing", conflict)
    with caplog.at_level(logging.INFO, "hierindex"):
        store.add([node(0)])
    assert columns_of(store, "id") == {"id": ["0000"]}
    assert "is postponed to the next write" in caplog.text


def test_first_writers_at_once_lose_nothing(tmp_path):
    async def all_at_once():
        stores = [HierarchyStore(tmp_path / "index") for _ in range(8)]
        await asyncio.gather(*(s.async_add([node(i)]) for i, s in enumerate(stores)))

    asyncio.run(all_at_once())
    ids = columns_of(HierarchyStore(tmp_path / "index"), "id")["id"]
    assert sorted(ids) == [f"{i:04}" for i in range(8)]


@pytest.mark.parametrize("folder", ["db", "db1", "a b", "日本", "s3"])
def test_a_folder_of_any_name(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    store = HierarchyStore(folder)
    store.add([node(0)])
    assert (tmp_path / folder / "nodes.lance").is_dir()
    assert store.client.open_table("nodes").count_rows() == 1


class TestObjectStores:
    def test_a_uri_is_lancedbs(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        store = HierarchyStore("memory://")
        assert not store.snapshot().exists
        store.add([node(0), node(1)])
        store.delete_nodes(["0001"])
        assert columns_of(store, "id") == {"id": ["0000"]}
        store.clear()
        assert not store.snapshot().exists

    def test_options_reach_lancedb_and_nothing_else(self, tmp_path, monkeypatch):
        given, options = [], {"secret_access_key": "hush"}
        connect = lancedb.connect_async

        async def connected(uri, **kwargs):
            given.append(kwargs["storage_options"])
            return await connect(str(tmp_path / "index"))

        monkeypatch.setattr(lancedb, "connect_async", connected)
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


def adapter_rows(nodes):
    """As `LanceDBVectorStore.add` of llama-index-vector-stores-lancedb 0.6 writes them."""
    return [
        {
            "id": n.node_id,
            "doc_id": n.ref_doc_id,
            "vector": n.embedding,
            "text": n.text,
            "metadata": node_to_metadata_dict(n, flat_metadata=True),
        }
        for n in nodes
    ]


class TestImport:
    def test_a_table_of_the_adapter(self, store, tmp_path):
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc")}
        nodes = [node(i, metadata={"author": "Ada", "n": i}) for i in range(3)]
        nodes[0].relationships = source
        nodes.append(IndexNode(id_="9", text="see", index_id="x", embedding=[1.0, 2.0]))
        nodes[-1].metadata = {"author": None, "n": 9}
        table = pa.Table.from_pylist(adapter_rows(nodes))
        vectors = table["vector"].cast(pa.list_(pa.float32(), 2))
        table = table.set_column(2, "vector", vectors)
        lancedb.connect(tmp_path / "theirs").create_table("vectors", table)
        assert store.import_lancedb(tmp_path / "theirs") == 4
        assert store.get_nodes(["0000", "0001", "0002", "9"]) == nodes
        store.delete("doc")
        assert len(store.get_nodes()) == 3

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # its own
    def test_what_the_adapter_itself_wrote(self, store, tmp_path):
        theirs = pytest.importorskip("llama_index.vector_stores.lancedb")
        nodes = [node(i, metadata={"author": "Ada", "n": i}) for i in range(3)]
        theirs.LanceDBVectorStore(uri=str(tmp_path / "theirs")).add(nodes)
        assert store.import_lancedb(tmp_path / "theirs", "vectors") == 3
        assert store.get_nodes([n.node_id for n in nodes]) == nodes

    @pytest.mark.parametrize(
        "rows",
        [
            [{"id": "a"}],
            [{"id": "a", "vector": [1.0], "metadata": "{}"}],
            [{"id": "a", "vector": [1.0], "metadata": {"x": 1}}],
            [{"key": "a", "vector": [1.0], "metadata": {"_node_content": "{}"}}],
        ],
    )
    def test_another_layout_is_refused(self, store, tmp_path, rows):
        lancedb.connect(tmp_path / "theirs").create_table("vectors", rows)
        with pytest.raises(InputError, match=r"was not written by LlamaIndex's LanceDBVectorStore"):
            store.import_lancedb(tmp_path / "theirs")
        assert not store.snapshot().exists

    def test_no_table_is_refused(self, store, tmp_path):
        with pytest.raises(InputError, match=r"holds no table 'vectors'\.$"):
            store.import_lancedb(tmp_path / "theirs")
        assert not (tmp_path / "theirs").exists()


def test_text_that_is_not_unicode_is_refused(store):
    for bad in (node(0, text="\ud800"), node(0, metadata={"a": "\ud800"})):
        with pytest.raises(InputError, match="'0000' must be JSON and its text Unicode"):
            store.add([bad])
