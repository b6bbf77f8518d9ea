"""Commands that name a model that cannot be loaded: here, as torch looks for it.

The tests of the command line run without torch, which takes seconds to import.
"""

import re
import shlex

import pytest

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\u2067[bold]"


@pytest.fixture
def hierindex(run, tmp_path, monkeypatch):
    """Runs a command line beside letters and an index of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/storm.txt").write_text("The storm broke the lamp. The keeper slept.")
    assert run("build", "letters", "--index", "index")[0] == 0
    return run


@pytest.mark.parametrize(
    "command",
    [
        "build letters --index W --embed-model no/model",
        "build letters --index W --summarizer no/model",
        "query ? --index index --rerank no/model",
    ],
)
def test_it_is_named(hierindex, tmp_path, command):
    status, out, err = hierindex(*shlex.split(command))
    assert (status, out) == (2, "")
    assert re.fullmatch(r"hierindex: [^\n]+\.\n", err)
    assert "'no/model'" in err
    assert not (tmp_path / "W").exists()


def test_no_name_acts_on_a_terminal(hierindex, terminal):
    terminal(1000)
    status, out, err = hierindex("build", "letters", "--index", "W", "--summarizer", f"none{EVIL}")
    assert (status, out) == (2, "")
    assert re.search(r"(^|\x1b\[2K)hierindex: [ -~]+\[bold\][ -~]+\n$", err)  # after an erased line
