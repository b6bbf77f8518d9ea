"""Help pages, versions and completion, as people read them."""

import os
import re
import subprocess
import sys

import pytest
from cli.conftest import HEAVY, imported_by
from typer.main import get_command

from hierindex import __version__
from hierindex.cli.app import LIBRARIES, app
from hierindex.cli.flags import GROUPS
from hierindex.settings import Settings

COMMANDS = get_command(app).commands


@pytest.mark.parametrize("command", ["", *COMMANDS])
@pytest.mark.parametrize("term", ["", "dumb"])
def test_a_page_is_plain_text_of_80_columns(run, monkeypatch, terminal, command, term) -> None:
    monkeypatch.setenv("TERM", term)
    terminal()
    status, out, err = run(*command.split(), "--help")
    assert (status, err) == (0, "")
    assert not re.search(r"[^\n -~]", out)
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith(f"Usage: {' '.join(['hierindex', *command.split()])} ")
    assert "\n\nExamples:\n" in out
    terminal(200)
    assert run(*command.split(), "--help")[1] == out


def test_every_option_says_what_its_value_is(run) -> None:
    for name, command in COMMANDS.items():
        page = run(name, "--help")[1]
        for each in command.params:
            written = each.opts[0] if each.param_type_name == "option" else each.metavar
            assert re.search(rf"(?m)^  {re.escape(written)}", page), (name, written)
            assert each.help, (name, written)
        needed = [p for p in command.params if p.required and p.param_type_name == "option"]
        first = page.splitlines()[0]
        assert all(option.opts[0] in first for option in needed)


def test_flags_are_in_groups() -> None:
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len({*names})
    assert {*names} == Settings.model_fields.keys()


@pytest.mark.parametrize("command", ["build", "query"])
def test_options_of_a_command_come_before_those_of_models(run, command) -> None:
    titles = re.findall(r"(?m)^(\w[\w ]+):$", run(command, "--help")[1])
    assert titles[:2] == ["Arguments", "Options"]
    assert titles[-2:] == ["Language model", "Examples"]


def test_without_a_command_the_page_is_an_error(run) -> None:
    status, out, err = run()
    assert (status, out) == (2, "")
    assert err == run("--help")[1]


def test_versions(run) -> None:
    status, out, err = run("--version")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == f"hierindex {__version__}"
    assert [line.split()[0] for line in out.splitlines()] == ["hierindex", "Python", *LIBRARIES]


@pytest.mark.parametrize("line", ["--version", "--help", "query --help"])
def test_pages_and_versions_do_not_wait_for_imports(line) -> None:
    status, imported = imported_by(line)
    assert status == 0
    assert not imported & (HEAVY | {"pydantic"})


@pytest.mark.parametrize(("line", "status"), [("--version", 0), ("info", 2)])
def test_a_process_ends_with_its_command_though_a_thread_works_on(line, status) -> None:
    code = "import sys, threading, time; threading.Thread(target=time.sleep, args=[600]).start()"
    code += f"; sys.argv = ['hierindex', '{line}']; from hierindex.cli.app import run; run()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == status
    assert "hierindex" in done.stdout + done.stderr


@pytest.mark.parametrize("closed", ["1", "2"])
@pytest.mark.parametrize(("line", "status"), [("--version", 0), ("info", 2)])
def test_a_closed_stream_changes_no_status(line, status, closed) -> None:
    command = f'"{sys.executable}" -m hierindex.cli.app {line} {closed}>&-'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


LINES = {
    "hierindex ro": ["rollback"],
    "hierindex build docs --method ": ["semantic", "raptor", "document"],
    "hierindex query x --by h": ["hybrid"],
    "hierindex query x --level ": ["top", "documents", "sections", "chunks"],
    "hierindex export p": ["parquet"],
    "hierindex info --in": ["--index"],
    "hierindex info --index ": [],  # bash then offers files
}
COMPLETE = """
eval "$(hierindex --show-completion bash)"
while IFS= read -r line; do
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _hierindex_completion hierindex
    echo "${COMPREPLY[*]}"
done
complete -p hierindex
"""


def test_bash_completes_commands_options_and_values(tmp_path) -> None:
    program = tmp_path / "hierindex"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hierindex.cli.app "$@"\n')
    program.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": ":".join(sys.path)}
    offered = subprocess.run(
        ["bash", "-c", COMPLETE],
        input="".join(f"{line}\n" for line in LINES),
        # typer looks which shell it runs in, and finds none that it knows in a test
        env={**os.environ, **path, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    *words, how = offered.stdout.splitlines()
    assert dict(zip(LINES, map(str.split, words), strict=True)) == LINES
    assert how == "complete -o default -F _hierindex_completion hierindex"
