"""LlamaIndex's DocumentSummaryIndex, saved, loaded and asked by LlamaIndex."""

import sys

import numpy as np
import pytest
from fakes import HashingEmbedding
from indexes import built
from llama_index.core import StorageContext, load_index_from_storage
from llama_index.core.llms import MockLLM
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.llms.openai_like import OpenAILike
from loopback import LoopbackServer
from store.trees import SIZES, documents, linked, record

from hierindex import HierarchicalIndex, HierarchyStore
from hierindex.errors import InputError
from hierindex.export import persist_document_summary_index, to_document_summary_index

QUESTION = documents()[0].text.partition("  ")[0]


def chunks_of(index: HierarchicalIndex) -> dict[str, list[str]]:
    """Texts of each document's chunks, in order."""
    nodes = [node for node in index.store.get_nodes() if record(node).level == 0]
    nodes.sort(key=lambda node: record(node).start)
    return {d: [n.text for n in nodes if record(n).documents == (d,)] for d in SIZES}


def asked(exported) -> dict[str, list[str]]:
    """Texts that are found for each document's summary."""
    retriever, found = exported.as_retriever(), {}
    for document in SIZES:
        summary = exported.get_document_summary(document)
        found[document] = [node.node.text for node in retriever.retrieve(summary)]
    return found


def test_it_is_made_without_a_model(soft) -> None:
    model = HashingEmbedding()
    exported = to_document_summary_index(HierarchicalIndex(soft.store, model))
    assert model.batches == model.queries == []
    assert asked(exported) == chunks_of(soft)
    assert model.batches == []
    assert len(model.queries) == len(SIZES)
    assert list(exported.ref_doc_info) == list(SIZES)
    for document in SIZES:
        assert exported.get_document_summary(document)


def test_summaries_and_vectors_are_those_of_the_tree(soft) -> None:
    exported = to_document_summary_index(soft)
    whole = {record(n).whole_document: n for n in soft.store.get_nodes()}
    of_summary = exported.index_struct.doc_id_to_summary_id
    for document, node in whole.items():
        if document:
            assert exported.get_document_summary(document) == node.text
            assert exported.vector_store.get(of_summary[document]) == node.embedding
    assert any(whole)


def test_a_document_without_a_node_of_its_own_gets_an_extract(index) -> None:
    store = index.store
    store.delete_nodes([n.node_id for n in store.get_nodes() if record(n).whole_document])
    exported = to_document_summary_index(index)
    summary = exported.docstore.get_node(exported.index_struct.doc_id_to_summary_id["a.txt"])
    leaves = [node for node in store.get_nodes() if record(node).documents == ("a.txt",)]
    leaves = [node for node in leaves if record(node).level == 0]
    mean = np.mean([node.embedding for node in leaves], axis=0)
    found = exported.vector_store.get(summary.node_id)
    assert found == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)
    (source,) = [document.text for document in documents() if document.doc_id == "a.txt"]
    assert record(summary).kind == "extractive"
    assert all(source[c.start : c.end] in summary.text for c in record(summary).citations)


def test_nodes_stand_alone(soft) -> None:
    exported = to_document_summary_index(soft)
    nodes = exported.docstore.docs
    for node_id, node in nodes.items():
        assert node_id == node.node_id
        assert node.embedding is None
        assert linked(node) <= nodes.keys()
        assert NodeRelationship.PARENT not in node.relationships
        assert node.ref_doc_id in SIZES
        assert record(node).citations
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            shown = node.get_content(mode)
            assert "level" not in shown
            assert "hierindex" not in shown
        assert node.metadata["author"]
    assert len(nodes) == len(exported.index_struct.node_id_to_summary_id) + len(SIZES)


def test_llama_index_alone_loads_and_asks_it(soft, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "exported"
    exported = to_document_summary_index(soft)
    assert persist_document_summary_index(soft, folder) == len(exported.docstore.docs)
    question = exported.get_document_summary("d.txt")
    for name in [name for name in sys.modules if name.partition(".")[0] == "hierindex"]:
        monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
    storage = StorageContext.from_defaults(persist_dir=str(folder))
    index = load_index_from_storage(storage, llm=MockLLM(), embed_model=HashingEmbedding())
    (first, *_) = index.as_retriever().retrieve(question)
    assert first.node.ref_doc_id == "d.txt"
    answer = index.as_query_engine(llm=MockLLM()).query(question)
    assert question in str(answer)
    assert {node.node.ref_doc_id for node in answer.source_nodes} == {"d.txt"}
    assert not any(
        "hierindex" in type(part).__module__ for part in [index, *index.docstore.docs.values()]
    )


def test_a_language_model_chooses_documents(soft, tmp_path) -> None:
    folder = tmp_path / "exported"
    persist_document_summary_index(soft, folder)
    with LoopbackServer(reply=lambda prompt: "Doc: 2, Relevance: 9") as server:
        llm = OpenAILike(model="m", api_base=server.base_url, api_key="none", is_chat_model=True)
        exported = load_index_from_storage(
            StorageContext.from_defaults(persist_dir=str(folder)),
            llm=llm,
            embed_model=HashingEmbedding(),
        )
        found = exported.as_retriever("llm").retrieve("What of the harbour?")
    assert {(node.node.ref_doc_id, node.score) for node in found} == {("b.txt", 9.0)}
    (request,) = server.requests
    for document in SIZES:
        assert exported.get_document_summary(document) in request.prompt
    assert "author: Ada" in request.prompt
    assert "hierindex" not in request.prompt
    assert "level" not in request.prompt


def test_without_a_language_model_one_sentence_says_so(index) -> None:
    exported = to_document_summary_index(index)
    with pytest.raises(InputError, match="has no LLM; pass llm="):
        exported.as_retriever("llm").retrieve("What of the harbour?")


def test_documents_and_chunks_can_be_deleted(soft) -> None:
    exported = to_document_summary_index(soft)
    exported.delete_ref_doc("a.txt", delete_from_docstore=True)
    assert list(exported.ref_doc_info) == ["b.txt", "c.txt", "d.txt"]
    assert "a.txt" not in {node.ref_doc_id for node in exported.docstore.docs.values()}
    struct = exported.index_struct
    first, *others = struct.summary_id_to_node_ids[struct.doc_id_to_summary_id["b.txt"]]
    exported.delete_nodes([first])
    (c,) = struct.summary_id_to_node_ids[struct.doc_id_to_summary_id["c.txt"]]
    exported.delete_nodes([c])
    retriever = exported.as_retriever(similarity_top_k=9)
    found = retriever.retrieve(QUESTION)
    assert {node.node.ref_doc_id for node in found} == {"b.txt", "d.txt"}
    ids = {node.node.node_id for node in found}
    assert first not in ids
    assert ids >= {*others}


def test_what_is_unchanged_is_not_summarised_again(tmp_path) -> None:
    """LlamaIndex compares hashes of documents with those that it kept."""
    exported = to_document_summary_index(built(documents(), tmp_path / "index"))
    assert exported.refresh_ref_docs(documents()) == [False] * len(SIZES)


def test_nodes_that_no_hierarchy_made(tmp_path) -> None:
    """A store that is used as a vector store has chunks alone."""
    model = HashingEmbedding()
    texts = ["The keeper slept all day.", "Die Brücke war gesperrt.", "灯台守は眠った。"]
    nodes = [TextNode(id_=str(i), text=t, metadata={"shelf": "low"}) for i, t in enumerate(texts)]
    for node in nodes:
        node.embedding = model.get_text_embedding(node.text)
    nodes[1].relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="ü.txt")
    store = HierarchyStore(tmp_path / "index")
    store.add([*nodes, TextNode(id_="blank", text=" ", embedding=nodes[0].embedding)])
    folder = tmp_path / "exported"
    persist_document_summary_index(HierarchicalIndex(store, model), folder)
    storage = StorageContext.from_defaults(persist_dir=str(folder))
    exported = load_index_from_storage(storage, llm=MockLLM(), embed_model=model)
    (found,) = exported.as_retriever().retrieve(texts[1])
    assert (found.node.text, found.node.ref_doc_id) == (texts[1], "ü.txt")
    assert found.node.metadata == {"shelf": "low"}
    assert {exported.get_document_summary(d) for d in exported.ref_doc_info} == {*texts}
