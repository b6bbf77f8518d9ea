"""The built site: its links lead somewhere, nothing is fetched, and it shows what there is."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from commands import COMMANDS
from docs.built_site import built_site
from docs.markdown_pages import NOTEBOOKS
from docs.test_reference import DOCUMENTED
from lxml import html

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    return built_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def pages(site):
    """Its pages by path, without templates of the theme."""
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    return {path: html.parse(path).getroot() for path in paths}


def addresses(page, *of: str):
    """What the elements of a page lead to or load."""
    return [str(value) for path in of for value in page.xpath(path)]


def test_every_relative_link_leads_to_a_file_and_a_place_in_it(pages) -> None:
    places = {path: {*page.xpath("//@id"), *page.xpath("//@name")} for path, page in pages.items()}
    for path, page in pages.items():
        for address in addresses(page, "//@href", "//@src"):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), (path, address)
            if parts.fragment and target in places:
                assert unquote(parts.fragment) in places[target], (path, address)


def test_a_browser_fetches_nothing_from_elsewhere(site, pages) -> None:
    loaded = ["//*[not(self::a)]/@src", "//link[not(@rel='canonical')]/@href", "//form/@action"]
    for path, page in pages.items():
        assert not [each for each in addresses(page, *loaded) if "//" in each], path
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text()), path


def test_the_reference_has_every_name_once(pages) -> None:
    shown = [str(each) for page in pages.values() for each in page.xpath("//dt/@id")]
    assert len(shown) == len({*shown})
    assert {*DOCUMENTED} <= {*shown}


def test_every_command_and_recipe_has_a_section(site, pages) -> None:
    commands = {*pages[site / "reference" / "commands.html"].xpath("//section/@id")}
    assert commands >= COMMANDS.keys()
    recipes = {*pages[site / "recipes.html"].xpath("//section/@id")}
    scripts = (NOTEBOOKS.parent / "pipelines").glob("*.py")
    assert recipes >= {path.stem.replace("_", "-") for path in scripts}


def test_every_notebook_is_in_the_list_of_notebooks(site, pages) -> None:
    linked = addresses(pages[site / "examples.html"], "//article//a/@href")
    for path in NOTEBOOKS.glob("*.ipynb"):
        assert f"{path.stem}.html" in linked
