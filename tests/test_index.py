"""The managed index on a real folder, with the fake embedding model."""

import os
from pathlib import Path

import lancedb
import pytest
from fakes import HashingEmbedding
from indexes import where
from llama_index.core import Document
from llama_index.core.schema import TextNode
from store.trees import columns_of

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy
from hierindex.errors import (
    FormatError,
    IndexNotFoundError,
    InputError,
    SourceError,
)

WORDS = "harbour sail mast anchor keel rudder tide wind deck crew flour yeast oven dough".split()


def text_of(name: str, n_sentences: int = 14) -> str:
    return "\n\n".join(
        f"In {name} the {WORDS[i % 14]} of day {i} met the {WORDS[(i * 5 + 3) % 14]} at the gate."
        for i in range(n_sentences)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "texts")


def written(source: Path) -> Path:
    (source / "deep").mkdir(parents=True)
    for name in ("a.txt", "b.md", "deep/c.txt"):
        (source / name).write_text(text_of(name))
    return source


def hierarchy(kind=SemanticHierarchy, **options):
    return kind(**{"embed_model": HashingEmbedding(), "max_children": 4, **options})


def built(sources, uri: Path, made=None, **options) -> HierarchicalIndex:
    given = {"hierarchy": made or hierarchy(), "chunk_size": 40, **options}
    return HierarchicalIndex.build(sources, uri, **given)


@pytest.fixture(scope="module")
def held(tmp_path_factory) -> HierarchicalIndex:
    """An index that no test changes, beside its folder of texts."""
    place = tmp_path_factory.mktemp("held")
    return built(written(place / "texts"), place / "index")


def test_the_repr_names_the_index_without_a_password() -> None:
    secret = HierarchicalIndex(HierarchyStore("s3://ada:secret@bucket/index"), HashingEmbedding())
    assert repr(secret) == "HierarchicalIndex('s3://bucket/index')"


class TestBuildingAgain:
    def test_the_same_makes_no_model_call(self, folder, tmp_path) -> None:
        before = built(folder, tmp_path / "index")
        ids = columns_of(before.store, "id")
        made = hierarchy()
        after = built([folder], tmp_path / "index", made)
        assert made.embedder.embed_model.batches == []
        assert columns_of(after.store, "id") == ids
        report = after.last_build
        assert (report.added, report.changed, report.removed, report.unchanged) == (0, 0, 0, 3)
        assert report.generation > before.last_build.generation
        assert report.usage.cached_summaries == sum(
            level > 0 for level in columns_of(after.store, "level")["level"]
        )
        os.utime(folder / "b.md", (0, 0))  # a touched file is unchanged
        touched = built([folder], tmp_path / "index", made)
        assert made.embedder.embed_model.batches == []
        assert (touched.last_build.changed, touched.last_build.unchanged) == (0, 3)
        assert columns_of(touched.store, "id") == ids
        nodes = touched.store.get_nodes(filters=where(file_name="b.md"))
        assert {node.metadata["last_modified_date"] for node in nodes} == {"1970-01-01"}

    @pytest.mark.parametrize(
        "other", [{"parent_embedding": "mean"}, {"embed_model": HashingEmbedding(dim=32)}]
    )
    def test_other_vectors_are_not_used_again(self, folder, tmp_path, other) -> None:
        built(folder, tmp_path / "index")
        for uri in "index", "fresh":
            built(folder, tmp_path / uri, hierarchy(**other))
        again, fresh = (
            {node.node_id: node.embedding for node in HierarchyStore(tmp_path / uri).get_nodes()}
            for uri in ("index", "fresh")
        )
        assert again == fresh

    def test_if_nothing_can_be_read_all_is_as_before(self, folder, tmp_path) -> None:
        """A first build leaves no index, and a later one changes nothing."""
        (other := tmp_path / "other").mkdir()
        (other / "a.txt").write_bytes(b"\0")
        for _ in range(2):
            with pytest.raises(SourceError, match="is not text"):
                built(other, tmp_path / "new" / "index")
            with pytest.raises(IndexNotFoundError):
                HierarchicalIndex.open(tmp_path / "new" / "index").info()
        before = built(folder, tmp_path / "index").info()
        with pytest.raises(SourceError, match="is not text"):
            built(other, tmp_path / "index")
        assert HierarchicalIndex.open(tmp_path / "index").info() == before
        made = hierarchy()
        built(folder, tmp_path / "index", made)
        assert made.embedder.embed_model.batches == []

    def test_an_index_of_another_version_is_replaced_only_if_that_is_said(
        self, folder, tmp_path
    ) -> None:
        old = built(folder, tmp_path / "new").store.client.open_table("nodes").to_arrow()
        lancedb.connect(tmp_path / "index").create_table("nodes", old.replace_schema_metadata(None))
        with pytest.raises(FormatError, match=r"format 1, this .* format 14\); build it"):
            HierarchicalIndex.open(tmp_path / "index")
        with pytest.raises(FormatError, match="--replace"):
            built(folder, tmp_path / "index")
        report = built(folder, tmp_path / "index", replace=True).last_build
        assert (report.added, report.unchanged) == (3, 0)
        assert HierarchicalIndex.open(tmp_path / "index").info()["documents"] == 3

    def test_seconds_by_stage_add_up(self, folder, tmp_path) -> None:
        report = built(folder, tmp_path / "index").last_build.to_json()
        total = report["seconds"].pop("total")
        assert 0.8 * total <= sum(report["seconds"].values()) <= total + 0.01


def test_what_was_not_read_of_a_file_is_reported(folder, tmp_path) -> None:
    said = {"left_out": ["2 of 5 pages have no text"], "pages": 5}
    scan = Document(id_="scan.pdf", text="One page. Three words.", metadata=said)
    index = built([folder, scan], tmp_path / "index")
    files = {file["path"]: file for file in index.last_build.to_json()["files"]}
    assert {"a.txt", "scan.pdf"} < files.keys()
    assert files["scan.pdf"] == {"path": "scan.pdf", "kind": "pdf", "words": 4, **said}
    assert files["a.txt"]["left_out"] == []
    partly = [{"path": "scan.pdf", "left_out": said["left_out"]}]
    assert index.info()["read_in_part"] == partly
    index.update()
    assert index.last_build.files == []
    assert index.info()["read_in_part"] == partly


def test_a_hierarchys_own_progress_is_told(folder, tmp_path) -> None:
    told = []
    made = hierarchy(progress=lambda stage, done, total: told.append((stage, done, total)))
    built(folder, tmp_path / "index", made)
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages[:3] == ["read", "split", "embed chunks"]
    assert stages[-1] == "write"
    assert all(done <= total for _, done, total in told)
    assert {stage for stage, done, total in told if done == total} == set(stages)


class TestDocumentsFromAnyReader:
    def test_lone_surrogates_are_replaced(self, tmp_path) -> None:
        document = Document(text="\ud800 " + text_of("a"), id_="a\udcff", metadata={"k": "\ud800"})
        assert built([document], tmp_path / "index").last_build.added == 1
        again = built([document], tmp_path / "index")
        assert again.last_build.unchanged == 1
        (found, *_) = again.as_retriever(level=0).retrieve("keeper a1")
        assert found.node.ref_doc_id == "a\ufffd"

    @pytest.mark.parametrize(
        ("documents", "said"),
        [
            ([Document(text=text_of("a"), id_="a")] * 2, "id 'a'"),
            ([], "Nothing to index"),
            ([Document(text=" ")], "Nothing to index"),
        ],
        ids=["equal ids", "none", "blank"],
    )
    def test_equal_ids_and_nothing_are_refused(self, tmp_path, documents, said) -> None:
        with pytest.raises(SourceError, match=said):
            built(documents, tmp_path / "index")
        assert not (tmp_path / "index").exists()


def test_node_is_found_by_the_beginning_of_its_id(held) -> None:
    root = held.info()["roots"][0]
    described = held.describe(root[:10])
    assert described["id"] == root
    assert described["parents"] == []
    assert all(held.node(child) for child in described["children"])
    for wrong in ("", "not hexadecimal"):
        with pytest.raises(InputError, match="nodes have an id that begins with"):
            held.node(wrong)


def test_a_node_is_found_by_its_id_though_others_begin_with_it(tmp_path) -> None:
    store = HierarchyStore(tmp_path)
    store.add([TextNode(id_=i, text=i, embedding=[1.0]) for i in ("doc-1", "doc-10", "doc-2")])
    index = HierarchicalIndex(store)
    assert index.node("doc-1").text == "doc-1"
    assert index.node("doc-10").text == "doc-10"
    for wrong in ("doc", "\ud800"):
        with pytest.raises(InputError, match="nodes have an id that begins with"):
            index.node(wrong)


@pytest.mark.parametrize("name", ["store", "embed_model"])
def test_an_index_asks_its_own_store_with_its_own_model(held, name) -> None:
    for made in (held.as_retriever, held.as_query_engine):
        with pytest.raises(InputError, match=f"There is no option '{name}'"):
            made(**{name: None})
