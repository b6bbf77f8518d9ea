"""Help pages and versions, as people read them, and how a process ends."""

import re
import subprocess
import sys

import pytest
from cli.conftest import HEAVY, imported_by
from commands import COMMANDS

from hierindex import __version__


@pytest.mark.parametrize("command", COMMANDS)
def test_every_page_fits_80_columns_and_has_all_options(run, monkeypatch, command) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = run(command, "--help")
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    paragraphs = out.partition("╭")[0].split("\n" + " " * 80 + "\n")
    lines = [line.rstrip() for each in paragraphs for line in each.strip().split("\n")[:-1]]
    assert all(len(line) > 50 for line in lines)  # none is broken before the margin
    for each in COMMANDS[command].params:
        written = each.opts[0] if each.param_type_name == "option" else each.metavar
        assert re.search(rf"(?m)^│ [ *]*{re.escape(written)}", out), written
        assert each.help, written


def test_the_page_of_query_fits_two_screens(run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(run("query", "--help")[1].splitlines()) <= 80


def test_without_a_command_the_page_is_an_error(run) -> None:
    status, out, err = run()
    assert (status, err) == (2, "")
    assert out.split() == run("--help")[1].split()
    assert all(f"│ {name} " in out for name in COMMANDS)


def test_version(run) -> None:
    status, out, err = run("--version")
    assert (status, err) == (0, "")
    assert out == f"hierindex {__version__}\n"


def test_pages_and_versions_do_not_wait_for_imports() -> None:
    assert not imported_by("--version", "query --help") & (HEAVY - {"rich"})


def test_what_asks_no_language_model_imports_no_llama_index(folder) -> None:
    asking = (
        f"{command} --index my-index" for command in ("query 'Why?'", "info", "outline", "tree")
    )
    assert not imported_by(*asking, "query 'Who?' --index my-index --level top") & {
        "llama_index.core",
        "torch",
        "transformers",
        "httpx",
        "starlette",
    }


def test_the_package_is_run_as_the_command() -> None:
    command = [sys.executable, "-m", "hierindex", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("hierindex ")


@pytest.mark.spread
@pytest.mark.parametrize("closed", ["1", "2"])
@pytest.mark.parametrize(("line", "status"), [("--version", 0), ("info", 2)])
def test_a_closed_stream_changes_no_status(line, status, closed) -> None:
    command = f'"{sys.executable}" -m hierindex {line} {closed}>&-'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
