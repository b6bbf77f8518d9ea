"""Sources that move, files that come and go, and chunks that others delete or add."""

import os
from pathlib import Path
from shutil import copytree

import pytest
from clients import llm_of
from faulty_writes import failing_writes
from llama_index.core.schema import (
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

from hierindex import DocumentHierarchy, HierarchicalIndex
from hierindex.errors import InputError, SourceError
from hierindex.node import MODIFIED
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
    def test_it_is_read_where_it_is_named(self, index, moved, tmp_path, caplog):
        with pytest.raises(SourceError, match="name the path to which it was moved"):
            index.update()
        index.embed_model.batches.clear()
        with caplog.at_level("INFO", "hierindex"):
            assert counts(index.update(moved)) == (0, 0, 0, 0, 3)
        assert f"notes has moved to {moved}." in caplog.text
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
        with LoopbackServer(reply=quotes_sentences) as server:
            llm = llm_of(server, model="tiny")
            index = built(folder, tmp_path / "index", shortening(llm))
            n_asked = len(server.requests)
            moved = folder.rename(tmp_path / "moved")
            assert counts(index.update(moved, llm=llm)) == (0, 0, 0, 0, 3)
            assert len(server.requests) == n_asked > 0
        assert index.update().unchanged == 3
        assert index.verify().ok

    def test_another_source_may_take_its_place(self, index, folder, moved):
        index.update(moved)
        folder.mkdir()
        (folder / "z.txt").write_text(text_of("z"))
        assert counts(index.update(folder)) == (1, 0, 0, 0, 3)
        again = moved.rename(moved.parent / "again")
        assert counts(index.update([folder, again])) == (0, 0, 0, 0, 4)
        assert index.store.snapshot().report()["sources"] == [str(again), str(folder)]

    def test_what_changed_meanwhile_is_found(self, index, moved):
        (moved / "a.txt").write_text(text_of("other"))
        (moved / "d.txt").write_text(text_of("d"))
        assert counts(index.update(moved)) == (1, 1, 0, 0, 2)
        (moved / "b.txt").unlink()
        again = moved.rename(moved.parent / "again")
        assert counts(index.update(again)) == (0, 0, 1, 0, 3)
        check_fresh(index, again)

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
        both = [folder.rename(tmp_path / "p"), more.rename(tmp_path / "q")]
        assert counts(index.update(both[::-1])) == (0, 0, 0, 0, 4)
        assert index.store.snapshot().report()["sources"] == list(map(str, both))
        assert as_plain(index) == as_plain(fresh(both, tmp_path))

    def test_a_file_among_others_may_move(self, folder, tmp_path):
        index = built([folder / "a.txt", folder / "b.txt"], tmp_path / "index")
        (folder / "a.txt").rename(folder / "deep" / "a.txt")
        assert counts(index.update(folder / "deep" / "a.txt")) == (0, 0, 0, 0, 2)
        assert counts(index.update()) == (0, 0, 0, 0, 2)
        assert documents_of(index) == ["a.txt", "b.txt"]

    def test_a_copy_of_a_source_that_exists_is_refused(self, index, folder, tmp_path):
        copy = copytree(folder, tmp_path / "copy")
        with pytest.raises(SourceError, match=r"another document 'a\.txt', from .*notes;"):
            index.update(copy)
        assert counts(index.update()) == (0, 0, 0, 0, 3)

    def test_other_content_under_the_same_names_is_refused(self, index, moved, tmp_path):
        (other := tmp_path / "other" / "deep").mkdir(parents=True)
        for name in NAMES:
            (other.parent / name).write_text(text_of(f"other {name}"))
        before = as_plain(index)
        with pytest.raises(SourceError, match=r"another document 'a\.txt', from .*notes;"):
            index.update(other.parent)
        assert as_plain(index) == before
        assert counts(index.update(moved)) == (0, 0, 0, 0, 3)


class TestPathsThatAreGone:
    def test_a_path_that_does_not_exist_is_refused(self, index, folder, tmp_path):
        (folder / "a.txt").unlink()
        for path in (folder / "a.txt", tmp_path / "never", "\ud800", "a\0b"):
            with pytest.raises(SourceError, match="cannot be found or read"):
                index.update([folder, path])

    def test_a_file_that_was_renamed_is_asked_for(self, folder, tmp_path):
        index = built(folder / "a.txt", tmp_path / "index")
        (folder / "a.txt").rename(folder / "z.txt")
        with pytest.raises(SourceError, match="Nothing to index in"):
            index.update()
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
            llm = llm_of(server, model="tiny")
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

    def test_it_comes_back_after_other_changes(self, index, folder):
        index.store.delete_nodes([chunks_of(index, "b.txt")[1].node_id])
        index.delete("a.txt")
        index.regrow()
        with failing_writes(ZeroDivisionError(), 0), pytest.raises(ZeroDivisionError):
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
