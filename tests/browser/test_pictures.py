"""The pictures that README and the guide on the explorer show: the demo's index."""

import pytest
from browser.actions import apart, ask
from PIL import Image

from hierindex import HierarchicalIndex
from hierindex.demo import demo_documents
from hierindex.export import to_html

QUESTION = "How does t-SNE work?"
SIZE = {"width": 1280, "height": 720}
MOST = 150_000  # bytes


@pytest.fixture(scope="module")
def demo(tmp_path_factory, embed_model):
    uri = tmp_path_factory.mktemp("demo") / "scikit-learn"
    return apart(lambda: HierarchicalIndex.build(demo_documents(), uri))


@pytest.fixture
def take(pictures):
    """Leave a picture of a page, of 256 colours so that it is small."""

    def taken(page, name):
        file = pictures / f"{name}.png"
        page.mouse.move(0, 0)
        page.wait_for_timeout(300)
        page.screenshot(path=file)
        with Image.open(file) as picture:
            picture.convert("RGB").quantize(256).save(file, optimize=True)
        assert file.stat().st_size < MOST

    return taken


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_of_the_explorer(look, serve, demo, take, scheme):
    page = look(serve(demo), viewport=SIZE, color_scheme=scheme)
    page.wait_for_selector("#blocks a")
    if scheme == "dark":
        ask(page, QUESTION)
        page.locator(".cited").first.wait_for()
        return take(page, "answer-dark")
    take(page, "overview")
    ask(page, QUESTION)
    page.locator(".cited").first.wait_for()
    take(page, "answer")
    page.click("#source-bar button:has-text('Read')")
    page.wait_for_selector("#passage .notes")
    take(page, "reading")
    page.click("#panes [data-pane=overview]")
    page.click("#panes [data-pane=map]")
    page.wait_for_selector("#map-marks .name:not([hidden])")
    take(page, "map")
    return None


def test_of_a_report(look, demo, take, tmp_path):
    apart(lambda: to_html(demo, tmp_path / "report.html", ask=[QUESTION]))
    page = look((tmp_path / "report.html").as_uri(), viewport=SIZE)
    page.wait_for_selector("body.read")
    take(page, "report")
