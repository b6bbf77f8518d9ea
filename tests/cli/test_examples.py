"""The examples of every command, run as they are written."""

import io
import json
import shlex
from pathlib import Path

import pytest
from cli.conftest import minutes
from llama_index.core.schema import Document
from loopback import LoopbackServer
from processes import started
from typer.main import get_command

from hierindex.cli.app import app
from hierindex.cli.examples import EXAMPLES, PROGRAM

URL = "http://localhost:8000/v1"
AGENT = ["mcp", "--index", "my-index"]  # sets signals, and reads standard input to its end


def commands_of(examples: dict[str, str]) -> list[list[str]]:
    lines = "\n".join(examples.values()).replace("\\\n", "").strip().split("\n")
    return [shlex.split(line) for line in lines if line]


def test_every_command_has_two_or_three_examples_with_a_sentence_each() -> None:
    assert {*EXAMPLES} >= get_command(app).commands.keys()
    for name, examples in EXAMPLES.items():
        assert 1 <= len(examples) <= 3
        assert 2 <= len(commands_of(examples)) <= 4
        for sentence in examples:
            assert sentence[0].isupper()
            assert not sentence.endswith(".")
        assert name in [words[1] for words in commands_of(examples)]


def test_the_index_of_an_example_is_that_of_the_path_at_the_top() -> None:
    assert [words[1] for words in commands_of(PROGRAM)] == ["build", "info", "query"]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (command, sentence)
        for command in ["", *get_command(app).commands]
        for sentence in EXAMPLES.get(command, PROGRAM)
    ],
)
def test_examples_run(command, sentence, folder, run, stopped, monkeypatch) -> None:
    node = json.loads(run("info", "--index", "my-index", "--json")[1])["roots"][0]
    texts = (minutes(topic) for topic in ("trees", "graphs", "kernels", "means"))
    documents = [Document(id_=f"sklearn.{i}", text=text * 3) for i, text in enumerate(texts)]
    monkeypatch.setattr("hierindex.demo.demo_documents", lambda: documents)
    monkeypatch.setattr("sys.stdin", io.StringIO("Why was the bridge closed?\n"))
    lines = EXAMPLES.get(command, PROGRAM)[sentence]
    with LoopbackServer() as server:
        for program, *words in commands_of({sentence: lines}):
            assert program == "hierindex"
            words = [{"NODE": node[:12], URL: server.base_url}.get(word, word) for word in words]
            status, out, err = apart(words, folder) if words == AGENT else run(*words)
            assert status == 0, (words, err)
            assert out or err or words == AGENT


def apart(words: list[str], folder: Path) -> tuple[int | None, str, str]:
    """Run a command line in a process of its own, whose standard input is empty."""
    process = started(words, folder)
    process.join(60)
    return process.exitcode, (folder / "out").read_text(), (folder / "err").read_text()
