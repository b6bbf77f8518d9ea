"""A real Chromium that looks at real explorers; these tests are kept out of `make test`."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from browser.actions import apart, browse
from indexes import built

from hierindex import HierarchicalIndex
from hierindex.serve import explore

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
REFUSALS = """
    window.refusals = [];
    addEventListener("securitypolicyviolation", (e) => window.refusals.push(e.violatedDirective));
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what stands in this folder as slow, so that `make test` leaves it out."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def chromium():
    """A browser, or a skip that says what is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="run `make test-browser`")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed; on Debian: apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def look(chromium):
    """Open an address in a page whose errors and policy violations fail the test."""
    contexts, pages, errors = [], [], []

    def opened(url: str, **options: Any) -> Any:
        options = {"viewport": {"width": 1400, "height": 900}} | options
        context = chromium.new_context(**options)
        context.set_default_timeout(10_000)
        context.add_init_script(REFUSALS)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if is_bad(message) else None)
        page.on("dialog", lambda dialog: errors.append(dialog.message))
        page.goto(url)
        contexts.append(context)
        pages.append(page)
        return page

    yield opened
    refusals = [page.evaluate("window.refusals") for page in pages if not page.is_closed()]
    for context in contexts:
        context.close()
    assert not errors
    assert not any(refusals)


def is_bad(message: Any) -> bool:
    """Whether the console says more than that a reply was an error, which the page says, too."""
    return message.type in ("error", "warning") and "Failed to load resource" not in message.text


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """Folder to leave pictures in: SCREENSHOTS, or one of pytest's."""
    folder = Path(os.environ.get("SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    print(f"\nScreenshots are in {folder}.")  # noqa: T201


@pytest.fixture(scope="session")
def screenshots(pictures):
    """Its folder for what the tests see, beside the pictures that are published."""
    folder = pictures / "tests"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def serve(request):
    """Start explorers, which end with the test."""

    def started(index: HierarchicalIndex, llm: Any = None) -> str:
        explorer = explore(index, 0, llm=llm)
        request.addfinalizer(explorer.close)
        return explorer.url

    return started


@pytest.fixture
def page(look, serve, library):
    """The explorer of the library, with its outline."""
    page = look(serve(library))
    browse(page)
    return page


BRIDGES = {
    "Stone bridges": "arches carry the weight of stone to the banks. Mortar fills the joints. "
    "Roman masons built them without drawings that have survived.",
    "Steel bridges": "steel carries loads in tension and in compression. Rust is the enemy of "
    "every steel bridge. Painters return every seven years.",
    "Closures": "The bridge at Harlow was closed in 1963 because its piers had sunk by 40 "
    "centimetres. Traffic went by the ferry for two years.",
    "Tolls": "Tolls paid for most bridges of the region. The last toll was lifted in 1971 after "
    "a vote of the council.",
}
GARDENS = {
    "Soil": "Good soil holds water and lets roots breathe. Compost feeds the soil for years. "
    "Clay must be dug before the frost.",
    "Roses": "Roses are pruned in late winter. Old roses flower once, and modern roses until "
    "November. Black spot is a fungus of wet summers.",
    "Bees": "Bees visit the garden from March. A hive of bees needs forty kilograms of honey for "
    "the winter.",
}


def pages_of(subject: str, sections: dict[str, str]) -> str:
    """Return a Markdown document with three paragraphs in each section."""
    paragraphs = "\n\n".join(
        f"## {title}\n\n{text}\n\nOf {title.lower()} the {subject} report says more. {text}"
        for title, text in sections.items()
    )
    return f"# {subject.capitalize()}\n\nThis report is about {subject}.\n\n{paragraphs}\n"


@pytest.fixture(scope="session")
def library(tmp_path_factory, embed_model):
    """An index of two reports with sections, with the bundled model."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "bridges.md").write_text(pages_of("bridges", BRIDGES))
    (folder / "gardens.md").write_text(pages_of("gardens", GARDENS))
    uri = tmp_path_factory.mktemp("index") / "library"
    return apart(lambda: built(folder, uri, model=embed_model, chunk_size=40))
