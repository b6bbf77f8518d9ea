"""The command that updates an index whenever its files change, in a process of its own."""

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clients import llm_of
from loopback import NO_QUOTA, LoopbackServer, names_words
from processes import PATIENCE, started, until
from watched import small_folder, text_of

from hierindex import DocumentHierarchy, HierarchicalIndex, HierarchyStore

STOPPED = "hierindex: Stopped; the index is as the last update left it.\n"
AT = r"\d\d:\d\d:\d\d  Generation "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_folder(tmp_path / "texts")


@pytest.fixture
def index(folder, tmp_path) -> Path:
    HierarchicalIndex.build(folder, tmp_path / "index")
    return tmp_path / "index"


class Watch:
    """`hierindex watch` in a process, and what it prints."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._at = folder
        self._n_read = {"out": 0, "err": 0}
        self.process = started(["watch", "--index", "index", *arguments], folder)

    def line(self, of: str = "out") -> str:
        """The next line, without its end."""
        n = self._n_read[of]
        until(lambda: self._text(of).count("\n") > n or not self.process.is_alive())
        self._n_read[of] += 1
        return self._text(of).split("\n")[n]

    def stop(self, number: int) -> tuple[int | None, str, str]:
        """Send a signal; give the exit status, and what was printed since the last line read."""
        os.kill(self.process.pid, number)
        self.process.join(PATIENCE)
        rest = (self._text(of).split("\n", n)[n] for of, n in self._n_read.items())
        return self.process.exitcode, *rest

    def _text(self, of: str) -> str:
        path = self._at / of
        return path.read_text() if path.exists() else ""


@pytest.fixture
def watch(tmp_path) -> Iterator[Callable[..., Watch]]:
    """Starts to watch, and kills what still runs at the end."""
    made = []

    def start(*arguments: str) -> Watch:
        made.append(Watch(tmp_path, *arguments))
        return made[-1]

    yield start
    for watch in made:
        watch.process.kill()
        watch.process.join()


def test_each_update_is_a_line_until_the_command_is_stopped(index, folder, watch) -> None:
    watched = watch()
    assert watched.line("err") == f"hierindex: Watching {folder}; Ctrl-C stops."
    assert re.fullmatch(AT + r"1, \d\.\d s\. Nothing has changed\.", watched.line())
    (folder / "a.txt").write_text(text_of("other"))
    assert re.fullmatch(AT + r"2, \d\.\d s\. Changed: a\.txt", watched.line())
    (folder / "b.txt").rename(folder / "d.txt")
    (folder / "data.txt").write_bytes(b"a\0b")
    (folder / "c.md").touch()
    assert re.fullmatch(AT + r"3, .* s\. Renamed: b\.txt to d\.txt", watched.line())
    assert watched.line() == "Skipped data.txt: is not text."
    (folder / "d.txt").touch()  # the update finds nothing
    time.sleep(1)
    for i in range(12):
        (folder / f"{i:02}.md").write_text(text_of(f"{i}"))
    (folder / "c.md").unlink()
    added = ", ".join(f"{i:02}.md" for i in range(10))
    assert watched.line().endswith(f" s. Added: {added} and 2 more; Removed: c.md")
    assert watched.stop(signal.SIGINT) == (0, "", STOPPED)
    assert HierarchyStore(index).snapshot().generation == 4
    with HierarchyStore(index).table.writing("test"):
        pass


def test_each_update_is_an_object(index, folder, watch) -> None:
    (folder / "empty.txt").write_text("")
    watched = watch("texts", "--json", "--purge")
    first = json.loads(watched.line())
    assert (first["unchanged"], [s["path"] for s in first["skipped"]]) == (3, ["empty.txt"])
    (folder / "a.txt").write_text(text_of("other"))
    second = json.loads(watched.line())
    assert second["generation"] == first["generation"] + 1
    assert (second["names"]["changed"], second["skipped"]) == (["a.txt"], [])
    assert len(HierarchyStore(index).generations()) == 1  # as the others were purged
    assert watched.stop(signal.SIGINT)[0] == 0


@pytest.fixture
def rewritten(folder, tmp_path) -> Iterator[LoopbackServer]:
    """The server whose language model has written the summaries of the index."""
    with LoopbackServer(reply=names_words) as server:
        hierarchy = DocumentHierarchy(summarizer=llm_of(server, model="tiny"))
        HierarchicalIndex.build(folder, tmp_path / "index", hierarchy=hierarchy)
        yield server


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_it_can_be_stopped_in_the_middle_of_an_update(
    rewritten, folder, tmp_path, watch, number
) -> None:
    watched = watch("--llm", "remembered")
    watched.line("err")
    watched.line()
    n_before, rewritten.latency = len(rewritten.requests), 30.0
    (folder / "a.txt").write_text(text_of("other"))
    until(lambda: len(rewritten.requests) > n_before)
    since = time.monotonic()
    assert watched.stop(number) == (0, "", STOPPED)
    assert time.monotonic() - since < rewritten.latency
    index = HierarchicalIndex.open(tmp_path / "index")
    assert index.store.snapshot().generation == 1
    rewritten.latency = 0.0
    report = index.update(llm=llm_of(rewritten, model="tiny"))
    assert (report.generation, report.changed) == (2, 1)
    assert index.verify().ok


def test_a_language_model_that_fails_is_named_and_asked_again(rewritten, folder, watch) -> None:
    watched = watch("--llm", "remembered")
    watched.line()
    watched.line("err")
    rewritten.faults = lambda number: NO_QUOTA
    (folder / "a.txt").write_text(text_of("other"))
    assert re.fullmatch(r"hierindex: LLM 'tiny' .*\. Still watching\.", watched.line("err"))
    rewritten.faults = lambda number: None
    (folder / "b.txt").write_text(text_of("another"))
    assert " s. Changed: a.txt, b.txt" in watched.line()
    assert "llm calls: " in watched.line()
    assert watched.stop(signal.SIGTERM) == (0, "", STOPPED)


def test_a_model_that_is_missing_ends_the_command_at_once(rewritten, watch) -> None:
    watched = watch()
    assert "pass it as llm= (on the command line --llm remembered)" in watched.line("err")
    watched.process.join(PATIENCE)
    assert watched.process.exitcode == 2
