"""The pages that people read: their code runs, their commands exist, their links lead somewhere."""

import json

import pytest
from cli.conftest import write_documents
from docs.markdown_pages import NOTEBOOKS, PAGES, anchors, blocks, command_lines, links, name_of
from loopback import LoopbackServer
from typer.main import get_command

from hierindex.cli.app import app
from hierindex.store.connection import Connection

URL = "http://localhost:8000/v1"
COMMANDS = get_command(app)
READ = [*PAGES, *sorted(NOTEBOOKS.glob("*.ipynb"))]


def having(language: str):
    """The pages with code of a language, as the parameters of a test."""
    pages = [page for page in PAGES if blocks(page, language)]
    return pytest.mark.parametrize("page", pages, ids=name_of)


@having("python")
def test_code_runs(page, tmp_path, monkeypatch) -> None:
    """From the first block to the last, in a folder with documents."""
    write_documents(tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    with LoopbackServer() as server:
        for block in blocks(page, "python"):
            exec(compile(block.replace(URL, server.base_url), page, "exec"), names)


@pytest.mark.parametrize("page", [page for page in PAGES if any(command_lines(page))], ids=name_of)
def test_commands_and_their_options_exist(page, monkeypatch) -> None:
    monkeypatch.setattr(Connection, "require", lambda connection: None)  # there is no index
    for name, *words in command_lines(page):
        command = COMMANDS.commands.get(name, COMMANDS)
        assert command.make_context(name, words), (name, words)


@having("json")
def test_json_is_json(page) -> None:
    assert all(map(json.loads, blocks(page, "json")))


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_links_lead_to_files_and_headings(page) -> None:
    for link in links(page):
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link
