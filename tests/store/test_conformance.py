"""What LlamaIndex expects of a vector store."""

import pytest
from fakes import HashingEmbedding
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from store.trees import record, tree

from hierindex import DocumentHierarchy, HierarchyStore

NODES = [
    TextNode(
        id_=f"node-{i:02}",
        text=f"The kite number {i} flies.",
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc-{i // 4}")},
    )
    for i in range(24)
]


@pytest.fixture
def empty(tmp_path):
    return HierarchyStore(tmp_path / "index")


def test_nodes_come_back_as_they_were(empty):
    image = ImageNode(id_="image", text="", image_url="x.png", embedding=[0.0, 1.0, 0.0])
    index = IndexNode(id_="index", text="see", index_id="other", embedding=[0.0, 0.0, 1.0])
    assert empty.add([image, index]) == ["image", "index"]
    assert empty.get_nodes(["index", "image"]) == [index, image]


def test_vector_store_index(empty):
    nodes = [node.model_copy() for node in NODES]
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


def test_auto_merging_retriever(empty):
    nodes = tree(DocumentHierarchy)
    empty.add(nodes)
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    storage = StorageContext.from_defaults(docstore=docstore, vector_store=empty)
    index = VectorStoreIndex.from_vector_store(empty, embed_model=HashingEmbedding())
    chunks = index.as_retriever(
        similarity_top_k=8,
        filters=MetadataFilters(filters=[MetadataFilter(key="hierindex_level", value=0)]),
    )
    merging = AutoMergingRetriever(chunks, storage, simple_ratio_thresh=0.1)
    found = merging.retrieve("The lantern of a3")
    assert any(record(n.node).level > 0 for n in found)


@pytest.mark.parametrize("strategy", DocstoreStrategy)
def test_ingestion_pipeline(empty, strategy):
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
