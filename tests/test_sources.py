"""Sources that move, files that come and go, and chunks that others delete or add."""

import os
import re
from errno import EIO
from pathlib import Path
from shutil import copytree
from unittest.mock import Mock

import pytest
from llama_index.core.schema import (
    Document,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from loopback import LoopbackServer, quotes_sentences
from test_update import (
    as_plain,
    built,
    check_fresh,
    counts,
    documents_of,
    hierarchy_of,
    text_of,
)

from hierindex import DocumentHierarchy, HierarchicalIndex, Skipped
from hierindex.errors import InputError, SourceError
from hierindex.models.client import load_llm
from hierindex.node import MODIFIED
from hierindex.store.table import Table
from hierindex.summarize import LLMRewriter, TwoStageSummarizer

NAMES = ("a.txt", "b.txt", "deep/c.txt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / name).write_text(text_of(name))
    return tmp_path / "notes"


@pytest.fixture
def index(folder, tmp_path) -> HierarchicalIndex:
    return built(folder, tmp_path / "index", hierarchy_of(DocumentHierarchy))


@pytest.fixture
def moved(index, folder, tmp_path) -> Path:
    """Where the folder is after it was moved."""
    (tmp_path / "archive").mkdir()
    return folder.rename(tmp_path / "archive" / "letters")


def fresh(sources, tmp_path) -> HierarchicalIndex:
    return built(sources, tmp_path / "fresh", hierarchy_of(DocumentHierarchy))


def shortening(llm) -> DocumentHierarchy:
    rewriter = LLMRewriter(llm, prompt="Shorten this:\n{fence}\n{text}\n{fence}")
    by_llm = TwoStageSummarizer(rewriter)
    return hierarchy_of(DocumentHierarchy, summarizer=by_llm)


class TestMovedSources:
    def test_it_is_read_where_it_is_named(self, index, moved, tmp_path):
        with pytest.raises(SourceError, match="name the path to which it was moved"):
            index.update()
        index.embed_model.batches.clear()
        assert counts(index.update(moved)) == (0, 0, 0, 0, 3)
        assert index.embed_model.batches == []
        assert as_plain(index) == as_plain(fresh(moved, tmp_path))
        generation = index.store.snapshot().generation
        for sources in (None, moved, moved / "deep"):
            report = index.update(sources)
            assert (counts(report), report.generation) == ((0, 0, 0, 0, 3), generation)
        (moved / "b.txt").write_text(text_of("other"))
        assert counts(index.update()) == (0, 1, 0, 0, 2)
        check_fresh(index, moved)

    def test_nothing_is_paid_for_it(self, folder, tmp_path):
        """No model is loaded, no request is sent and no group is made again."""
        with LoopbackServer(reply=quotes_sentences) as server:
            llm = load_llm("tiny", server.base_url)
            index = built(folder, tmp_path / "index", shortening(llm))
        before = {node.node_id: node.get_content() for node in index.store.get_nodes()}
        moved = folder.rename(tmp_path / "moved")
        index = HierarchicalIndex.open(index.store.uri)  # without its models
        told = index.update(moved, dry_run=True)
        assert (told.statistics, told.unchanged) == ([], 3)
        assert told.moved == [(str(folder), str(moved))]
        report = index.update(moved)
        assert report.moved == [(str(folder), str(moved))]
        assert (report.generation, report.statistics, counts(report)) == (2, [], (0, 0, 0, 0, 3))
        assert {node.node_id: node.get_content() for node in index.store.get_nodes()} == before
        assert (index.update().generation, index.update().moved) == (2, [])
        assert index.verify().ok
        index.store.rollback()
        with pytest.raises(SourceError, match="cannot be found; name the path"):
            index.update()
        assert index.update(moved).moved == report.moved

    def test_another_source_may_take_its_place(self, index, folder, moved):
        index.update(moved)
        folder.mkdir()
        (folder / "z.txt").write_text(text_of("z"))
        assert counts(index.update(folder)) == (1, 0, 0, 0, 3)
        again = moved.rename(moved.parent / "again")
        report = index.update([folder, again])
        assert (report.moved, counts(report)) == ([(str(moved), str(again))], (0, 0, 0, 0, 4))
        assert index.store.snapshot().report()["sources"] == [str(again), str(folder)]

    def test_what_changed_meanwhile_is_found(self, index, moved):
        (moved / "a.txt").write_text(text_of("other"))
        (moved / "d.txt").write_text(text_of("d"))
        report = index.update(moved)
        assert counts(report) == (1, 1, 0, 0, 2)
        assert [new for _, new in report.moved] == [str(moved)]
        (moved / "b.txt").unlink()
        again = moved.rename(moved.parent / "again")
        assert counts(index.update(again)) == (0, 0, 1, 0, 3)
        check_fresh(index, again)

    def test_a_file_that_cannot_be_read_there_is_removed_until_it_can(
        self, index, moved, monkeypatch
    ):
        usual = Path.open

        def fail(path, *args, **options):
            if path == moved / "a.txt":
                raise OSError(EIO, os.strerror(EIO))
            return usual(path, *args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", fail)
            report = index.update(moved)
        assert counts(report) == (0, 0, 1, 0, 2)
        unread = Skipped("a.txt", "cannot be read (Input/output error)", is_unread=True)
        assert report.skipped == [unread]
        assert counts(index.update()) == (1, 0, 0, 0, 2)
        check_fresh(index, moved)

    def test_what_was_deleted_stays_out(self, index, folder, tmp_path):
        index.delete("a.txt")
        moved = folder.rename(tmp_path / "moved")
        for sources in (moved, None):
            report = index.update(sources)
            assert counts(report) == (0, 0, 0, 0, 2)
            assert [each.path for each in report.skipped] == ["a.txt"]
        assert counts(index.update(moved / "a.txt")) == (1, 0, 0, 0, 2)
        assert as_plain(index) == as_plain(fresh(moved, tmp_path))

    def test_sources_keep_their_order(self, index, folder, tmp_path):
        (more := tmp_path / "more").mkdir()
        (more / "m.txt").write_text(text_of("m"))
        index.update(more)
        here, there = folder.rename(tmp_path / "x"), more.rename(tmp_path / "y")
        with pytest.raises(SourceError, match="cannot be found; name the path"):
            index.update()
        assert counts(index.update(there)) == (0, 0, 0, 0, 4)
        assert counts(index.update(here)) == (0, 0, 0, 0, 4)
        assert counts(index.update()) == (0, 0, 0, 0, 4)
        assert as_plain(index) == as_plain(fresh([here, there], tmp_path))
        both = [here.rename(tmp_path / "p"), there.rename(tmp_path / "q")]
        assert counts(index.update(both[::-1])) == (0, 0, 0, 0, 4)
        assert index.store.snapshot().report()["sources"] == list(map(str, both))

    def test_a_file_among_others_may_move(self, folder, tmp_path):
        index = built([folder / "a.txt", folder / "b.txt"], tmp_path / "index")
        (folder / "a.txt").rename(folder / "deep" / "a.txt")
        assert counts(index.update(folder / "deep" / "a.txt")) == (0, 0, 0, 0, 2)
        assert counts(index.update()) == (0, 0, 0, 0, 2)
        assert documents_of(index) == ["a.txt", "b.txt"]

    def test_a_copy_of_a_source_that_exists_is_refused(self, index, folder, tmp_path):
        copy = copytree(folder, tmp_path / "copy")
        with pytest.raises(SourceError, match=r"document 'a\.txt' of '.*notes', so the document"):
            index.update(copy)
        assert counts(index.update()) == (0, 0, 0, 0, 3)

    def test_other_content_under_the_same_names_is_refused(self, index, moved, tmp_path):
        (other := tmp_path / "other" / "deep").mkdir(parents=True)
        for name in NAMES:
            (other.parent / name).write_text(text_of(f"other {name}"))
        before = as_plain(index)
        with pytest.raises(SourceError, match=r"but most with other content; build the index"):
            index.update(other.parent)
        assert as_plain(index) == before
        assert counts(index.update(moved)) == (0, 0, 0, 0, 3)

    def test_a_folder_with_other_names_is_another_source(self, index, moved, tmp_path):
        (other := tmp_path / "other").mkdir()
        for name in ("x.txt", "y.txt"):
            (other / name).write_text(text_of(name))
        assert counts(index.update(other)) == (2, 0, 0, 0, 3)
        (other / "b.txt").write_text(text_of("other b"))
        with pytest.raises(SourceError, match="or delete the one that the index holds"):
            index.update(other)
        index.delete("b.txt")
        assert counts(index.update(other)) == (1, 0, 0, 0, 4)
        assert counts(index.update(moved / "deep")) == (1, 0, 0, 0, 5)

    def test_an_update_that_is_killed_and_one_that_is_taken_back(self, index, moved, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(Table, "_publish", Mock(side_effect=ZeroDivisionError))
            with pytest.raises(ZeroDivisionError):
                index.update(moved)
        for _ in range(2):
            with pytest.raises(SourceError, match="cannot be found; name the path"):
                index.update()
            assert counts(index.update(moved)) == (0, 0, 0, 0, 3)
            assert counts(index.update()) == (0, 0, 0, 0, 3)
            index.store.rollback()


class TestPathsThatAreGone:
    def test_what_the_index_holds_of_one_is_named(self, index, folder, tmp_path):
        (folder / "a.txt").unlink()
        (folder / "deep/c.txt").unlink()
        (folder / "deep").rmdir()
        held = "no longer exists, but the index holds {!r}; update its source {!r}, or delete"
        for path, document in (("a.txt", "a.txt"), ("deep/c.txt", "deep/c.txt")):
            with pytest.raises(SourceError, match=re.escape(held.format(document, str(folder)))):
                index.update(folder / path)
        with pytest.raises(SourceError, match=re.escape("'deep/c.txt'")):
            index.update(folder / "deep")
        for path in (folder / "never.txt", tmp_path / "never", "\ud800", "a\0b"):
            with pytest.raises(SourceError, match="cannot be found or read"):
                index.update([folder, path])
        index.update(Document(id_="of no file", text=text_of("no file")))
        with pytest.raises(SourceError, match="cannot be found or read"):
            index.update(tmp_path / "never")
        (folder / "a.txt").write_text(text_of("other"))
        assert counts(index.update(folder)) == (0, 1, 1, 0, 2)
        with pytest.raises(SourceError, match="cannot be found or read"):
            index.update(folder / "deep/c.txt")  # the index holds it no longer

    def test_a_file_that_was_renamed_is_asked_for(self, folder, tmp_path):
        index = built(folder / "a.txt", tmp_path / "index")
        (folder / "a.txt").rename(folder / "z.txt")
        for sources in (None, folder / "a.txt"):
            with pytest.raises(
                SourceError, match=r"a\.txt', which .* name the path to which it was"
            ):
                index.update(sources)
        assert counts(index.update(folder / "z.txt")) == (1, 0, 0, 0, 1)
        assert counts(index.update()) == (0, 0, 1, 0, 1)  # now that another document remains


@pytest.mark.parametrize("text", ["One.\n\nTwo.", "A bridge. " * 999], ids=["lines", "long"])
def test_a_text_is_no_source(index, tmp_path, text):
    told = r"^The source .{,220} cannot be found or read; pass a text as .*Document\(text=\.\.\.\)"
    for take in (index.insert, index.update, lambda text: built([text], tmp_path / "new")):
        with pytest.raises(SourceError, match=told):
            take(text)
        with pytest.raises(InputError, match="must be a path or a Document, got bytes"):
            take(text.encode())


class TestFilesThatComeAndGo:
    def test_a_deleted_document_stays_out_also_if_its_file_was_away(self, folder, tmp_path):
        """Nothing is published meanwhile, so that no language model has to be passed."""
        with LoopbackServer(reply=quotes_sentences) as server:
            llm = load_llm("tiny", server.base_url)
            index = built(folder, tmp_path / "index", shortening(llm))
            generation = index.delete("a.txt", llm=llm).generation
            for here, there in (("a.txt", "../away"), ("../away", "a.txt")):
                (folder / here).rename(folder / there)
                report = index.update()
                assert (report.generation, counts(report)) == (generation, (0, 0, 0, 0, 2))
            assert [each.path for each in report.skipped] == ["a.txt"]
            (folder / "a.txt").rename(folder / "../away")
            (folder / "b.txt").write_text(text_of("other"))
            assert counts(index.update(llm=llm)) == (0, 1, 0, 0, 1)
            (folder / "../away").rename(folder / "a.txt")
            assert counts(index.update()) == (0, 0, 0, 0, 2)
            assert counts(index.update(folder / "a.txt", llm=llm)) == (1, 0, 0, 0, 2)
            assert counts(index.update()) == (0, 0, 0, 0, 3)

    def test_a_file_that_was_only_touched_keeps_its_date(self, index, folder):
        def dates():
            nodes = index.store.get_nodes()
            return {n.metadata[MODIFIED] for n in nodes if n.ref_doc_id == "a.txt"}

        before = dates()
        os.utime(folder / "a.txt", (0, 0))
        index.update()
        assert dates() == before
        (folder / "a.txt").write_text(text_of("other"))
        os.utime(folder / "a.txt", (0, 0))
        index.update()
        assert dates() == {"1970-01-01"}


def chunks_of(index, document) -> list[TextNode]:
    nodes = index.store.get_nodes()
    chunks = [n for n in nodes if n.ref_doc_id == document and not n.metadata["hierindex_level"]]
    return sorted(chunks, key=lambda chunk: chunk.start_char_idx)


class TestChunksThatOthersChange:
    @pytest.mark.parametrize("at", [slice(1), slice(1, None)])
    def test_what_the_store_deleted_comes_back(self, index, folder, at):
        before = as_plain(index)
        index.store.delete_nodes([chunk.node_id for chunk in chunks_of(index, "b.txt")[at]])
        assert len(as_plain(index)) < len(before)
        assert counts(index.update()) == (0, 1, 0, 0, 2)
        assert as_plain(index) == before
        assert counts(index.update()) == (0, 0, 0, 0, 3)
        assert index.verify().ok

    def test_it_comes_back_after_other_changes(self, index, folder, monkeypatch):
        index.store.delete_nodes([chunks_of(index, "b.txt")[1].node_id])
        index.delete("a.txt")
        index.regrow()
        with monkeypatch.context() as patch:
            patch.setattr(Table, "_publish", Mock(side_effect=ZeroDivisionError))
            with pytest.raises(ZeroDivisionError):
                index.update()
        assert counts(index.update(folder / "deep")) == (0, 0, 0, 0, 2)
        assert counts(index.update()) == (0, 1, 0, 0, 1)
        assert counts(index.update(folder / "a.txt")) == (1, 0, 0, 0, 2)
        check_fresh(index, folder)

    def test_a_summary_that_the_store_deleted_is_written_with_no_file_read(self, index):
        before = as_plain(index)
        (summary, *_) = (n for n in index.store.get_nodes() if n.metadata["hierindex_level"])
        index.store.delete_nodes([summary.node_id])
        assert counts(index.update()) == (0, 0, 0, 0, 3)
        assert as_plain(index) == before

    def test_what_others_add_to_a_file_goes(self, index):
        before = as_plain(index)
        (first, *_) = chunks_of(index, "b.txt")
        added = TextNode(text="Of no file.", embedding=first.embedding)
        added.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="b.txt")
        index.store.add([added])
        assert len(as_plain(index)) == len(before) + 1
        assert counts(index.update()) == (0, 1, 0, 0, 2)
        assert as_plain(index) == before
        assert "Of no file." not in {
            n.get_content(MetadataMode.NONE) for n in index.store.get_nodes()
        }
