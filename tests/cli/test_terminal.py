"""What is printed on a terminal of 80 columns, and where there is none."""

import json
import os
import re
import shlex
from select import select

import pytest
from cli.conftest import LONG
from processes import started
from typer.main import get_command

from hierindex.cli.app import app

LINES = {
    "build": "build docs notes.txt --index new",
    "update": "update more-docs --index my-index --dry-run",
    "delete": f"delete {LONG} --index my-index",
    "query": "query 'What was said about the lighthouse?' --index my-index --min-score 0",
    "compare": "compare 'What was said about the lighthouse?' --index my-index --top-k 3",
    "info": "info --index my-index",
    "tree": "tree --index my-index --depth 4",
    "show": "show NODE --index my-index --source",
    "outline": "outline --index my-index",
    "report": f"report --index my-index --out {LONG}.html",
    "export": f"export svg --index my-index --to {LONG}.svg",
    "verify": "verify --index my-index",
    "generations": "generations --index my-index",
    "rollback": "rollback --index my-index",
    "evaluate": "evaluate questions --ways dense,text,hybrid,level-1",
}
NOT_TABLES = {"watch", "explore", "serve", "mcp", "chat", "demo"}


def line_of(command: str, run) -> list[str]:
    words = shlex.split(LINES[command])
    if "NODE" in words:
        info = json.loads(run("info", "--index", "my-index", "--json")[1])
        words[words.index("NODE")] = info["roots"][0]
    return words


def test_every_command_is_measured() -> None:
    assert LINES.keys() | NOT_TABLES >= get_command(app).commands.keys()


@pytest.mark.parametrize("command", LINES)
def test_lines_fit_80_columns_unless_they_are_one_word(command, folder, run, terminal) -> None:
    line = line_of(command, run)
    terminal()
    status, out, err = run(*line)
    assert status == 0, err
    lines = re.sub(r"\x1b\[\d*m", "", out).splitlines()
    assert lines
    assert not [line for line in lines if len(line) > 80 and len(line.split()) > 1]


@pytest.mark.parametrize("command", LINES)
def test_elsewhere_nothing_is_cut_drawn_or_in_colour(command, folder, run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    status, out, err = run(*line_of(command, run))
    assert status == 0, err
    assert not re.search("[\x1b\u2500-\u257f…]", out + err)
    if command in ("query", "tree", "show"):
        assert LONG in out


@pytest.mark.parametrize("is_terminal", [True, False])
def test_delete_takes_what_the_tree_prints(folder, run, terminal, is_terminal) -> None:
    if is_terminal:
        terminal()
    out = run("tree", "--index", "my-index", "--depth", "4")[1]
    assert LONG in out
    assert run("delete", LONG, "--index", "my-index", "--dry-run")[0] == 0


@pytest.mark.spread
@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(folder, run, terminal, monkeypatch, variables) -> None:
    line = line_of("query", run)
    terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" in run(*line)[1]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    status, out, err = run(*line)
    assert status == 0
    assert "\x1b" not in out + err


def left_on_screen(written: str) -> list[str]:
    """The lines that a terminal shows in the end; its cursor moves up, and lines are erased."""
    lines, row = [""], 0
    for piece in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\n|[^\x1b\n]+", written):
        if up := re.fullmatch(r"\x1b\[(\d+)A", piece):
            row -= int(up[1])
        elif piece == "\x1b[2K":
            lines[row] = ""
        elif piece == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif not piece.startswith("\x1b"):
            kept, *instead = piece.split("\r")  # all that follows writes the line from its start
            lines[row] = instead[-1] or lines[row] + kept if instead else lines[row] + kept
    return lines


@pytest.mark.skipif(os.name != "posix", reason="has no pseudo-terminals")
@pytest.mark.parametrize(
    ("command", "first", "last"),
    [
        ("update more-docs", "Generation 3: 1 document added", r"0 +6 +\d+"),
        (f"delete {LONG}", "Generation 3: 1 document removed", r"named\sas\sSOURCE\."),
    ],
)
def test_a_result_stays_on_the_terminal_without_the_progress(command, first, last, folder) -> None:
    import pty
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    line = [*command.split(), "--index", "my-index"]
    child, written = started(line, folder, os.ttyname(theirs)), b""
    while (ready := select([ours], [], [], 0.05)[0]) or child.is_alive():
        if ready:
            written += os.read(ours, 65536)
    for descriptor in (ours, theirs):
        os.close(descriptor)
    assert "Loading the index" in written.decode()
    shown = "\n".join(left_on_screen(written.decode().replace("\r\n", "\n"))).strip()
    assert shown.startswith(first)
    assert re.search(f"{last}$", shown)
