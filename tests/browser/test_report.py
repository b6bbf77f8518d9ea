"""A report is the same page in one file, which opens without a server."""

import json
import re

import pytest
from browser.actions import (
    apart,
    browse,
    cited,
    flat,
    of_documents,
    read,
    row,
    until,
    violations,
)
from llama_index.core.schema import Document

from hierindex.export import to_html

QUESTION = "Why was the bridge at Harlow closed in 1963?"


@pytest.fixture(scope="module")
def file(library, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    apart(lambda: to_html(library, path, ask=[QUESTION, "Who wrote <b>Dune</b>?"]))
    return path.as_uri()


@pytest.fixture
def page(look, file):
    page = look(file, offline=True)
    page.click("#explore")
    browse(page)
    return page


def test_a_report_is_read_as_the_explorer_is(page, screenshots):
    row(page, "Bridges").click()
    until(lambda: read(page) == "Bridges")
    sentence = page.locator("#summary a.sentence").nth(1)
    sentence.click()
    until(lambda: cited(page) == flat(sentence.inner_text()))
    page.screenshot(path=screenshots / "report.png")
    page.go_back()
    until(lambda: "start=" not in page.url)
    page.click("#panes [data-pane=overview]")
    until(page.locator("#quotes").is_visible)
    page.locator("#blocks a", has_text="Gardens").first.click()
    until(lambda: read(page) == "Gardens")


def test_a_report_is_read_first(look, file, library, screenshots):
    page = look(file, offline=True)
    page.wait_for_selector("body.read")
    paper = page.locator("#paper")
    day = apart(library.store.generations)[-1]["time"][:10]
    assert paper.locator("h1").inner_text() == "library"
    assert f"· {day} · generation 1, written by hierindex" in paper.inner_text()
    heads = ["In its own words", QUESTION, "Who wrote <b>Dune</b>?", "Outline", "Sources"]
    assert paper.locator("h2").all_inner_texts() == heads
    assert page.locator("header").is_hidden()
    assert violations(page) == []
    page.screenshot(path=screenshots / "paper.png")
    note = paper.locator(f"h2:text('{QUESTION}') + p sup a")
    said = note.locator("xpath=../..").inner_text()
    note.click()
    until(lambda: cited(page) and cited(page) in said)
    page.click("#report")
    until(paper.is_visible)


def test_only_what_is_read_is_printed(look, file):
    page = look(file, offline=True)
    page.click("#explore")
    page.emulate_media(media="print")
    assert page.locator("#paper").is_visible()
    for rest in ("header", "main", "#explore"):
        assert page.locator(rest).is_hidden()


def test_a_report_finds_sentences(page):
    page.fill("#asked", "honey")
    found = page.locator("#found .row").first
    assert found.get_attribute("aria-selected") == "true"
    assert "honey" in found.locator(".excerpt").inner_text()
    page.press("#asked", "Enter")
    until(lambda: "honey" in cited(page))


def test_a_report_asks_nothing(page):
    for part in ("#ask", "[popovertarget=options]", "#questions", "#panes [data-pane=map]"):
        assert page.locator(part).is_hidden()
    assert violations(page) == []


def test_every_passage_is_the_servers(look, serve, library, page):
    """Both show the same passages and places."""
    other = look(serve(library))
    browse(other)
    for title in ("Bridges", "Gardens"):
        said = []
        for each in (page, other):
            row(each, title).click()
            until(lambda each=each, title=title: read(each) == title)
            last = each.locator("#summary a.sentence").last
            last.click()
            until(lambda each=each, last=last: flat(last.inner_text()) == cited(each))
            beside = each.locator("#source-bar > :is(h2, .place), #edge")
            text = flat(each.locator("#passage").inner_text())
            said.append((cited(each), beside.all_inner_texts(), text))
        assert said[0] == said[1]


def test_a_small_report_says_what_it_leaves_out(library, look, tmp_path):
    whole, small = tmp_path / "whole.html", tmp_path / "small.html"
    size = apart(lambda: to_html(library, whole)).bytes
    apart(lambda: to_html(library, small, max_bytes=size - 3000))
    page = look(small.as_uri())
    page.click("#explore")
    page.wait_for_selector("#blocks a")
    assert "texts of the lowest levels" in page.locator("#facts").inner_text()
    without = page.evaluate(
        "JSON.parse(document.querySelector('#data').textContent).nodes.find((n) => !n.text).id"
    )
    page.goto(f"{small.as_uri()}#node={without}")
    until(lambda: "leaves out the text" in page.locator("#summary").inner_text())


def test_a_passage_that_is_left_out_is_not_shown_as_blanks(look, tmp_path):
    texts = [f"The {name} paragraph is about {name}s." for name in ("heron", "otter", "newt")]
    index = of_documents(tmp_path / "index", Document(text="\n\n".join(texts), id_="pond"))
    path = tmp_path / "report.html"
    apart(lambda: to_html(index, path))
    path.write_text(re.sub('(?<=id="data">).*?(?=</script>)', without_otter, path.read_text()))
    page = look(path.as_uri())
    page.click("#explore")
    browse(page)
    sentences = page.locator("#summary a.sentence")
    for sentence in ("heron", "newt"):
        sentences.filter(has_text=sentence).click()
        until(lambda sentence=sentence: sentence in cited(page))
        assert "[…]" in page.locator("#passage").inner_text()
        assert "otter" not in page.locator("#passage").inner_text()
    sentences.filter(has_text="otter").click()
    until(lambda: "does not hold" in page.locator("#passage").inner_text())


def without_otter(data):
    """Return the data of a report without the text of the chunk about otters."""
    report = json.loads(data[0])
    for node in report["nodes"]:
        if not node["level"] and "otter" in node["text"]:
            node |= {"text": "", "quotes": []}
    return json.dumps(report).replace("<", "\\u003c")
