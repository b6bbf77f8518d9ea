"""Nodes above more documents than their descriptions name."""

import pytest
from fakes import HashingEmbedding
from indexes import documents_of, where
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.vector_stores.types import FilterOperator

from hierindex import HierarchicalIndex, HierarchyStore, RaptorHierarchy, sentence_splitter

MODEL = HashingEmbedding()
MOST_DOCUMENTS, MORE = 30, 10
NUMBER = MOST_DOCUMENTS + MORE


def texts():
    return {
        f"{i:04}.md": f"Bell {i} rang at gate {i % 37} of house {i % 101}." for i in range(NUMBER)
    }


def hierarchy():
    return RaptorHierarchy(MODEL, max_children=20, max_tokens=8_000)


def held(store):
    """The documents of each node above the chunks, as stored."""
    rows = store.snapshot().select("id", "level", "documents").to_pylist()
    return {row["id"]: row["documents"] for row in rows if row["level"]}


def of_root(store):
    return max(held(store).values(), key=len)


@pytest.fixture(scope="module", autouse=True)
def few_are_named():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hierindex.store.rows.MOST_DOCUMENTS", MOST_DOCUMENTS)
        yield


@pytest.fixture(scope="module")
def nodes(few_are_named):
    """What a pipeline returns."""
    pipeline = IngestionPipeline(transformations=[sentence_splitter(MODEL), hierarchy()])
    return pipeline.run(documents=documents_of(texts()))


@pytest.fixture(scope="module")
def index(few_are_named, tmp_path_factory):
    at = tmp_path_factory.mktemp("built")
    return HierarchicalIndex.build(documents_of(texts()), at, hierarchy=hierarchy())


def test_a_store_has_all_documents_of_what_a_pipeline_returns(nodes, index, tmp_path):
    store = HierarchyStore(tmp_path)
    store.add(nodes)
    assert held(store) == held(index.store)
    root = of_root(store)
    assert sorted(root) == [*texts()]
    last = where(FilterOperator.ANY, documents=[root[-1]])
    under = store.get_nodes(filters=last, partial_summaries=True)
    assert nodes[-1].node_id in {node.node_id for node in under}
    assert HierarchicalIndex.open(tmp_path, MODEL).verify().ok


def test_after_an_edit_all_documents_are_stored(tmp_path):
    folder, at = tmp_path / "texts", tmp_path / "index"
    folder.mkdir()
    for name, text in texts().items():
        (folder / name).write_text(text)
    index = HierarchicalIndex.build(folder, at, hierarchy=hierarchy())
    (folder / "0007.md").write_text("Bell 7 rang at no gate.")
    (folder / "0008.md").unlink()
    index.update(folder)
    root = of_root(index.store)
    assert sorted(root) == sorted(texts().keys() - {"0008.md"})
    assert index.verify().ok
    lost = {*root[:2], *root[-2:]}
    for document in lost:
        index.delete(document)
    assert sorted(of_root(index.store)) == sorted(texts().keys() - {"0008.md", *lost})
    assert index.verify().ok


def test_a_description_names_the_first_documents(index):
    (root,) = index.info()["roots"]
    shown = index.describe(root)
    assert len(shown["documents"]) == MOST_DOCUMENTS
    assert shown["more_documents"] == MORE
