"""How the page looks: pictures, contrast, and room on narrow screens."""

import pytest
from browser.actions import until, violations

WIDE = {"width": 1400, "height": 900}
NARROW = {"width": 400, "height": 800}
PANES = "outline reading source overview map".split()


def opened(look, url, **options):
    page = look(url, **options)
    page.wait_for_selector("#blocks a")
    page.fill("#asked", "Why was the bridge at Harlow closed in 1963?")
    page.press("#asked", "Enter")
    page.wait_for_selector("#answer a[aria-current]", state="attached")
    page.wait_for_timeout(400)
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_wide(look, serve, library, screenshots, scheme):
    page = opened(look, serve(library), viewport=WIDE, color_scheme=scheme)
    page.screenshot(path=screenshots / f"wide-{scheme}-answer.png")
    assert violations(page) == []
    for menu in ("options", "keys"):
        page.click(f"[popovertarget={menu}]")
        page.screenshot(path=screenshots / f"wide-{scheme}-{menu}.png")
        assert violations(page) == []
        page.keyboard.press("Escape")
    for words, said in (("bees", "found"), ("zzzzqq", "No title")):
        page.fill("#asked", words)
        page.locator("#find-count", has_text=said).wait_for()
        page.press("#asked", "ArrowDown")
        page.screenshot(path=screenshots / f"wide-{scheme}-{words}.png")
        assert violations(page) == []
    page.click("#panes [data-pane=outline]")
    page.click("#panes [data-pane=map]")
    page.wait_for_selector("#map-marks .name")
    page.wait_for_timeout(300)
    page.screenshot(path=screenshots / f"wide-{scheme}-map.png")
    assert violations(page) == []
    page.click("#panes [data-pane=overview]")
    page.wait_for_timeout(300)
    page.screenshot(path=screenshots / f"wide-{scheme}-overview.png")
    assert violations(page) == []
    page.locator("#blocks a").first.click()
    page.wait_for_timeout(300)
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow(look, serve, library, screenshots, scheme):
    page = opened(look, serve(library), viewport=NARROW, color_scheme=scheme)
    for pane in PANES:
        page.click(f"#panes [data-pane={pane}]")
        page.wait_for_timeout(300)
        page.screenshot(path=screenshots / f"narrow-{scheme}-{pane}.png")
        assert page.locator(f"#{pane}").is_visible()
        assert sum(page.locator(f"#{other}").is_visible() for other in PANES) == 1
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        assert violations(page) == []
    for menu in ("options", "keys"):
        page.click(f"[popovertarget={menu}]")
        box = page.locator(f"#{menu}").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400
        page.screenshot(path=screenshots / f"narrow-{scheme}-{menu}.png")
        page.keyboard.press("Escape")


def test_on_narrow_screens_a_row_opens_its_text_and_a_sentence_its_source(look, serve, library):
    page = look(serve(library), viewport=NARROW, has_touch=True)
    page.click("#panes [data-pane=outline]")
    row = page.locator("#tree .row").nth(1)
    row.tap()
    until(page.locator("#summary").is_visible)
    until(lambda: page.locator("#summary a.sentence").count() > 1)
    page.locator("#summary a.sentence").nth(1).tap()
    until(page.locator(".cited").is_visible)
    page.go_back()
    until(page.locator("#summary").is_visible)
    page.go_back()
    until(row.is_visible)


def test_nothing_moves_while_it_loads(look, serve, library):
    page = look("about:blank")
    page.add_init_script(
        "window.moved = 0; new PerformanceObserver((list) => list.getEntries().forEach("
        "(e) => { if (!e.hadRecentInput) window.moved += e.value; }))"
        ".observe({ type: 'layout-shift', buffered: true });"
    )
    page.goto(serve(library))
    page.wait_for_selector("#blocks a")
    page.wait_for_timeout(300)
    assert page.evaluate("window.moved") < 0.01
