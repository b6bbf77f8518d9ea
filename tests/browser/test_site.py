"""The site of `make docs`, read from a folder without a server."""

import pytest
from browser.actions import violations
from docs.built_site import built_site

SIZES = {1280: 900, 400: 800}
PAGES = "index guides/how_it_works guides/asking quickstart reference/retriever search".split()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return built_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def site(folder):
    """Its address."""
    return folder.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_pages_have_room_and_no_violations(look, site, screenshots, name, width, scheme) -> None:
    size = {"width": width, "height": SIZES[width]}
    page = look(f"{site}/{name}.html", viewport=size, color_scheme=scheme)
    page.screenshot(path=screenshots / f"site-{name.replace('/', '-')}-{width}-{scheme}.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, preload=False) == []  # else axe fetches the styles, from files


def test_no_page_has_violations_or_is_wider_than_a_narrow_screen(look, folder) -> None:
    paths = [path for path in folder.rglob("*.html") if "_static" not in path.parts]
    page = look(folder.joinpath("index.html").as_uri(), viewport={"width": 400, "height": 800})
    for path in paths:
        page.goto(path.as_uri())
        assert violations(page, preload=False) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, path


@pytest.mark.parametrize("width", SIZES)
def test_search_leads_to_a_section_without_a_server(look, site, width) -> None:
    page = look(f"{site}/index.html", viewport={"width": width, "height": SIZES[width]})
    page.keyboard.press("Control+k")
    page.locator("dialog input[type=search]").fill("rollback")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li mark")
    assert violations(page, preload=False) == []
    page.locator("#search-results li a").first.click()
    page.wait_for_selector("article")
    assert page.url == f"{site}/reference/commands.html#rollback"


def test_a_search_for_what_no_page_has_says_so(look, site) -> None:
    page = look(f"{site}/search.html?q=xylophone")
    page.wait_for_selector("text=No page has these words.")


def test_a_narrow_page_opens_its_menu(look, site, screenshots) -> None:
    page = look(f"{site}/index.html", viewport={"width": 400, "height": 800})
    page.click("button.primary-toggle")
    page.get_by_role("link", name="Reference").locator("visible=true").first.click()
    page.wait_for_selector("h1")
    assert page.url.endswith("reference/index.html")
