"""Command lines that cannot be run: one sentence on standard error, and exit status 2."""

import re
import shlex

import pytest

ERRORS = {
    "query ? --index W --top-k x": "--top-k is invalid: input should be a valid integer, got 'x'; "
    "see `hierindex query --help`.",
    "query ? --index W --mmr=x": "--mmr is invalid: input should be a valid number, got 'x'; see "
    "`hierindex query --help`.",
    "rollback x --index W": "N is invalid: input should be a valid integer, got 'x'; see "
    "`hierindex rollback --help`.",
    "show --index W": "NODE is missing; the usage is `hierindex show NODE --index DIR [OPTIONS]`.",
    "query ?": "--index DIR is missing; the usage is `hierindex query QUESTION --index DIR "
    "[OPTIONS]`.",
    "delete": "DOCUMENT... is missing; the usage is `hierindex delete DOCUMENT... --index DIR "
    "[OPTIONS]`.",
    "query ? --index": "--index needs a value; see `hierindex query --help`.",
    "build docs --index W --strict=3": "--strict takes no value; see `hierindex build --help`.",
    "query Why was it closed? --index W": "Too many arguments: 'was it closed?'; put quotes around "
    "a text of several words; see `hierindex query --help`.",
    "build docs --index W --metod raptor": "There is no option --metod; the nearest is --method; "
    "see `hierindex build --help`.",
    "info -i W": "There is no option -i; see `hierindex info --help`.",
    "--verson": "There is no option --verson; the nearest is --version; see `hierindex --help`.",
    "biuld docs": "There is no command 'biuld'; the nearest is build; `hierindex --help` lists all "
    "commands.",
    "xyz": "There is no command 'xyz'; `hierindex --help` lists all commands.",
}


@pytest.mark.parametrize(("line", "sentence"), ERRORS.items(), ids=ERRORS)
def test_a_line_that_cannot_be_read_is_one_sentence(run, folder, line, sentence) -> None:
    assert run(*shlex.split(line)) == (2, "", f"hierindex: {sentence}\n")


@pytest.mark.parametrize("source", ["variable", "file"])
def test_a_wrong_setting_says_where_it_stands(run, folder, monkeypatch, source) -> None:
    if source == "file":
        (folder / "hierindex.toml").write_text("top_k = 'x'\n")
    else:
        monkeypatch.setenv("HIERINDEX_TOP_K", "x")
    status, out, err = run("query", "?", "--index", "my-index")
    name = {"variable": "HIERINDEX_TOP_K", "file": "top_k in hierindex.toml"}[source]
    assert (status, out) == (2, "")
    assert re.fullmatch(rf"hierindex: {name} is invalid: [^\n]+, got 'x'\.\n", err)


def test_a_variable_that_sets_nothing_is_named(run, folder, monkeypatch) -> None:
    monkeypatch.setenv("HIERINDEX_TOPK", "1")
    status, out, err = run("query", "Why was the bridge closed?", "--index", "my-index")
    assert status == 0
    assert out
    assert err == (
        "hierindex: note: The variable HIERINDEX_TOPK sets nothing; the nearest is "
        "HIERINDEX_TOP_K.\n"
    )
