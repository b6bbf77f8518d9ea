"""The pages that people read: what they tell to do is done, and their links lead somewhere."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from commands import COMMANDS, PROGRAM
from docs.markdown_pages import (
    NOTEBOOKS,
    PAGES,
    ROOT,
    anchors,
    blocks,
    command_lines,
    commands,
    links,
    name_of,
)
from loopback import LoopbackServer
from tiny_models import save_tiny_bart, save_tiny_sentence_transformer

from hierindex import HierarchicalIndex
from hierindex.store.connection import Connection

URL, PORT = "http://localhost:8000/v1", "8734"  # of a language model, and of `hierindex serve`
READ = [*PAGES, *sorted(NOTEBOOKS.glob("*.ipynb"))]
FOLLOWED = [
    page
    for page in PAGES
    if "benchmarks" not in page.parts and blocks(page, "python", "console")  # these take hours
]
SHELL = {"cp", "echo", "mv"}
NOT_RUN = {
    "hf": "downloads a model",
    "make": "is what runs this test, among others",
    "pip": "installs",
    "ray": "starts a cluster, as tests/scale does",
    "uv": "installs",
}
TINY = {
    "BAAI/bge-small-en-v1.5": "embed",
    "./bge-small": "embed",
    "./my-model": "embed",
    "facebook/bart-large-cnn": "bart",
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": "embed",
}
"""Models of pages, and the tiny ones that are used in their places."""
ANSWERING = ["covariance", "neighbors"]
"""Modules of the demo that the answer in README quotes."""
VARYING = {
    r"\b\d+\.\d+ s\b": "1.0 s",
    r"\b[0-9a-f]{12}\b": "0123456789ab",
    r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b": "2026-11-24 04:00",
    r"\b127\.0\.0\.1:\d+": f"127.0.0.1:{PORT}",
    r"\b(bfloat16|float32)\b": "bfloat16",
    r"(?<!\S)'?/[\w/.-]+/(?=\w)": "/home/ada/",
}
"""What is not the same each time, and how it is compared."""


class Follower:
    """Does what a page tells its reader to do."""

    def __init__(self, run, meanwhile, patch, server, models) -> None:
        self.names = {"__name__": "page"}
        self.run, self.meanwhile, self.patch = run, meanwhile, patch
        self.server, self.models = server, models

    def python(self, block: str) -> None:
        exec(compile(block.replace(URL, self.server.base_url), "page", "exec"), self.names)

    def console(self, block: str) -> None:
        lines = [*commands(block)]
        asked = [line for line, _ in lines if line.startswith("curl ")]
        self.meanwhile[:] = [lambda told: [ask(asked.pop(0), told) for _ in [*asked]]]
        for line, shown in lines:
            words = shlex.split(line, comments=True)
            if words[0] == "export":
                for name, value in (word.split("=", 1) for word in words[1:]):
                    self.patch.setenv(name, value.replace(URL, self.server.base_url))
            elif words[0] == "hierindex" and "ray" not in words:
                self.command(words[1:], shown)
            elif words[0] in SHELL:
                subprocess.run(line, shell=True, check=True)
            else:
                assert words[0] in {"curl", "hierindex", *NOT_RUN}
        assert not asked

    def command(self, words: list[str], shown: str) -> None:
        """Run a command, which fails only if it is shown to, and compare what it prints."""
        stands_for = {name: str(self.models / tiny) for name, tiny in TINY.items()}
        stands_for |= {URL: self.server.base_url, PORT: "0"}
        if "NODE" in words:
            stands_for["NODE"] = HierarchicalIndex.open("my-index").info()["roots"][0]
        if words[0] == "evaluate":
            words = [*words, "--limit", "2"]  # questions
        status, out, err = self.run(*(stands_for.get(word, word) for word in words))
        fails = shown.startswith("hierindex: ") and "Ctrl-C" not in shown
        assert (status, bool(out or err)) == (2 if fails else 0, True), (words, out, err)
        printed = iter(compared(out + err))
        assert all(line in printed for line in compared(shown)), (words, out, err)


def ask(line: str, told: str) -> None:
    """Ask a server where it has told that it answers, with its token."""
    port, token = re.findall(r":(\d+)/", told)[-1], re.search(r"Bearer ([\w-]+)", told)
    line = re.sub(r"http://[\w.]+:\d+", f"http://127.0.0.1:{port}", line)
    line = line.replace("TOKEN", token[1] if token else "")
    answer = subprocess.run(f"{line} -sSf", shell=True, check=True, capture_output=True).stdout
    assert json.loads(answer.split(b"\ndata: ")[-1])  # or the last event


def compared(text: str) -> list[str]:
    for varying, fixed in VARYING.items():
        text = re.sub(varying, fixed, text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_tiny_sentence_transformer(folder / "embed", window=256)
    save_tiny_bart(folder / "bart", window=2048, brevity=2)  # each text fits; it writes some words
    return folder


@pytest.fixture
def follow(town, run, stopped, monkeypatch, models, no_hub):
    """Does all that a page says, in a folder with documents and an index of them."""

    def followed(page: Path) -> None:
        with LoopbackServer() as server:
            reader = Follower(run, stopped, monkeypatch, server, models)
            for language, block in blocks(page, "python", "console"):
                getattr(reader, language)(block)

    return followed


@pytest.mark.parametrize("page", FOLLOWED, ids=name_of)
def test_a_page_can_be_followed(page, follow, monkeypatch) -> None:
    monkeypatch.setattr("sklearn.__all__", ANSWERING)
    follow(page)


@pytest.mark.slow
def test_the_answer_in_the_readme_is_that_of_the_whole_demo(follow) -> None:
    follow(ROOT / "README.md")


@pytest.mark.parametrize("page", [page for page in PAGES if any(command_lines(page))], ids=name_of)
def test_commands_and_their_options_exist(page, monkeypatch) -> None:
    monkeypatch.setattr(Connection, "require", lambda connection: None)  # there is no index
    targets = re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text())
    for program, *words in command_lines(page):
        if program == "hierindex":
            command = COMMANDS.get(words[0], PROGRAM)
            assert command.make_context(words[0], words[1:]), words
        elif program == "make":
            assert words[0] in targets, words
        elif program == "python":
            assert any((ROOT / word).is_file() for word in words), words


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "json")], ids=name_of)
def test_json_is_json(page) -> None:
    assert all(json.loads(block) for _, block in blocks(page, "json"))


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_links_lead_to_files_and_headings(page) -> None:
    for link in links(page):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link
