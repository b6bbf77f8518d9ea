"""An index that is updated whenever its files change, as the system reports them."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from shutil import rmtree
from threading import Event

import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import Document
from summarize.groups import RewriterOf
from watched import small_folder, text_of

from hierindex import BuildReport, DocumentHierarchy, HierarchicalIndex, HierarchyStore, Node
from hierindex.errors import InputError, LimitError, SourceError
from hierindex.jobs import watch
from hierindex.summarize import TwoStageSummarizer
from hierindex.threads import started

PATIENCE = 20  # seconds
QUIET = 1.0  # seconds in which nothing happens


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    """What the system does not report is looked at more often."""
    monkeypatch.setattr(watch, "TICK", 100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_folder(tmp_path / "texts")


def built(*sources: Path, uri: Path) -> HierarchicalIndex:
    hierarchy = DocumentHierarchy(HashingEmbedding(), summary_tokens=40)
    return HierarchicalIndex.build([*sources], uri, hierarchy=hierarchy, chunk_size=30)


@pytest.fixture
def index(folder, tmp_path) -> HierarchicalIndex:
    return built(folder, uri=tmp_path / "index")


def held(index: HierarchicalIndex) -> set[str]:
    return {node.ref_doc_id for node in index.store.get_nodes() if not Node.of(node).level}


class Watched:
    """An index that another thread watches; its reports and errors in order."""

    def __init__(self, index: HierarchicalIndex, *sources: Path, **options: object) -> None:
        self.events = Queue[BuildReport | Exception]()
        self._reports = index.watch([*sources] or None, failed=self.events.put, **options)
        self._is_left = Event()
        self._ended = started(self._run)

    def _run(self) -> None:
        for report in self._reports:
            if self._is_left.is_set():
                return
            self.events.put(report)

    def next(self) -> BuildReport | Exception:
        return self.events.get(timeout=PATIENCE)

    def names(self) -> dict[str, list]:
        """What the next update changes."""
        names = vars(self.next().names)
        return {outcome: ids for outcome, ids in names.items() if ids}

    def is_quiet(self) -> bool:
        try:
            return self.events.get(timeout=QUIET) is None
        except Empty:
            return True

    def leave(self, file: Path) -> None:
        """End the thread, by a change of a file."""
        self._is_left.set()
        file.write_text(text_of(f"the end of {file}"))
        self._ended.result(timeout=PATIENCE)


@pytest.fixture
def watched(index, folder) -> Iterator[Watched]:
    """Watches the index of the folder, after the first update."""
    watched = Watched(index)
    assert not vars(watched.next().names)["added"]
    yield watched
    watched.leave(folder / "end.txt")


def test_each_change_is_an_update(watched, index, folder):
    (folder / "a.txt").write_text(text_of("other"))
    assert watched.names() == {"changed": ["a.txt"]}
    (folder / "deep").mkdir()
    (folder / "deep" / "d.txt").write_text(text_of("d"))
    assert watched.names() == {"added": ["deep/d.txt"]}
    (folder / "b.txt").rename(folder / "deep" / "b.txt")
    assert watched.names() == {"renamed": [("b.txt", "deep/b.txt")]}
    (folder / "deep").rename(folder / "low")
    pairs = [("deep/b.txt", "low/b.txt"), ("deep/d.txt", "low/d.txt")]
    assert watched.names() == {"renamed": pairs}
    (folder / "c.md").unlink()
    assert watched.names() == {"removed": ["c.md"]}
    assert held(index) == {"a.txt", "low/b.txt", "low/d.txt"}
    assert watched.is_quiet()


def test_what_an_editor_puts_in_place_of_a_file_is_read(watched, folder):
    for n in range(2):
        (temporary := folder / ".a.txt.swp").write_text(text_of(f"draft {n}"))
        temporary.replace(folder / "a.txt")
        assert watched.names() == {"changed": ["a.txt"]}
    (folder / "b.txt").rename(folder / ".b.txt.old")
    (folder / "b.txt").write_text(text_of("another version"))
    assert watched.names() == {"changed": ["b.txt"]}


def test_changes_that_follow_one_another_are_one_update_or_two(watched, folder):
    for i in range(20):
        (folder / f"{i}.txt").write_text(text_of(f"number {i}"))
    reports = [watched.next()]
    if reports[0].added < 20:
        reports.append(watched.next())
    assert sum(report.added for report in reports) == 20
    assert watched.is_quiet()


def test_what_is_not_read_is_no_change(folder):
    """Nor what the index writes in a folder within the watched one."""
    index = built(folder, uri=folder / "index")
    watched = Watched(index)
    watched.next()
    (folder / "a.txt").write_text(text_of("other"))
    assert watched.names() == {"changed": ["a.txt"]}
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref")
    (folder / ".hidden.txt").write_text("hidden")
    (folder / "other.lance").mkdir()
    (folder / "other.lance" / "data.txt").write_text("data")
    os.mkfifo(folder / ".pipe")
    assert watched.is_quiet()
    (folder / "empty.txt").write_text("")
    assert [(s.path, s.reason) for s in watched.next().skipped] == [
        ("empty.txt", "is empty"),
    ]
    watched.leave(folder / "end.txt")


def test_a_single_file_is_watched_through_replacements_and_removals(folder, tmp_path):
    a, b = folder / "a.txt", folder / "b.txt"
    watched = Watched(built(a, b, uri=tmp_path / "index"))
    watched.next()
    (folder / "c.md").write_text("This is not watched.")
    for n in range(2):
        (folder / "temporary").write_text(text_of(f"draft {n}"))
        (folder / "temporary").replace(a)
        assert watched.names() == {"changed": ["a.txt"]}
    a.unlink()
    assert watched.names() == {"removed": ["a.txt"]}
    a.write_text(text_of("again"))
    assert watched.names() == {"added": ["a.txt"]}
    watched.leave(b)


def test_an_update_that_is_refused_is_tried_again_without_a_change(
    watched, index, folder, monkeypatch
):
    monkeypatch.setattr(watch, "AGAIN", 0.1)
    with HierarchyStore(index.store.uri).table.writing("build"):
        for n in range(2):  # each change is answered
            (folder / "a.txt").write_text(text_of(f"draft {n}"))
            assert "is being written by process" in str(watched.next())
        assert watched.is_quiet()  # as it fails alike
    assert watched.names() == {"changed": ["a.txt"]}


def test_a_source_may_go_and_come_back(watched, index, folder, tmp_path):
    folder.rename(tmp_path / "away")
    error = watched.next()
    assert isinstance(error, SourceError)
    assert "cannot be found" in str(error)
    (tmp_path / "away" / "a.txt").write_text(text_of("other"))
    (tmp_path / "away").rename(folder)
    assert watched.names() == {"changed": ["a.txt"]}
    rmtree(folder)
    folder.mkdir()
    assert isinstance(watched.next(), InputError)  # most documents would be lost
    for name in ("a.txt", "b.txt", "new.txt"):
        (folder / name).write_text(text_of(name))
    report = watched.next()
    while not isinstance(report, BuildReport):  # there was one file yet
        report = watched.next()
    assert held(index) >= {"a.txt", "b.txt"}


def test_named_sources_are_watched_alone(index, folder, tmp_path):
    (other := tmp_path / "other").mkdir()
    (other / "o.txt").write_text(text_of("o"))
    (folder / "deep").mkdir()
    (folder / "deep" / "d.txt").write_text(text_of("d"))
    watched = Watched(index, folder / "deep", other)
    assert watched.names() == {"added": ["deep/d.txt", "o.txt"]}
    (folder / "a.txt").write_text(text_of("other"))
    assert watched.is_quiet()
    (other / "o.txt").write_text(text_of("more"))
    assert watched.names() == {"changed": ["o.txt"]}
    watched.leave(folder / "deep" / "d.txt")


def test_without_a_handler_an_error_is_raised(index, folder):
    reports = index.watch()
    assert not any(vars(next(reports).names).values())
    (folder / "a.txt").write_text(text_of("other"))
    writing = HierarchyStore(index.store.uri).table.writing("build")
    with writing, pytest.raises(InputError, match="is being written"):
        next(reports)


def test_a_budget_that_is_used_up_is_not_spent_again_without_a_change(folder, monkeypatch):
    monkeypatch.setattr(watch, "AGAIN", 0.0)
    calls, errors = [], []

    def update():
        calls.append(None)
        raise LimitError("The budget is spent.")

    ticks = [True, False, False, True, False]
    monkeypatch.setattr(watch, "changes", lambda _: ticks)
    assert [*watch.reports(update, [], errors.append)] == []
    assert len(calls) == len(errors) == ticks.count(True)


def test_what_cannot_be_watched_is_refused_at_once(index, folder, tmp_path, monkeypatch):
    with pytest.raises(SourceError, match="'nowhere' cannot be found"):
        index.watch("nowhere")
    given = DocumentHierarchy(HashingEmbedding())
    documents = [Document(id_="d", text=text_of("d"))]
    of_none = HierarchicalIndex.build(documents, tmp_path / "other", hierarchy=given)
    with pytest.raises(SourceError, match="has no files to watch; name the sources"):
        of_none.watch()
    mine = TwoStageSummarizer(RewriterOf(str))
    rewritten = DocumentHierarchy(HashingEmbedding(), summarizer=mine)
    HierarchicalIndex.build(folder, tmp_path / "other", hierarchy=rewritten, replace=True)
    with pytest.raises(InputError, match="pass"):
        of_none.watch()


def test_a_system_that_cannot_watch_is_named(index):
    next(index.watch())  # which imports what is needed
    reports, (soft, hard) = index.watch(), resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(free := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        with pytest.raises(InputError, match=r"\(os error 24\); set WATCHFILES_FORCE_POLLING=1 to"):
            next(reports)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
