"""Indexes that are empty, broken or gone: one sentence each, and never a blank page."""

import shutil
from pathlib import Path

import pytest
from browser.actions import Paragraphs, apart, browse, of_documents, until
from llama_index.core.schema import Document

from hierindex.serve import explore


@pytest.fixture
def small(tmp_path):
    documents = [Document(text=f"Text {i} is short.", id_=f"text {i}") for i in range(3)]
    return of_documents(tmp_path / "small", *documents)


def sentence(page, selector):
    block = page.locator(selector)
    until(lambda: block.is_visible() and block.inner_text().endswith("."))
    return block.inner_text()


def test_an_empty_index_says_so(look, serve, small):
    for i in range(3):
        apart(lambda i=i: small.store.delete(f"text {i}"))
    page = look(serve(small))
    assert sentence(page, "#empty").startswith("This index holds no documents yet")


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_broken_index_says_so(look, serve, small, is_gone):
    url = serve(small)
    if is_gone:
        shutil.rmtree(small.store.uri)
    else:
        for file in Path(small.store.uri).rglob("*.lance/data/*"):
            file.write_bytes(b"damaged")
    assert sentence(look(url), "#empty")


def test_a_server_that_is_gone_is_named(look, small):
    explorer = explore(small, 0)
    page = look(explorer.url)
    browse(page)
    explorer.close()
    page.fill("#asked", "Which text is short?")
    page.press("#asked", "Enter")
    assert "does not answer" in sentence(page, "#notice")
    assert page.locator("#tree .row").count() > 1


def test_a_node_that_is_gone_leaves_the_rest(look, serve, small):
    page = look(serve(small) + "#node=0123456789abcdef0123456789abcdef")
    assert sentence(page, "#summary .hint")
    page.click("#panes [data-pane=outline]")
    page.locator("#tree .row").last.click()
    until(lambda: page.locator("#summary h2").count() == 1)
    assert page.locator("#notice").is_hidden()


def test_a_question_that_fails_leaves_the_last_answer(look, serve, small):
    page = look(serve(small))
    browse(page)
    page.fill("#asked", "Which text is short?")
    page.press("#asked", "Enter")
    page.wait_for_selector("#answer h2")
    page.click("[popovertarget=options]")
    page.fill("#option-where", "no filter")
    page.keyboard.press("Escape")
    page.click("#ask")
    assert sentence(page, "#notice")
    assert page.locator("#answer h2").inner_text() == "Which text is short?"
    page.click("[popovertarget=options]")
    page.fill("#option-where", "")
    page.keyboard.press("Escape")
    page.click("#ask")
    until(page.locator("#notice").is_hidden)


@pytest.mark.parametrize("is_rollback", [False, True])
def test_a_page_stays_with_its_generation_until_it_is_reloaded(look, serve, tmp_path, is_rollback):
    reports = [f"Report {i} of the archive has {i} pages." for i in range(150)]
    texts = {"archive": "\n\n".join(reports), "inbox": "A letter came.", "other": "Nothing else."}
    documents = [Document(text=text, id_=name) for name, text in texts.items()]
    index = of_documents(tmp_path / "index", *documents)
    if is_rollback:
        news = Document(text="Late news.", id_="news")
        apart(lambda: index.insert(news, splitter=Paragraphs(include_metadata=False)))
    page = look(serve(index))
    browse(page)
    rows, changed = page.locator("#tree .row"), page.locator("#changed")
    n = rows.count()
    rows.nth(1).locator(".twist").click()  # the archive
    until(lambda: rows.count() == n + 101)
    apart(index.store.rollback if is_rollback else lambda: index.delete("other"))
    assert changed.is_hidden()

    def is_said_when(act):
        act()
        page.wait_for_selector("#changed:not([hidden])")
        changed.evaluate("(notice) => notice.hidden = true")  # so that the next act shows it again

    is_said_when(page.locator("#tree .more").click)
    is_said_when(page.locator("#tree [aria-expanded=false] .twist").first.click)
    assert rows.count() == n + 101
    is_said_when(lambda: page.fill("#asked", "letter"))
    page.press("#asked", "Escape")
    is_said_when(lambda: page.locator("#tree .row").nth(90).click())
    assert "has changed" in sentence(page, "#summary .hint")
    page.fill("#asked", "How many pages has report 149 of the archive?")
    is_said_when(lambda: page.press("#asked", "Enter"))
    page.wait_for_selector("#changed", state="attached")
    rows.first.click()  # whose text the page has
    until(lambda: page.locator("#summary h2").is_visible())
    is_said_when(page.locator("#tree .more").click)
    page.reload()
    until(lambda: rows.count() == n - 1)
    assert changed.is_hidden()
