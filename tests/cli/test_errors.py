"""Command lines that cannot be run: one sentence on standard error, and exit status 2."""

import json
import re
import shlex

import pytest
from cli.conftest import HEAVY, imported_by

ERRORS = {
    "tree --index W --depth -2": ("tree", "--depth", "0"),
    "export html --index W --to a": ("export", "FORMAT", "'html'", "'svg'"),
    "rollback x --index W": ("rollback", "N", "x"),
    "show --index W": ("show", "NODE"),
    "query ?": ("query", "--index"),
    "query ? --index": ("", "--index"),
    "build docs --index W --strict=3": ("", "--strict"),
    "query Why was it closed? --index W": ("query", "was it closed?"),
    "build docs --index W --metod raptor": ("build", "--metod", "--method"),
    "update --index W --method raptor": ("update", "--method"),
    "delete a --index W --seed 1": ("delete", "--seed"),
    "watch --index W --chunk-size 64": ("watch", "--chunk-size"),
    "--verson": ("", "--verson", "--version"),
    "biuld docs": ("", "biuld", "build"),
}
"""Lines that cannot be read, the command whose help is named, and what else is."""


NO_INDEX = "{0!r} holds no index; build one with `hierindex build SOURCE --index {0}`."
PATHS = {
    **{
        f"{command} --index none": NO_INDEX.format("none")
        for command in ("info", "generations", "rollback", "explore", "report --to a")
    },
    "query ? --index docs": NO_INDEX.format("docs"),
    "tree --index notes.txt": "An index must be a folder, but 'notes.txt' is a file; name a "
    "folder.",
    "build docs none --index new": "The source 'none' cannot be found or read.",
    "build 'The bridge was closed for a year due to ice.' --index new": "The source 'The bridge "
    "was closed for a year due to ice.' cannot be found or read; pass a text as "
    "llama_index.core.Document(text=...), or save it as a file.",
    "build empty --index new": "Nothing to index in 'empty': there is no file.",
}


@pytest.mark.parametrize(("line", "sentence"), PATHS.items(), ids=PATHS)
def test_a_wrong_path_is_told(run, folder, line, sentence) -> None:
    (folder / "empty" / ".hidden").mkdir(parents=True)
    assert run(*shlex.split(line)) == (2, "", f"hierindex: {sentence}\n")
    assert not (folder / "none").exists()


def test_nothing_heavy_is_loaded_for_a_wrong_path(folder) -> None:
    (folder / "empty").mkdir()
    assert not imported_by(*PATHS) & HEAVY


@pytest.mark.parametrize(
    ("n", "end"), [(3, "2.txt is empty."), (14, "9.txt is empty; and 4 more.")]
)
def test_files_that_cannot_be_used_are_named(run, folder, n, end) -> None:
    (folder / "files").mkdir()
    for i in range(n):
        (folder / "files" / f"{i:x}.txt").touch()
    status, out, err = run("build", "files", "--index", "new")
    assert (status, out) == (2, "")
    assert err.startswith(
        "hierindex: Nothing to index in 'files': 0.txt is empty; 1.txt is empty; "
    )
    assert err.endswith(f" {end}\n")


@pytest.mark.parametrize(("line", "named"), ERRORS.items(), ids=ERRORS)
def test_a_line_that_cannot_be_read_is_one_sentence(run, folder, line, named) -> None:
    (folder / "my-index").rename("W")
    status, out, err = run(*shlex.split(line))
    assert (status, out) == (2, "")
    command, *words = named
    end = f"see `{' '.join(['hierindex', *command.split()])} --help`."
    assert re.fullmatch(rf"hierindex: [^\n]+; {re.escape(end)}\n", err)
    assert all(word in err for word in words)


WHOLE = "valid integer, unable to parse string as an integer"
MODES = "'auto', 'collapsed', 'level', 'traversal' or 'document'"
LEVELS = "a whole number, top, documents, sections or chunks"
ADDRESS = "a URL such as http://localhost:8000/v1"
WRONG = [
    ("top_k", "0", "greater than or equal to 1", "0"),
    ("top_k", "x", WHOLE, "'x'"),
    ("top_k", "1.5", WHOLE, "'1.5'"),
    ("top_k", "", WHOLE, "nothing"),
    ("llm_timeout", "0", "greater than 0", "0"),
    ("llm_timeout", "", "valid number, unable to parse string as a number", "nothing"),
    ("mode", "foo", MODES, "'foo'"),
    ("mode", "", MODES, "nothing"),
    ("level", "foo", LEVELS, "'foo'"),
    ("level", "", LEVELS, "nothing"),
    ("llm", "", "at least 1 character", "nothing"),
    ("rerank", "", "at least 1 character", "nothing"),
    ("strict", "perhaps", "valid boolean, unable to interpret input", "'perhaps'"),
    ("llm_base_url", "localhost:8000", ADDRESS, "'localhost:8000'"),
    ("llm_base_url", "http://ada:secret@", ADDRESS, "nothing"),
]
"""Settings, values as text, what they must be, and how a value is shown."""


@pytest.mark.spread
@pytest.mark.parametrize("source", ["variable", "file", "flag"])
@pytest.mark.parametrize(("name", "value", "must", "got"), WRONG)
def test_a_wrong_value_says_where_it_stands(
    run, folder, monkeypatch, source, name, value, must, got
) -> None:
    flag, flags = f"--{name.replace('_', '-')}", list[str]()
    match source:
        case "flag":
            if name == "strict":
                pytest.skip("a flag that takes no value")
            flags, place = [flag, value], flag
        case "variable":
            place = f"HIERINDEX_{name.upper()}"
            monkeypatch.setenv(place, value)
        case "file":
            place = f"{name} in hierindex.toml"
            (folder / "hierindex.toml").write_text(f"{name} = {json.dumps(value)}\n")
    status, out, err = run("query", "?", "--index", "my-index", *flags)
    assert (status, out) == (2, "")
    assert "secret" not in err
    sentence = rf"hierindex: {re.escape(place)} is invalid: .*{re.escape(must)}, got (.+)"
    found = re.fullmatch(rf"{sentence}\.\n", err)
    assert found, err
    assert found[1].strip("'").removesuffix(".0") == got.strip("'")


def test_a_variable_that_sets_nothing_is_named(run, folder, monkeypatch) -> None:
    monkeypatch.setenv("HIERINDEX_TOPK", "1")
    status, out, err = run("query", "Why was the bridge closed?", "--index", "my-index")
    assert status == 0
    assert out
    assert err == (
        "hierindex: note: The variable HIERINDEX_TOPK is unknown; the nearest is HIERINDEX_TOP_K.\n"
    )
