"""html-validate and the W3C's validator (vnu) read every page that hierindex writes or serves."""

import json
from pathlib import Path

import httpx
import pytest

from hierindex.export import to_html, to_svg
from hierindex.serve import explore, serve
from hierindex.serve.explorer import PAGE

RULES = {
    "root": True,
    "extends": ["html-validate:recommended"],
    # The list of what is found has rows of several parts, which no option of a select can hold.
    "rules": {"prefer-native-element": ["error", {"exclude": ["listbox"]}]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module", params=["report", "explorer", "serve"])
def page(request, built, folder) -> Path:
    """A file of a page, as people get it."""
    file = folder / f"{request.param}.html"
    if request.param == "report":
        to_html(built, file)
        return file
    with (explore if request.param == "explorer" else serve)(built, 0) as server:
        answer = httpx.get(server.url, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].partition(";")[0] == "text/html"
    file.write_bytes(answer.content)
    return file


def test_html_validate_finds_nothing(program, page, folder) -> None:
    (folder / "rules.json").write_text(json.dumps(RULES))
    done = program("html-validate", "--config", folder / "rules.json", "--formatter", "text", page)
    assert done.returncode == 0, done.stdout + done.stderr


def test_vnu_finds_nothing(program, page) -> None:
    vnu(program, page)


def test_vnu_finds_nothing_in_styles(program) -> None:
    vnu(program, "--css", *PAGE.glob("*.css"))


def test_vnu_finds_nothing_in_a_drawing(program, built, folder) -> None:
    to_svg(built, folder / "tree.svg")
    vnu(program, "--svg", folder / "tree.svg")


def vnu(program, *args: object) -> None:
    """Have files checked; a warning is a finding, too.

    It does not compare the digests of a content security policy, as a browser does.
    """
    done = program("vnu", "--Werror", "--filterpattern", ".*Content Security Policy.*", *args)
    assert done.returncode == 0, done.stderr
