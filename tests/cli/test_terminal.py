"""What is printed on a terminal of 80 columns, and where there is none."""

import json
import re
import shlex

import pytest
from cli.conftest import LONG
from commands import COMMANDS

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
    "report": f"report --index my-index --to {LONG}.html",
    "export": f"export svg --index my-index --to {LONG}.svg",
    "verify": "verify --index my-index",
    "generations": "generations --index my-index",
    "rollback": "rollback --index my-index",
    "evaluate": "evaluate questions --ways dense,level-1",
}
NOT_TABLES = {"watch", "explore", "serve", "mcp", "chat", "demo"}


def line_of(command: str, run) -> list[str]:
    words = shlex.split(LINES[command])
    if "NODE" in words:
        info = json.loads(run("info", "--index", "my-index", "--json")[1])
        words[words.index("NODE")] = info["roots"][0]
    return words


def test_every_command_is_measured() -> None:
    assert LINES.keys() | NOT_TABLES >= COMMANDS.keys()


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
    assert not re.search("[\x1b\u2500-\u257f]|(?<! )…", out + err)  # but after words of a title
    if command in ("query", "tree", "show"):
        assert LONG in out


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
