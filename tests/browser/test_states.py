"""Indexes that are empty, broken or gone: one sentence each, and never a blank page."""

import shutil
from pathlib import Path

import pytest
from browser.actions import apart, of_documents, until
from llama_index.core.schema import Document


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


def test_a_broken_index_says_so(look, serve, small):
    url = serve(small)
    shutil.rmtree(small.store.uri)
    assert sentence(look(url), "#empty")


def test_a_damaged_index_says_so(look, serve, small):
    url = serve(small)
    for file in Path(small.store.uri).rglob("*.lance"):
        if file.is_file():
            file.write_bytes(b"damaged")
    assert sentence(look(url), "#empty")


def test_a_server_that_is_gone_is_named(look, small):
    explorer = small.explore(0)
    page = look(explorer.url)
    page.wait_for_selector("#cited")
    explorer.close()
    page.fill("#asked", "Which text is short?")
    page.press("#asked", "Enter")
    assert "does not answer" in sentence(page, "#notice")
    assert page.locator("#tree .row").count() > 1


def test_a_node_that_is_gone_leaves_the_rest(look, serve, small):
    page = look(serve(small) + "#node=0123456789abcdef0123456789abcdef")
    assert sentence(page, "#summary .hint")
    page.locator("#tree .row").last.click()
    until(lambda: page.locator("#summary h2").count() == 1)
    assert page.locator("#notice").is_hidden()


def test_a_question_that_fails_leaves_the_last_answer(look, serve, small):
    page = look(serve(small))
    page.wait_for_selector("#cited")
    page.fill("#asked", "Which text is short?")
    page.press("#asked", "Enter")
    page.wait_for_selector("#answer:not([hidden]) h2")
    page.click("#options summary")
    page.fill("#option-token_budget", "1")
    page.keyboard.press("Escape")
    page.click("#ask")
    assert sentence(page, "#notice")
    assert page.locator("#answer h2").inner_text() == "Which text is short?"
    page.click("#options summary")
    page.get_by_text("Clear options").click()
    page.keyboard.press("Escape")
    page.click("#ask")
    until(page.locator("#notice").is_hidden)


def test_an_index_that_has_changed_is_noticed_on_return(look, serve, small):
    page = look(serve(small))
    page.wait_for_selector("#cited")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(300)
    assert page.locator("#notice").is_hidden()
    apart(lambda: small.delete("text 1"))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert "reload" in sentence(page, "#notice")
