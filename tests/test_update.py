"""An updated index equals a fresh build of its documents, and pays for changes alone."""

import json
import os
import re
import sqlite3
from contextlib import closing
from errno import EIO
from math import inf
from pathlib import Path
from zlib import decompress, error

import pytest
import records
from clients import llm_of
from fakes import HashingEmbedding
from guarantees import guaranteed
from histories import documents
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter
from llama_index.core.schema import (
    Document,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from loopback import Fault, LoopbackServer, quotes_sentences
from summarize.groups import RewriterOf

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyStore,
    Mixture,
    RaptorHierarchy,
    SemanticHierarchy,
    Skipped,
    load_embed_model,
)
from hierindex.cache import cache_file
from hierindex.errors import InputError, ModelError, SourceError
from hierindex.read.documents import READERS
from hierindex.summarize import LLMRewriter, TwoStageSummarizer

REWRITTEN = TwoStageSummarizer(RewriterOf(str))


def hierarchy_of(kind=SemanticHierarchy, model_name="known", **options):
    model = HashingEmbedding(model_name=model_name)
    return kind(model, **{"max_children": 3, "summary_tokens": 40, **options})


def built(sources, uri: Path, hierarchy=None, **options) -> HierarchicalIndex:
    options = {"hierarchy": hierarchy or hierarchy_of(), "chunk_size": 30, **options}
    return HierarchicalIndex.build(sources, uri, **options)


def as_plain(index: HierarchicalIndex) -> list[dict]:
    """All that is known of each node, by id."""
    return records.as_plain(index.store.get_nodes())


def embedded(index: HierarchicalIndex) -> set[str]:
    return {node.get_content(MetadataMode.EMBED) for node in index.store.get_nodes()}


def counts(report) -> tuple[int, int, int, int, int]:
    return report.added, report.changed, report.removed, report.renamed, report.unchanged


def names(report) -> tuple[list, list, list, list]:
    of = report.names
    return of.added, of.changed, of.removed, of.renamed


def text_of(name: str, n: int = 5) -> str:
    return "\n\n".join(
        f"In {name} the keeper met boat {i} at the gate of day {i}." for i in range(n)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "deep/c.txt"):
        (folder / name).write_text(text_of(name))
    return folder


@pytest.fixture
def index(folder, tmp_path) -> HierarchicalIndex:
    return built(folder, tmp_path / "index", hierarchy_of(DocumentHierarchy))


def documents_of(index: HierarchicalIndex) -> list[str]:
    nodes = index.store.get_nodes()
    return sorted({node.ref_doc_id for node in nodes if not node.metadata["hierindex_level"]})


def check_fresh(index: HierarchicalIndex, folder: Path, kind=DocumentHierarchy) -> None:
    """The index holds what a build of the folder makes, as far as that is guaranteed."""
    uri = folder.parent / f"fresh {index.store.snapshot().generation}"
    assert guaranteed(index, kind) == guaranteed(built(folder, uri, hierarchy_of(kind)), kind)


@pytest.mark.spread
@pytest.mark.parametrize("kind", [SemanticHierarchy, DocumentHierarchy])
@pytest.mark.parametrize("max_children", [3, 12])
def test_names_are_those_of_a_fresh_build(tmp_path, kind, max_children):
    """Also those of groups of documents and in their lists; none tells of what is gone."""

    def names(index):
        nodes = index.store.snapshot().nodes()
        return {n.children or n.id: (n.title, n.titles, n.text, n.n_chunks) for n in nodes}

    hierarchy = hierarchy_of(kind, max_children=max_children, summary_tokens=60)
    (folder := tmp_path / "texts").mkdir()
    files = [folder / f"All about the {each} of 1900.txt" for each in ("Amber", "Birch", "Cedar")]
    files += [folder / f"Report on river {each} in 1900.txt" for each in ("Daisy", "Ebony", "Fir")]
    for i, file in enumerate(files):
        said = "The miller ground barley {}{}." if i < 3 else "A ferry took crate {}{} to the quay."
        file.write_text("\n\n".join(said.format(i, j) for j in range(6)))
    index = built(folder, tmp_path / "index", hierarchy)

    def rename_and_shorten():
        files[1].rename(folder / "All about the Gorse of 1900.txt")
        files[0].write_text(files[0].read_text()[:99])
        index.update()

    def remove_and_delete():
        files[3].unlink()
        index.update()
        index.delete(files[5].name)
        files[5].unlink()

    edits = {rename_and_shorten: ["Birch"], remove_and_delete: ["Daisy", "Fir"]}
    for edit, gone in edits.items():
        edit()
        now, fresh = names(index), names(built(folder, tmp_path / edit.__name__, hierarchy))
        if max_children == 12:  # otherwise an update may group documents in another way
            assert now == fresh
        assert {key: said for key, (_, *said) in now.items() if key in fresh} == {
            key: said for key, (_, *said) in fresh.items() if key in now
        }
        assert any(titles for _, titles, *_ in now.values())
        assert not any(word in str(now) for word in gone)


def test_what_happens_to_a_folder_is_counted(index, folder):
    a, b, c = folder / "a.txt", folder / "b.txt", folder / "deep/c.txt"
    before = as_plain(index)
    old = a.read_text()

    assert counts(index.update()) == (0, 0, 0, 0, 3)
    a.write_text(old + "\n\nAnd one more.")
    assert counts(index.update()) == (0, 1, 0, 0, 2)
    a.write_text(old)
    assert counts(index.update()) == (0, 1, 0, 0, 2)
    assert as_plain(index) == before
    a.write_text(b.read_text())
    b.write_text(old)
    assert counts(index.update()) == (0, 2, 0, 0, 1)
    c.unlink()
    (folder / "d.txt").write_text(text_of("d"))
    assert counts(index.update()) == (1, 0, 1, 0, 2)
    check_fresh(index, folder)
    assert index.store.snapshot().report()["changes"]["added"] == 1


def test_documents_that_change_are_named(index, folder):
    a, b, c = folder / "a.txt", folder / "b.txt", folder / "deep/c.txt"
    (folder / "copy.txt").write_text(a.read_text())
    a.rename(folder / "x.txt")
    b.write_text(text_of("other"))
    changes = ["x.txt"], ["b.txt"], [], [("a.txt", "copy.txt")]
    assert names(index.update(dry_run=True)) == names(index.update()) == changes
    (folder / "copy.txt").rename(folder / "first.txt")
    (folder / "x.txt").rename(folder / "second.txt")
    c.unlink()
    pairs = [("copy.txt", "first.txt"), ("x.txt", "second.txt")]
    assert names(index.update()) == ([], [], ["deep/c.txt"], pairs)
    assert names(index.delete("first.txt")) == ([], [], ["first.txt"], [])


def test_an_update_of_nothing_loads_no_model_and_publishes_nothing(index, folder, monkeypatch):
    def load(*args, **kwargs):
        raise AssertionError("A model is loaded.")

    monkeypatch.setattr("hierindex.tree.hierarchy.load_embed_model", load)
    os.utime(folder / "a.txt", (0, 0))
    before = index.store.snapshot().generation
    opened = HierarchicalIndex.open(index.store.uri)
    report = opened.update()
    assert counts(report) == (0, 0, 0, 0, 3)
    assert report.statistics == []
    assert report.generation == opened.store.snapshot().generation == before
    assert counts(opened.update(folder)) == (0, 0, 0, 0, 3)


def test_a_report_prints_as_a_short_block(index, folder):
    (folder / "a.txt").write_text(text_of("other"))
    (folder / "empty.txt").touch()
    lines = str(index.update()).splitlines()
    assert re.fullmatch(r"Generation 2, \d+\.\d s", lines[0])
    assert lines[1] == "documents: 0 added, 1 changed, 0 removed, 0 renamed, 2 unchanged"
    assert lines[2] == "skipped files: 1"
    assert re.fullmatch(r"nodes that were grouped: \d+ of level 0, .*\d of level \d", lines[3])
    assert str(index.update()).endswith("nodes that were grouped: none")


def test_the_precision_is_remembered(folder, tmp_path):
    for file in folder.rglob("*.txt"):
        file.write_text(text_of(file.name, 2))
    model, others = (load_embed_model(precision=each) for each in ("float32", "bfloat16"))
    uri = tmp_path / "index"
    built(folder, uri, SemanticHierarchy(model))
    (folder / "new.txt").write_text(text_of("new", 2))
    opened = HierarchicalIndex.open(uri)
    assert counts(opened.update()) == (1, 0, 0, 0, 3)
    assert opened.embed_model.precision == model.precision

    asked = HierarchicalIndex.open(uri, others)
    found, again = (each.as_retriever().retrieve("Who is new?") for each in (opened, asked))
    assert [node.id_ for node in found] == [node.id_ for node in again]
    (folder / "new.txt").write_text(text_of("newer", 2))
    assert counts(asked.update()) == (0, 1, 0, 0, 3)
    assert asked.verify().ok
    asked.regrow(SemanticHierarchy(others))
    said = {node.maker.embed_settings for node in asked.store.snapshot().nodes()}
    assert [json.loads(settings)["precision"] for settings in said] == [model.precision]


class TestSources:
    def test_nothing_outside_them_is_removed(self, index, folder, tmp_path):
        (folder / "a.txt").unlink()
        (more := tmp_path / "more").mkdir()
        (more / "m.txt").write_text(text_of("m"))
        assert counts(index.update(more)) == (1, 0, 0, 0, 3)
        (more / "m.txt").unlink()
        (more / "n.txt").write_text(text_of("n"))
        assert counts(index.update()) == (1, 0, 2, 0, 2)
        fresh = built([folder, more], tmp_path / "fresh", hierarchy_of(DocumentHierarchy))
        assert as_plain(index) == as_plain(fresh)

    def test_a_part_of_one_is_read_alone(self, index, folder):
        (folder / "a.txt").unlink()
        (folder / "deep/c.txt").unlink()
        (folder / "deep/b.txt").write_text(text_of("new"))
        assert counts(index.update(folder / "deep")) == (1, 0, 1, 0, 2)
        assert documents_of(index) == ["a.txt", "b.txt", "deep/b.txt"]
        (folder / "b.txt").write_text(text_of("other"))
        assert counts(index.update(str(folder / "b.txt"))) == (0, 1, 0, 0, 2)
        index.update()
        check_fresh(index, folder)

    def test_a_link_in_a_part_to_a_file_outside_of_it_is_no_document(self, index, folder):
        for name, target in {"link.txt": "../a.txt", "other.txt": "../../m.txt"}.items():
            (folder / "deep" / name).symlink_to(target)
        (folder.parent / "m.txt").write_text(text_of("m"))
        (folder / "z.txt").symlink_to("../m.txt")
        for sources in (folder / "deep", None, folder / "deep"):
            report = index.update(sources)
            assert Skipped("deep/link.txt", "is a link to a.txt, which is read") in report.skipped
            assert report.removed == 0
        assert documents_of(index) == ["a.txt", "b.txt", "deep/c.txt", "deep/other.txt"]

    def test_they_keep_their_order(self, tmp_path):
        paths = [tmp_path / name for name in ("z.txt", "y.txt", "x.txt")]
        for path in paths:
            path.write_text(text_of(path.name))
        index = built(paths[:2], tmp_path / "index")
        index.update(paths[2])
        paths[0].write_text(text_of("other"))
        index.update([paths[2], paths[0]])
        assert documents_of(index) == ["x.txt", "y.txt", "z.txt"]
        assert as_plain(index) == as_plain(built(paths, tmp_path / "fresh"))

    def test_a_removed_file_among_files_is_removed_and_a_removed_folder_refused(
        self, folder, tmp_path
    ):
        files = [folder / "a.txt", folder / "b.txt"]
        index = built([*files, folder / "deep"], tmp_path / "index")
        files[0].unlink()
        assert counts(index.update()) == (0, 0, 1, 0, 2)
        assert counts(index.update()) == (0, 0, 0, 0, 2)
        files[0].write_text(text_of("a.txt"))  # it is back, as after a change of branches
        assert counts(index.update()) == (1, 0, 0, 0, 2)
        files[0].unlink()
        assert counts(index.update()) == (0, 0, 1, 0, 2)
        (folder / "deep/c.txt").unlink()
        (folder / "deep").rmdir()
        before = as_plain(index)
        index.delete("b.txt")
        with pytest.raises(SourceError, match=r"deep', which the index was built from"):
            index.update()
        assert len(before) > len(as_plain(index))

    def test_most_documents_must_not_go_with_an_empty_folder(self, index, folder, tmp_path):
        (more := tmp_path / "more").mkdir()
        (more / "m.txt").write_text(text_of("m"))
        index.update(more)
        before = as_plain(index)
        folder.rename(tmp_path / "elsewhere")
        folder.mkdir()
        for sources in (None, folder):
            with pytest.raises(InputError, match=r"update would remove 3 of the 4 .*hierindex del"):
                index.update(sources)
        assert as_plain(index) == before
        (tmp_path / "elsewhere/a.txt").rename(folder / "a.txt")
        assert counts(index.update()) == (0, 0, 2, 0, 2)
        (folder / "a.txt").rename(folder / "b.md")
        (more / "m.txt").unlink()
        (more / "n.txt").write_text(text_of("n"))
        assert index.update().removed > 0  # there are new ones for them

    def test_a_node_that_was_added_under_the_root_stays(self, folder, tmp_path):
        index = built(folder, tmp_path / "index", hierarchy_of(RaptorHierarchy))
        (root,) = index.info()["roots"]
        parent, vector = RelatedNodeInfo(node_id=root), HashingEmbedding().get_text_embedding("A")
        note = TextNode(id_="note", text="A note.", embedding=vector)
        note.relationships[NodeRelationship.PARENT] = parent
        index.store.add([note])
        (folder / "a.txt").write_text("In a.txt nobody met anybody.")
        assert index.update(folder).changed == 1
        assert [node.text for node in index.store.get_nodes(["note"])] == ["A note."]

    def test_two_documents_of_one_id_are_refused(self, index, folder, tmp_path):
        before = as_plain(index)
        (other := tmp_path / "other").mkdir()
        (other / "a.txt").write_text(text_of("other"))
        with pytest.raises(SourceError, match=r"holds another document 'a\.txt', from .*texts;"):
            index.update(other)
        with pytest.raises(SourceError, match="holds another document"):
            index.update(Document(text=text_of("other"), id_="a.txt"))
        with pytest.raises(SourceError, match="have the same document id"):
            index.update([folder, other])
        assert as_plain(index) == before
        (folder / "a.txt").unlink()  # it has moved, so both sources are read
        assert counts(index.update([folder, other])) == (0, 1, 0, 0, 2)

    def test_one_around_another_is_refused(self, index, folder):
        with pytest.raises(SourceError, match="would be indexed twice"):
            index.update(folder.parent)

    def test_nothing_is_left(self, index, folder):
        for path in folder.rglob("*.txt"):
            path.write_text(" ")
        with pytest.raises(SourceError, match=r"Nothing to index in .*only white space"):
            index.update()
        (empty := folder.parent / "empty").mkdir()
        with pytest.raises(SourceError, match="there is no file"):
            index.update(empty)

    @pytest.mark.parametrize("place", ["a.txt", "deep"])
    def test_what_cannot_be_read_for_a_moment_is_kept(self, index, folder, monkeypatch, place):
        method = "iterdir" if place == "deep" else "open"
        usual = getattr(Path, method)

        def fail(path, *args, **options):
            if path == folder / place:
                raise OSError(EIO, os.strerror(EIO))
            return usual(path, *args, **options)

        index.delete("b.txt")
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, fail)
            report = index.update()
            named = index.update(folder) if place == "deep" else report
        assert counts(report) == counts(named) == (0, 0, 0, 0, 2)
        reason = {each.path: each.reason for each in report.skipped}[place]
        assert reason.startswith("cannot be read (")
        assert reason.endswith("); its earlier content is kept")
        assert counts(index.update()) == (0, 0, 0, 0, 2)
        assert documents_of(index) == ["a.txt", "deep/c.txt"]

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
    def test_one_that_cannot_be_entered_is_refused(self, index, folder):
        folder.chmod(0)
        try:
            with pytest.raises(SourceError, match="cannot be read"):
                index.update()
        finally:
            folder.chmod(0o700)


class TestDeletion:
    def test_a_deleted_document_stays_out_until_it_is_named(self, index, folder):
        before = as_plain(index)
        assert counts(index.delete("a.txt", "deep/c.txt")) == (0, 0, 2, 0, 1)
        for report in (index.update(), index.update(folder)):
            assert counts(report) == (0, 0, 0, 0, 1)
            assert [each.path for each in report.skipped] == ["a.txt", "deep/c.txt"]
        assert "a.txt" not in str(index.store.snapshot().report())
        assert counts(index.update(folder / "a.txt")) == (1, 0, 0, 0, 1)
        assert counts(index.update([folder, folder / "deep/c.txt"])) == (1, 0, 0, 0, 2)
        assert as_plain(index) == before
        assert index.store.snapshot().report()["left_out"] == {}

    def test_no_byte_of_it_remains(self, index, folder):
        def holding(word: str) -> list[str]:
            files = [path for path in Path(index.store.uri).rglob("*") if path.is_file()]
            return [path.name for path in files if word.encode() in path.read_bytes()]

        (folder / "b.txt").write_text("Zanzibar lies by the sea. The keeper sailed there once.")
        index.update()
        assert holding("Zanzibar")
        index.delete("b.txt")
        assert not holding("Zanzibar")
        assert not holding("b.txt")

    def test_what_an_update_drops_is_purged_if_that_is_asked(self, index, folder):
        (folder / "b.txt").write_text(text_of("other"))
        index.update()
        assert len(index.store.generations()) == 2
        index.update(purge=True)
        assert len(index.store.generations()) == 1
        assert index.update(purge=True).generation == 3  # as there is nothing to purge
        (folder / "b.txt").write_text(text_of("b"))
        index.update(purge=True)
        assert len(index.store.generations()) == 1

    def test_a_build_reads_it_again(self, index, folder):
        index.delete("a.txt")
        again = built(folder, index.store.uri, hierarchy_of(DocumentHierarchy))
        assert counts(again.last_build) == (1, 0, 0, 0, 2)
        assert counts(index.update()) == (0, 0, 0, 0, 3)

    def test_a_document_whose_file_is_gone_is_kept(self, index, folder):
        (folder / "b.txt").unlink()
        index.delete("a.txt")
        assert documents_of(index) == ["b.txt", "deep/c.txt"]

    def test_bad_names_are_refused(self, index):
        before = as_plain(index)
        for names, said in (
            (["b.tx"], r"no document 'b\.tx'; the nearest is b\.txt\."),
            (["a.txt", "nothing like it"], r"no document 'nothing like it'\."),
            (["a.txt", "b.txt", "deep/c.txt"], "all documents of the index"),
            ([], "Name the documents"),
        ):
            with pytest.raises(InputError, match=said):
                index.delete(*names)
        assert as_plain(index) == before


class TestCaches:
    def test_what_is_kept_is_read_and_embedded_once(self, index, folder, monkeypatch):
        (folder / "more.md").write_text(f"# More\n\n{text_of('more')}")
        index.update()
        n_read, read = 0, READERS[".md"]

        def counted(file):
            nonlocal n_read
            n_read += 1
            return read(file)

        monkeypatch.setitem(READERS, ".md", counted)
        known = embedded(index)
        index.embed_model.batches.clear()
        index.delete("a.txt")
        (folder / "b.txt").write_text(text_of("b.txt") + "\n\nOne more.")
        index.update(folder / "b.txt")
        (folder / "more.md").rename(folder / "same.md")
        index.update()
        assert not known & {text for batch in index.embed_model.batches for text in batch}
        built(folder, index.store.uri, DocumentHierarchy(index.embed_model, max_children=3))
        assert n_read == 0

    def test_what_was_read_of_a_refused_file_is_forgotten(self, index, folder):
        (folder / "a.md").write_text(f"Secret. {'x' * 1_000_001}")
        (folder / "b.md").write_text(text_of("b.md"))
        assert "a.md" in [each.path for each in index.update().skipped]
        (folder / "a.md").unlink()
        (folder / "c.md").write_text(text_of("c.md"))
        index.update()
        assert not mentioned(index, b"Secret")

    def test_a_copy_needs_what_is_cached_of_the_other(self, index, folder):
        (folder / "copy.txt").write_text(text_of("a.txt"))
        index.update()
        (folder / "copy.txt").unlink()
        index.update()
        index.embed_model.batches.clear()
        kind = {"max_children": 3, "summary_tokens": 40}
        again = built(folder, index.store.uri, DocumentHierarchy(index.embed_model, **kind))
        assert index.embed_model.batches == []
        assert again.last_build.usage.cached_summaries == 4  # of three documents and the root

    def test_summaries_of_another_recipe_go_with_their_documents(self, index, folder):
        (folder / "a.txt").write_text("Zanzibar lies by the sea. The keeper sailed there once.")
        index.update()
        index.regrow(hierarchy_of(DocumentHierarchy, summary_tokens=30))
        assert mentioned(index, b"Zanzibar")
        (folder / "a.txt").unlink()
        index.update(purge=True)
        assert not mentioned(index, b"Zanzibar")

    def test_nothing_of_what_is_gone_stays(self, index, folder, tmp_path):
        """Also of generations that were rolled back."""
        (folder / "a.txt").write_text("Zanzibar lies by the sea. The keeper sailed there once.")
        index.update()
        index.store.rollback()
        index.delete("a.txt")
        (folder / "b.txt").write_text(text_of("other"))
        index.update()
        index.update(purge=True)
        (folder / "a.txt").unlink()
        fresh = built(folder, tmp_path / "fresh", hierarchy_of(DocumentHierarchy))
        held = [rows(each.store.uri) for each in (index, fresh)]
        assert held[0] == held[1]


def rows(uri: str) -> list[tuple[str, int]]:
    """The keys in an index's cache, with what their values are of."""
    with closing(sqlite3.connect(cache_file(uri))) as connection:
        return connection.execute("SELECT key, of FROM cache ORDER BY key").fetchall()


def mentioned(index, word: bytes) -> bool:
    """Whether a value in an index's cache has a word."""
    with closing(sqlite3.connect(cache_file(index.store.uri))) as connection:
        values = [value for (value,) in connection.execute("SELECT value FROM cache")]
    return any(word in each for value in values for each in (value, inflated(value)))


def inflated(value: bytes) -> bytes:
    try:
        return decompress(value)
    except error:
        return b""


class TestSettings:
    def test_another_hierarchy_is_refused(self, index, folder):
        (folder / "a.txt").unlink()
        before = as_plain(index)
        for other, said in (
            (hierarchy_of(SemanticHierarchy), "class_name='DocumentHierarchy'"),
            (hierarchy_of(DocumentHierarchy, max_children=4), "max_children=3, .* has 4"),
            (hierarchy_of(DocumentHierarchy, "x"), "the embedding model 'known'"),
            (hierarchy_of(DocumentHierarchy, summarizer=REWRITTEN), "summarizer="),
        ):
            with pytest.raises(InputError, match=said):
                index.update(hierarchy=other)
        assert as_plain(index) == before
        index.update(hierarchy=hierarchy_of(DocumentHierarchy))
        check_fresh(index, folder)

    def test_they_are_remembered(self, tmp_path, folder):
        kind = SemanticHierarchy
        options = {"max_children": 4, "max_levels": 2, "seed": 5, "summary_tokens": 30}
        built(folder, tmp_path / "index", hierarchy_of(kind, **options))
        (folder / "b.txt").write_text(text_of("other", 20))
        index = HierarchicalIndex.open(tmp_path / "index", HashingEmbedding(model_name="known"))
        index.update()
        fresh = built(folder, tmp_path / "fresh", hierarchy_of(kind, **options))
        assert guaranteed(index, kind) == guaranteed(fresh, kind)
        assert index.settings == fresh.settings

    def test_what_cannot_be_remembered_has_to_be_passed(self, tmp_path, folder):
        hierarchy = hierarchy_of(metadata_rules={"file_name": max})
        splitter = TokenTextSplitter(chunk_size=20, chunk_overlap=5)
        given = {"hierarchy": hierarchy, "splitter": splitter, "chunk_size": None}
        index = built(folder, tmp_path / "index", **given)
        (folder / "b.txt").write_text(text_of("other"))
        with pytest.raises(InputError, match=r"rules for \['file_name'\]; pass .*hierarchy="):
            index.update()
        with pytest.raises(InputError, match="TokenTextSplitter, got the default splitter; pass"):
            index.update(hierarchy=hierarchy)
        index.update(hierarchy=hierarchy, splitter=splitter)
        assert as_plain(index) == as_plain(built(folder, tmp_path / "fresh", **given))
        index.delete("a.txt", hierarchy=hierarchy)
        (folder / "b.txt").write_text(text_of("b"))
        with pytest.raises(InputError, match="TokenTextSplitter, got the default splitter"):
            index.update(hierarchy=hierarchy)
        for more in ({"llm": MockLLM()}, {"concurrency": 2}):
            with pytest.raises(InputError, match="either hierarchy= or llm="):
                index.update(hierarchy=hierarchy, **more)
        with pytest.raises(InputError, match="no option 'speed'"):
            index.update(speed=3)

    def test_a_language_model_is_asked_only_if_it_is_passed(self, folder, tmp_path):
        with LoopbackServer(reply=quotes_sentences) as server:
            llm = llm_of(
                server, model="tiny", api_base=server.base_url.replace("://", "://ada:secret@")
            )
            rewriter = LLMRewriter(llm, prompt="Shorten this:\n{fence}\n{text}\n{fence}")
            by_llm = TwoStageSummarizer(rewriter)
            index = built(folder, tmp_path / "index", DocumentHierarchy(HashingEmbedding(), by_llm))
            assert index.settings["llm"]["name"] == "tiny"
            assert "secret" not in str(index.store.snapshot().report())
            n_before = len(server.requests)
            index.update()
            (folder / "b.txt").write_text(text_of("other"))
            for change in (index.update, lambda: index.delete("a.txt")):
                with pytest.raises(InputError, match="language model 'tiny'; pass it as llm="):
                    change()
            assert len(server.requests) == n_before
            estimate = index.update(llm=llm, dry_run=True)
            assert estimate.changed == 1
            assert len(server.requests) == n_before
            n_calls = index.update(llm=llm, concurrency=1).usage.llm_calls
            assert n_calls == len(server.requests) - n_before == estimate.usage.llm_calls
            assert 0 < n_calls < n_before


@pytest.mark.filterwarnings("ignore::hierindex.errors.FallbackWarning")
def test_an_outage_of_the_language_model_leaves_the_index(folder, tmp_path, no_wait):
    """Whether it begins at once or after the first summary."""
    began = inf
    with LoopbackServer(
        reply=quotes_sentences, faults=lambda number: Fault(500) if number >= began else None
    ) as server:
        by_llm = TwoStageSummarizer(LLMRewriter(llm_of(server, model="tiny"), concurrency=1))
        hierarchy = DocumentHierarchy(HashingEmbedding(), by_llm)
        index = built(folder, tmp_path / "index", hierarchy)
        before = as_plain(index)
        (folder / "b.txt").write_text(text_of("other"))
        began = len(server.requests)
        with pytest.raises(ModelError, match="'tiny' failed for"):
            index.update(hierarchy=hierarchy)
        assert as_plain(index) == before
        began = len(server.requests) + 1
        with pytest.raises(ModelError, match="'tiny' failed for"):
            built(folder, tmp_path / "other", DocumentHierarchy(HashingEmbedding(), by_llm))
        assert not (tmp_path / "other" / "current").exists()
        began = inf
        assert index.update(hierarchy=hierarchy).usage.fallbacks == 0


def test_an_estimate_of_an_update_or_a_deletion_changes_nothing(index, folder):
    before = as_plain(index)
    assert index.update(dry_run=True).statistics == []
    (folder / "b.txt").write_text(text_of("b.txt") + "\n\nOne paragraph more is here.")
    estimate = index.update(dry_run=True)
    assert counts(estimate) == (0, 1, 0, 0, 2)
    assert (estimate.embedded_chunks, estimate.embedded_tokens > 5) == (1, True)
    assert index.update(dry_run=True).embedded_chunks == 0  # whose vector is cached now
    assert index.delete("a.txt", dry_run=True).removed == 1
    assert as_plain(index) == before
    levels = [(s.level, s.nodes) for s in index.update().statistics]
    assert [(s.level, s.nodes) for s in estimate.statistics] == levels


def test_the_settings_of_clusters_are_remembered(folder, tmp_path):
    model, uri = HashingEmbedding(), tmp_path / "index"
    overlapping = RaptorHierarchy(model, mixture=Mixture(min_weight=0.1))
    built(folder, uri, overlapping)
    index = HierarchicalIndex.open(uri, model)
    (folder / "new.txt").write_text(text_of("new"))
    assert index.update().added == 1
    (folder / "newer.txt").write_text(text_of("newer"))
    with pytest.raises(InputError, match=r"built with mixture=.*'min_weight': 0\.1.* has .*0\.25"):
        index.update(hierarchy=RaptorHierarchy(model))
    assert index.update(hierarchy=overlapping).added == 1


class TestReplace:
    def test_another_method_or_model_is_refused_unless_it_is_meant(self, index, folder):
        before = as_plain(index)
        for other, said in (
            (hierarchy_of(SemanticHierarchy), "method 'document', this build has 'semantic'"),
            (hierarchy_of(DocumentHierarchy, "x"), "embedding model 'known', this build has 'x'"),
            (hierarchy_of(DocumentHierarchy, summarizer=REWRITTEN), "summariser 'extractive'"),
        ):
            with pytest.raises(InputError, match=said):
                built(folder, index.store.uri, other)
        assert as_plain(index) == before
        built(folder, index.store.uri, replace=True)
        assert index.info()["method"] == "semantic"

    def test_most_documents_must_not_go_by_a_slip(self, index, folder):
        given = {"hierarchy": hierarchy_of(DocumentHierarchy)}
        with pytest.raises(InputError, match=r"would remove 2 of the 3 documents .* --replace"):
            built(folder / "deep", index.store.uri, **given)
        for name in ("a.txt", "b.txt"):
            (folder / name).rename(folder / f"new {name}")
        assert built(folder, index.store.uri, **given).last_build.renamed == 2
        (folder / "new a.txt").unlink()
        assert built(folder, index.store.uri, **given).last_build.removed == 1
        other = built(
            documents({"other": "The keeper woke."}), index.store.uri, replace=True, **given
        )
        assert (other.last_build.removed, documents_of(index)) == (2, ["other"])


def test_llama_index_habits(tmp_path):
    texts = {name: text_of(name) for name in "abc"}
    made = [Document(text=text, id_=name) for name, text in texts.items()]
    index = HierarchicalIndex.from_documents(made[:2], tmp_path, hierarchy=hierarchy_of())
    index.insert(made[2])
    assert documents_of(index) == ["a", "b", "c"]
    changed = Document(text=text_of("other"), id_="b")
    assert index.refresh_ref_docs([made[0], changed]) == [False, True]
    assert index.refresh_ref_docs([made[0], changed]) == [False, False]
    index.delete_ref_doc("a")
    assert documents_of(index) == ["b", "c"]
    assert index.update().unchanged == 2
    assert index.refresh_ref_docs([]) == []
    blank = Document(text=" ", id_="b")
    assert index.refresh_ref_docs([blank, made[2]]) == [True, False]
    assert index.last_build.skipped == [Skipped("b", "contains only white space")]
    assert documents_of(index) == ["c"]
    assert index.refresh_ref_docs([blank]) == [False]
    with pytest.raises(SourceError, match="Nothing to index: c contains only white space"):
        index.refresh_ref_docs([Document(text="", id_="c")])


def test_a_blank_document_removes_no_file(index):
    assert index.refresh_ref_docs([Document(text="", id_="a.txt")]) == [False]
    assert documents_of(index) == ["a.txt", "b.txt", "deep/c.txt"]


class TestPipelines:
    def pipeline(self, uri):
        model = HashingEmbedding(model_name="known")
        return IngestionPipeline(
            transformations=[
                SentenceSplitter(chunk_size=30, chunk_overlap=0),
                model,
                hierarchy_of(SemanticHierarchy, cache=uri),
            ],
            vector_store=HierarchyStore(uri),
            docstore=SimpleDocumentStore(),
            docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        )

    def test_what_a_pipeline_changed_is_grown_again(self, tmp_path):
        pipeline = self.pipeline(tmp_path)
        pipeline.run(documents=documents({name: text_of(name) for name in "abcd"}))
        now = {"a": text_of("a"), "b": text_of("other"), "c": text_of("c"), "e": text_of("e")}
        with pytest.warns(UserWarning, match=r"Pass store= to the hierarchy") as told:
            pipeline.run(documents=documents(now))
        index = HierarchicalIndex.open(tmp_path, HashingEmbedding(model_name="known"))
        before = index.info()
        assert len(before["roots"]) > 1
        (warning,) = told
        assert f"now has {len(before['roots'])} roots" in str(warning.message)
        assert f"`hierindex update --index {tmp_path}`" in str(warning.message)
        index.embed_model.batches.clear()
        report = index.update(hierarchy=hierarchy_of())
        info = index.info()
        assert (len(info["roots"]), info["stale"], info["documents"]) == (1, 0, before["documents"])
        assert counts(report)[:4] == (0, 0, 0, 0)
        assert index.update().statistics == []
        leaves = [n for n in index.store.get_nodes() if not n.metadata["hierindex_level"]]
        place = {name: i for i, name in enumerate(documents_of(index))}
        leaves.sort(key=lambda n: (place[n.ref_doc_id], n.start_char_idx))
        fresh = hierarchy_of()(leaves)
        assert {n.node_id for n in fresh} == {n.node_id for n in index.store.get_nodes()}

    def test_a_deletion_from_the_store_is_grown_again_or_comes_back(self, index, folder):
        index.store.delete("a.txt")
        assert index.info()["stale"] > 0
        index.regrow()
        assert (index.info()["stale"], documents_of(index)) == (0, ["b.txt", "deep/c.txt"])
        index.store.delete("b.txt")
        assert counts(index.update()) == (2, 0, 0, 0, 1)
        check_fresh(index, folder)

    def test_the_method_is_taken_from_the_nodes(self, tmp_path):
        pipeline = self.pipeline(tmp_path)
        pipeline.run(documents=documents({"a": text_of("a")}))
        with pytest.warns(UserWarning, match="now has 2 roots"):
            pipeline.run(documents=documents({name: text_of(name) for name in "ab"}))
        index = HierarchicalIndex.open(tmp_path, HashingEmbedding(model_name="known"))
        index.regrow()
        assert (index.info()["method"], len(index.info()["roots"])) == ("semantic", 1)
        index.regrow(hierarchy_of(DocumentHierarchy))
        assert index.info()["method"] == "document"
        with pytest.raises(InputError, match="the embedding model 'known'"):
            index.regrow(hierarchy_of(SemanticHierarchy, "x"))
