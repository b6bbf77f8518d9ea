"""All that the mouse does, by keyboard alone."""

import pytest
from browser.actions import archive, browse, cited, flat, read, selected, until


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def tab_to(page, selector, most=40):
    for _ in range(most):
        if page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached by Tab")


def focus(page):
    """The name of the focused element."""
    return page.evaluate("(e => e.ariaLabel ?? e.textContent.trim())(document.activeElement)")


def titles(page):
    return page.locator("#tree .row .title").all_text_contents()


def test_the_outline_is_a_tree_of_one_stop(page):
    tab_to(page, "#tree .row")
    assert page.locator("#tree [tabindex='0']").count() == 1
    rows = titles(page)
    press(page, "ArrowDown")
    until(lambda: selected(page) == rows[1])
    press(page, "ArrowRight")
    until(lambda: len(titles(page)) > len(rows))
    below = titles(page)[2]
    press(page, "ArrowRight")
    until(lambda: selected(page) == below)
    press(page, "ArrowLeft")
    until(lambda: selected(page) == rows[1])
    press(page, "ArrowLeft")
    until(lambda: titles(page) == rows)
    press(page, "End")
    until(lambda: selected(page) == rows[-1])
    press(page, "Home")
    until(lambda: selected(page) == rows[0] and read(page) == rows[0])
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"


def test_more_rows_are_loaded_and_the_first_is_selected(look, serve, tmp_path):
    page = look(serve(archive(tmp_path / "many", 450)))
    browse(page)
    tab_to(page, "#tree .row")
    for _ in range(2):
        n = page.locator("#tree .row").count()
        press(page, "End", "Enter")
        until(lambda n=n: page.locator("#tree .row").count() > n)
    until(lambda: "Report 200 " in cited(page))
    press(page, "ArrowUp")
    until(lambda: "Report 199 " in cited(page))
    press(page, "Home", "ArrowLeft")
    until(lambda: page.locator("#tree .row").count() == 1)


def test_a_run_of_moves_is_one_entry_of_the_history(page):
    tab_to(page, "#tree .row")
    first = page.url
    press(page, "ArrowDown", "ArrowDown")
    until(lambda: read(page) == selected(page) == titles(page)[2])
    page.go_back()
    until(lambda: page.url == first and selected(page) == titles(page)[0])


def test_a_sentence_is_followed_to_its_passage(page):
    tab_to(page, "#tree .row")
    press(page, "ArrowDown", "Enter")
    until(lambda: page.evaluate("document.activeElement.matches('#summary a.sentence')"))
    press(page, "Tab")
    said = flat(page.evaluate("document.activeElement.textContent"))
    press(page, "Enter")
    until(lambda: cited(page) == said)


@pytest.mark.parametrize("key", ["/", "Control+k"])
def test_what_is_found_is_opened_at_its_sentence(page, key):
    tab_to(page, "#tree .row")
    press(page, key)
    assert page.evaluate("document.activeElement.id") == "asked"
    page.keyboard.type("honey")
    page.wait_for_selector("#found .row")
    box = page.locator("#asked")
    assert box.get_attribute("aria-expanded") == "true"
    press(page, "ArrowUp", "ArrowDown")
    found = page.locator("#found [aria-selected=true]")
    assert box.get_attribute("aria-activedescendant") == found.get_attribute("id")
    said = found.locator(".excerpt").inner_text()
    press(page, "Enter")
    until(lambda: cited(page) == said)
    assert page.locator("#finding").is_hidden()
    assert page.evaluate("document.activeElement.matches('#summary, #summary *')")


def test_the_box_is_left_and_asks_what_is_written(page):
    press(page, "Control+k")
    page.keyboard.type("honey")
    page.wait_for_selector("#found .row")
    press(page, "Escape")
    assert page.locator("#finding").is_hidden()
    assert page.evaluate("document.activeElement.id") == "asked"
    press(page, "Enter")
    page.locator("#answer h2", has_text="honey").wait_for()
    assert page.locator("#finding").is_hidden()
    press(page, "Escape", "?")
    assert page.locator("#keys").is_visible()


def test_ask_at_a_level_and_follow_the_citation(page):
    tab_to(page, "#asked")
    page.keyboard.type("Why was the bridge at Harlow closed in 1963?")
    tab_to(page, "[popovertarget=options]")
    press(page, "Enter")
    tab_to(page, "#option-level")
    page.keyboard.type("level 1")
    press(page, "Escape")
    assert page.evaluate("document.activeElement.matches('[popovertarget=options]')")
    press(page, "Tab", "Enter")
    page.wait_for_selector("#answer a.sentence")
    tab_to(page, "#answer a.sentence")
    press(page, "Enter")
    until(lambda: "start=" in page.url and "Harlow" in cited(page))


def test_a_block_is_opened(look, serve, library):
    page = look(serve(library))
    page.wait_for_selector("#blocks a")
    tab_to(page, "#blocks a")
    title = page.evaluate("document.activeElement.querySelector('b').textContent")
    press(page, "Enter")
    until(lambda: read(page) == title)


def test_a_document_is_read_alone_and_left(page):
    tab_to(page, "#tree .row")
    press(page, "ArrowDown")
    until(lambda: read(page) == titles(page)[1])
    tab_to(page, "#source-bar > button")
    press(page, "Enter")
    page.wait_for_selector("#passage .notes")
    assert focus(page) == "Close"
    page.focus("#summaries")
    press(page, "ArrowLeft")
    until(lambda: page.locator("#source-bar output").inner_text() == "the text only")
    tab_to(page, "#passage p a.sentence")
    press(page, "Enter")
    page.wait_for_selector("#passage .uses")
    press(page, "Escape")
    until(page.locator("#summary").is_visible)
