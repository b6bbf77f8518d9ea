"""What a command says about the next one, and what it keeps after Ctrl-C."""

import json
import re
import shlex
from pathlib import Path

import pytest

from hierindex import HierarchyStore, Node

BUILDING = "hierindex.jobs.job.Job.publish"
ASKING = "hierindex.index.HierarchicalIndex.ask"
INTERRUPTED = {
    "build docs --index my-index": BUILDING,
    "update more-docs --index my-index": BUILDING,
    "delete report.md --index my-index": BUILDING,
    "query 'Why was the bridge closed?' --index my-index": ASKING,
}


@pytest.mark.parametrize(("line", "place"), INTERRUPTED.items(), ids=INTERRUPTED)
def test_ctrl_c_says_what_is_kept_and_keeps_it(line, place, folder, run, monkeypatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    info = "info", "--index", "my-index", "--json"
    before = json.loads(run(*info)[1])
    with monkeypatch.context() as patch:
        patch.setattr(place, interrupted)
        status, out, err = run(*shlex.split(line))
    assert (status, out) == (130, "")
    command = line.split()[0]
    kept = f", and the next {command} reuses what was read, embedded and written"
    assert err == (
        "hierindex: Interrupted; nothing unfinished was published"
        f"{kept if command in ('build', 'update') else ''}.\n"
    )
    assert json.loads(run(*info)[1]) == before
    assert run(*shlex.split(line))[0] == 0


def test_a_first_build_names_the_command_that_asks(folder, run) -> None:
    (folder / "two words").mkdir()
    build = "build", "docs", "--index", "two words/index"
    status, _, err = run(*build)
    assert status == 0
    assert err == "hierindex: note: Ask it: hierindex query QUESTION --index 'two words/index'\n"
    assert run(*build)[2] == ""
    assert run("build", "docs", "--index", "other", "--json")[2] == ""


def test_a_build_reports_what_was_read_and_the_levels_and_no_more(folder, run) -> None:
    def lines_of(*options: str) -> list[str]:
        out = run("build", "docs", "notes.txt", "--index", "new", *options)[1]
        lines = re.sub(r"[\d.]+ s\b", "T", out).splitlines()
        blank = len(lines) - 1 - lines[::-1].index("")
        files.append([line.split() for line in lines[blank + 1 :]])
        return lines[:blank]

    files: list[list[list[str]]] = []
    first, head, *levels = lines_of()
    assert first == "Generation 1: 4 documents added, T."
    assert head.split() == ["level", "nodes", "tokens"]
    info = json.loads(run("info", "--index", "new", "--json")[1])["levels"]
    sizes = [[f"{size:,}" for size in level.values()] for level in info]
    assert [line.split() for line in levels] == sizes[::-1]
    again, _, head, *_, usage = lines_of()
    assert again == "Generation 2: 4 documents unchanged, T."
    assert re.fullmatch(r"cached summaries: \d+", usage)
    head, *rows, total = files[0]
    assert " ".join(total) == "4 of 4 files read."
    assert head == ["file", "kind", "pages", "words", "not", "read"]
    assert files == [files[0]] * 2
    names = sorted(path.name for path in [*Path("docs").iterdir(), Path("notes.txt")])
    assert sorted(row[0] for row in rows) == names
    notes = ["notes.txt", "txt", str(len(Path("notes.txt").read_text().split()))]
    assert notes in rows


def test_an_index_that_lost_nodes_names_the_update(folder, run) -> None:
    store = HierarchyStore("my-index")
    chunks = (n for n in store.get_nodes() if not Node.of(n).level)
    store.delete_nodes([next(chunks).node_id])
    assert "deletion; `hierindex update` mends it." in run("info", "--index", "my-index")[1]
    assert run("update", "--index", "my-index")[0] == 0
    assert "deletion" not in run("info", "--index", "my-index")[1]
