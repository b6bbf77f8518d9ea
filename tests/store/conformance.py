"""What LlamaIndex and hierindex expect of a vector store, as tests that any store can inherit."""

import math
from itertools import pairwise

import pytest
from fakes import HashingEmbedding
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import AutoMergingRetriever, RecursiveRetriever
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from store.oracle import holds, passing, seen
from store.trees import record, tree

from hierindex.tree.transforms import DocumentHierarchy

Op = FilterOperator
Mode = VectorStoreQueryMode
ODD = ["x' OR 1=1 --", 'a"b', "", "n\0l", "日本", "🌲", "%", "\\"]
COLOURS = ["red", "green", "blue"]


def colour_node(i):
    """A node on a fan of directions, with metadata of every JSON type, some missing."""
    values = {
        "colour": COLOURS[i % 3],
        "n": i if i % 2 else float(i),
        "tags": ODD[i % 4 : i % 4 + 2] if i % 5 else [],
        "odd": ODD[i % len(ODD)],
        "flag": i % 4 == 0,
        "none": None,
        "deep": {"list": [i, {"x": "y"}]},
    }
    kept = {key: value for j, (key, value) in enumerate(values.items()) if (i + j) % 6}
    angle = math.pi * i / 48
    return TextNode(
        id_=f"node-{i:02}",
        text=f"The {COLOURS[i % 3]} kite number {i} flies.",
        metadata=kept,
        embedding=[math.cos(angle), math.sin(angle), 0.0],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc-{i // 4}")},
    )


NODES = [colour_node(i) for i in range(24)]
FILTERS = {
    "EQ": (Op.EQ, "colour", "red"),
    "NE": (Op.NE, "colour", "red"),
    "GT": (Op.GT, "n", 10),
    "GTE": (Op.GTE, "n", 10),
    "LT": (Op.LT, "n", 3.5),
    "LTE": (Op.LTE, "n", 4),
    "IN": (Op.IN, "colour", ["red", "blue"]),
    "NIN": (Op.NIN, "colour", ["red", "blue"]),
    "ANY": (Op.ANY, "tags", [ODD[0], "x"]),
    "ALL": (Op.ALL, "tags", ODD[:2]),
    "CONTAINS": (Op.CONTAINS, "tags", ODD[1]),
    "TEXT_MATCH": (Op.TEXT_MATCH, "colour", "ee"),
    "TEXT_MATCH_INSENSITIVE": (Op.TEXT_MATCH_INSENSITIVE, "colour", "EE"),
    "IS_EMPTY": (Op.IS_EMPTY, "tags", None),
    **{f"EQ {value!r}": (Op.EQ, "odd", value) for value in ODD},
    **{f"key {value!r}": (Op.EQ, value, "x") for value in ODD},
}
SINGLE = [MetadataFilter(key=k, operator=op, value=v) for op, k, v in FILTERS.values()]


def f(*filters, condition=FilterCondition.AND):
    return MetadataFilters(filters=list(filters), condition=condition)


def ids(nodes):
    return [node.node_id for node in nodes]


def along(top_k=100, **fields):
    return VectorStoreQuery([1.0, 0.0, 0.0], similarity_top_k=top_k, **fields)


class StoreConformance:
    """Inherit and give a fixture `empty`, a new store without a table, and what it can do."""

    modes = frozenset({Mode.DEFAULT, Mode.HYBRID, Mode.TEXT_SEARCH, Mode.MMR})

    @pytest.fixture
    def full(self, empty):
        empty.add(NODES)
        return empty

    def test_nodes_come_back_as_they_were(self, empty):
        image = ImageNode(id_="image", text="", image_url="x.png", embedding=[0.0, 1.0, 0.0])
        index = IndexNode(id_="index", text="see", index_id="other", embedding=[0.0, 0.0, 1.0])
        assert empty.add([image, index]) == ["image", "index"]
        assert empty.get_nodes(["index", "image"]) == [index, image]

    @pytest.mark.filterwarnings("ignore:The filter on .* matches nothing")
    def test_filters_pass_what_python_passes(self, full):
        conditions = [f(one) for one in SINGLE]
        conditions += [f(one, condition=FilterCondition.NOT) for one in SINGLE[: len(Op)]]
        conditions += [f(*pair, condition=FilterCondition.OR) for pair in pairwise(SINGLE)]
        for filters in conditions:
            passes = passing(filters, NODES)
            expected = [n.node_id for n in NODES if n.node_id in passes]
            assert sorted(ids(full.get_nodes(filters=filters))) == expected, filters
            assert full.query(along(top_k=2, filters=filters)).ids == expected[:2]

    @pytest.mark.parametrize("mode", Mode)
    def test_a_mode_works_or_is_refused_in_one_sentence(self, full, mode):
        query = along(top_k=4, query_str='"Kite" AND (number: 7) NOT \0 \ud800', mode=mode)
        query.filters = f(MetadataFilter(key="n", operator=Op.NE, value=0))
        if mode not in self.modes:
            with pytest.raises(
                ValueError, match=rf"^query mode .*'default'.*, got '{mode.value}'\.$"
            ):
                full.query(query)
            return
        result = full.query(query)
        assert len(result.ids) == len(set(result.ids)) == 4
        assert result.similarities == sorted(result.similarities, reverse=True)
        assert all(holds(query.filters, seen(node)) for node in result.nodes)

    def test_a_new_row_is_found_by_its_words(self, full):
        query = along(query_str="一只蓝色的风筝在北京飞", mode=Mode.TEXT_SEARCH)
        query.query_str = "北京"
        assert full.query(query).ids == []
        full.add([TextNode(id_="zh", text="一只蓝色的风筝在北京飞。", embedding=[0.0, 1.0, 0.0])])
        assert full.query(query).ids == ["zh"]
        full.delete_nodes(["zh"])
        assert full.query(query).ids == []

    def test_vector_store_index(self, empty):
        nodes = [node.model_copy(update={"embedding": None}) for node in NODES]
        storage = StorageContext.from_defaults(vector_store=empty)
        model = HashingEmbedding()
        index = VectorStoreIndex(nodes[:20], storage_context=storage, embed_model=model)
        index.insert_nodes(nodes[20:])
        index.insert(Document(id_="new", text="A zeppelin lands."))
        index.delete_ref_doc("doc-5")
        found = index.as_retriever(similarity_top_k=3).retrieve("A zeppelin lands.")
        assert (len(found), found[0].text) == (3, "A zeppelin lands.")
        assert found[0].score == pytest.approx(1.0, abs=1e-5)
        assert {n.ref_doc_id for n in empty.get_nodes()} == {f"doc-{i}" for i in range(5)} | {"new"}

    def test_auto_merging_retriever(self, empty):
        nodes = tree(DocumentHierarchy)
        empty.add(nodes)
        docstore = SimpleDocumentStore()
        docstore.add_documents(nodes)
        storage = StorageContext.from_defaults(docstore=docstore, vector_store=empty)
        index = VectorStoreIndex.from_vector_store(empty, embed_model=HashingEmbedding())
        chunks = index.as_retriever(
            similarity_top_k=8, filters=f(MetadataFilter(key="hierindex_level", value=0))
        )
        merging = AutoMergingRetriever(chunks, storage, simple_ratio_thresh=0.1)
        found = merging.retrieve("The lantern of a3")
        assert any(record(n.node).level > 0 for n in found)

    def test_recursive_retriever(self, empty):
        model = HashingEmbedding()
        vector = model.get_text_embedding("kites")
        pointer = IndexNode(text="kites", index_id="kites", embedding=vector)
        empty.add([pointer])
        top = VectorStoreIndex.from_vector_store(empty, embed_model=model).as_retriever()
        nodes = [node.model_copy(update={"embedding": None}) for node in NODES[:3]]
        kites = VectorStoreIndex(nodes, embed_model=model).as_retriever()
        recursive = RecursiveRetriever("top", retriever_dict={"top": top, "kites": kites})
        assert set(ids(n.node for n in recursive.retrieve("kites"))) <= set(ids(nodes))

    @pytest.mark.parametrize("strategy", DocstoreStrategy)
    def test_ingestion_pipeline(self, empty, strategy):
        pipeline = IngestionPipeline(
            transformations=[SentenceSplitter(), HashingEmbedding()],
            vector_store=empty,
            docstore=SimpleDocumentStore(),
            docstore_strategy=strategy,
            disable_cache=True,
        )

        def run(**texts):
            pipeline.run(documents=[Document(id_=i, text=text) for i, text in texts.items()])
            return sorted((n.ref_doc_id, n.text) for n in empty.get_nodes())

        assert run(a="one", b="two") == [("a", "one"), ("b", "two")]
        assert run(a="one", b="two") == [("a", "one"), ("b", "two")]
        changed = run(a="three")
        match strategy:
            case DocstoreStrategy.UPSERTS:
                assert changed == [("a", "three"), ("b", "two")]
            case DocstoreStrategy.UPSERTS_AND_DELETE:
                assert changed == [("a", "three")]
            case DocstoreStrategy.DUPLICATES_ONLY:
                assert changed == [("a", "one"), ("a", "three"), ("b", "two")]
