"""Reading, searching and asking with the mouse; and going back."""

import re

import pytest
from browser.actions import (
    QUESTION,
    apart,
    ask,
    browse,
    cited,
    flat,
    of_documents,
    read,
    row,
    selected,
    until,
)
from llama_index.core.schema import Document


@pytest.fixture
def page(look, serve, library):
    page = look(serve(library))
    browse(page)
    return page


def test_opens_at_the_overview_of_the_index(look, serve, library):
    page = look(serve(library))
    page.wait_for_selector("#blocks a")
    assert page.title() == "library · hierindex"
    assert re.match(r"2 documents · [\d,]+ tokens · \d+ \w+ \d{4}$", page.inner_text("#facts"))
    columns = page.locator("#blocks .column")
    assert columns.first.locator("a b").all_inner_texts() == ["Bridges", "Gardens"]
    heights = columns.evaluate_all(
        "all => all.map((each) => [...each.children].reduce((sum, a) => sum + a.offsetHeight, 0))"
    )
    assert max(heights) - min(heights) <= columns.last.locator("a").count()
    said = flat(page.locator("#quotes a.sentence").first.inner_text())
    page.locator("#quotes a.sentence").first.click()
    until(lambda: cited(page) == said)
    page.go_back()
    until(page.locator("#quotes").is_visible)


def test_a_block_opens_its_text_beside_the_blocks(look, serve, library):
    page = look(serve(library))
    page.locator("#blocks a", has_text="Gardens").first.click()
    until(lambda: read(page) == "Gardens")
    assert page.locator("#blocks a[aria-current]").first.locator("b").inner_text() == "Gardens"
    page.click("#name")
    until(page.locator("#quotes").is_visible)
    until(lambda: page.locator("#blocks a[aria-current]").count() == 0)


def test_a_question_of_the_overview_is_asked_and_its_parts_are_marked(look, serve, library):
    page = look(serve(library))
    page.click("#questions button:has-text('Bridges')")
    page.wait_for_selector("#answer h2")
    assert page.locator("#answer h2").inner_text() == "What is “Bridges” about?"
    assert page.input_value("#asked") == "What is “Bridges” about?"
    lit = page.locator("#blocks .column").first.locator("a[data-lit]")
    assert lit.locator("b").all_text_contents() == ["Bridges"]
    page.click("#panes [data-pane=overview]")
    until(page.locator("#quotes").is_visible)
    assert lit.count() == 1
    page.click("#panes [data-pane=answer]")
    until(page.locator("#answer").is_visible)


def test_a_new_answer_is_shown_from_its_beginning(look, serve, library):
    page = look(serve(library), viewport={"width": 1400, "height": 300})
    page.wait_for_selector("#blocks a")
    ask(page, "What is this about?")
    page.locator("#answer").evaluate("(answer) => (answer.scrollTop = 9999)")
    assert page.locator("#answer").evaluate("(answer) => answer.scrollTop") > 0
    page.click("#panes [data-pane=outline]")
    ask(page, "What is said about bees and roses?")
    until(lambda: page.locator("#answer").evaluate("(answer) => answer.scrollTop") == 0)
    assert "Searched " in page.locator("#answer").inner_text()


def test_rows_expand_and_collapse(page):
    n = page.locator("#tree .row").count()
    bridges = row(page, "Bridges")
    assert bridges.get_attribute("aria-expanded") == "false"
    bridges.locator(".twist").click()
    until(lambda: page.locator("#tree .row").count() > n)
    assert bridges.get_attribute("aria-expanded") == "true"
    levels = page.locator("#tree .row").evaluate_all(
        "rows => rows.map((row) => [Number(row.ariaLevel), Number(row.ariaPosInSet)])"
    )
    place: dict[int, int] = {}
    for level, position in levels:
        place = {above: n for above, n in place.items() if above <= level}
        assert position == place.get(level, 0) + 1
        place[level] = position
    bridges.locator(".twist").click()
    assert page.locator("#tree .row").count() == n


def test_each_sentence_of_a_summary_leads_to_itself_in_its_document(page):
    row(page, "Bridges").click()
    until(lambda: read(page) == "Bridges")
    sentences = page.locator("#summary a.sentence")
    assert sentences.count() > 2
    for i in range(sentences.count()):
        sentences.nth(i).click()
        said = flat(sentences.nth(i).inner_text())
        until(lambda said=said: cited(page) == said)
        assert sentences.nth(i).get_attribute("aria-current") == "true"
    assert "section" not in page.locator("#source-bar").inner_text()


def test_a_citation_is_followed_and_back_returns(page):
    row(page, "Bridges").click()
    until(lambda: "node=" in page.url and read(page) == "Bridges")
    of_node = page.url
    ask(page)
    assert "sunk by 40 centimetres" in page.locator("#answer .cards").inner_text()
    page.locator("#answer a.sentence").first.click()
    until(lambda: "start=" in page.url and "Harlow was closed in 1963" in cited(page))
    assert "Closures" in page.locator("#source-bar .place").inner_text()
    page.go_back()
    until(lambda: "start=" not in page.url)
    assert page.locator("#answer").is_visible()
    page.go_back()
    page.wait_for_selector("#summary")
    assert page.url == of_node
    until(lambda: selected(page) == "Bridges")
    assert page.locator("button[data-pane=answer]").is_hidden()
    assert page.locator("#tree [data-lit=source]").count() == 0
    page.go_forward()
    page.wait_for_selector("#answer")


def test_back_shows_the_earlier_answer_and_reload_asks_again(page):
    other = "How much honey do bees need?"
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/ask?" in request.url else 0)
    ask(page, Level="0")
    first = page.url
    ask(page, other)
    until(lambda: "honey" in page.evaluate("location.hash"))
    assert "forty kilograms" in page.locator("#answer .cards").inner_text()
    page.go_back()
    question = page.locator("#answer h2")
    until(lambda: question.inner_text() == QUESTION)
    assert (page.url, len(asked)) == (first, 2)
    assert page.input_value("#asked") == QUESTION
    assert "40 centimetres" in page.locator("#answer .cards").inner_text()
    page.go_forward()
    until(lambda: question.inner_text() == other)
    page.reload()
    page.wait_for_selector("#tree [data-lit=source]", state="attached")
    until(lambda: question.inner_text() == other)
    assert page.input_value("#asked") == other
    assert page.locator("#options-set").inner_text().strip() == "(1)"
    assert len(asked) == 3
    assert asked[1] == asked[2]


def test_numbers_in_brackets_of_a_document_are_no_citations(look, serve, tmp_path):
    texts = [
        "Arches were measured by Moreau [2] in 1921, and by Nagy [1] later.",
        "Gulls were counted by Ito [1] in 1950, and by Berg [2] later.",
    ]
    documents = [Document(text=text, id_=text[0]) for text in texts]
    page = look(serve(of_documents(tmp_path / "brackets", *documents)))
    browse(page)
    ask(page, "Who measured arches and who counted gulls in 1921 and 1950?", Level="0")
    quotes = page.locator("#answer a.sentence")
    assert sorted(map(flat, quotes.all_inner_texts())) == texts
    for i, quote in enumerate(quotes.all_inner_texts()):
        quotes.nth(i).click()
        until(lambda quote=quote: cited(page) == flat(quote))
        until(lambda quote=quote: quote[:5].lower() in selected(page).lower())  # its node


def test_a_card_has_the_quote_its_place_and_its_best_words_in_bold_type(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, Level="0")
    card = page.locator("#answer .cards > li").first
    quote, best = (flat(card.locator(part).inner_text()) for part in ("a.sentence", "a.sentence b"))
    assert best in quote
    assert "Closures" in card.locator("small bdi").inner_text()
    card.locator("button").click()
    until(lambda: page.locator("#status").inner_text() == "Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"“{quote}”\n")
    assert copied.endswith("bridges.md")
    folded = page.locator("#answer details")
    assert re.match(r"\d+ more passages? (was|were) read but not quoted", folded.inner_text())
    folded.locator("summary").click()
    folded.locator("a").first.click()
    until(page.locator("#summary").is_visible)


def test_a_link_opens_the_same_node_and_passage(page, look):
    row(page, "Gardens").click()
    until(lambda: read(page) == "Gardens")
    sentence = page.locator("#summary a.sentence").nth(1)
    sentence.click()
    until(lambda: cited(page) == flat(sentence.inner_text()))
    said, title = cited(page), selected(page)
    other = look(page.url)
    other.wait_for_selector("#tree .row[aria-selected=true]", state="attached")
    until(lambda: (cited(other), selected(other)) == (said, title))


@pytest.mark.parametrize("level", ["0", "1", "documents"])
def test_a_question_at_a_level_lights_up_its_sources(page, level):
    ask(page, Level=level)
    page.wait_for_selector("#tree [data-lit=source]", state="attached")
    links = page.locator("#answer .cards small a")
    links = links.evaluate_all("all => all.map((each) => each.hash)")
    nodes = {re.search("node=(\\w+)", link)[1] for link in links}
    assert page.locator("#tree [data-lit=source]").count() == len(nodes)
    if level.isdigit():
        page.click("#answer summary")
        others = page.locator("#answer details small").all_inner_texts()
        assert all(text.strip().startswith(f"level {level} ") for text in others)
    assert page.locator("#tree .row").first.get_attribute("data-lit") in ("under", "source")
    assert page.locator("#options-set").inner_text().strip() == "(1)"


def test_a_question_without_an_answer_is_refused_in_words(page):
    ask(page, "What is the boiling point of tungsten hexafluoride?")
    assert page.locator("#answer .refused").inner_text()
    assert page.locator("#answer a.sentence").count() == 0
    assert page.locator("#tree [data-lit=source]").count() == 0


def test_a_wrong_filter_is_named_in_one_sentence(page):
    page.click("#options summary")
    page.get_by_label("Only where").fill("no filter")
    page.keyboard.press("Escape")
    page.fill("#asked", QUESTION)
    page.press("#asked", "Enter")
    page.wait_for_selector("#notice:not([hidden])")
    assert "no filter" in page.locator("#notice").inner_text()


def test_search_in_place_finds_selects_and_returns(page):
    page.fill("#find", "compost")
    page.wait_for_selector("#found .row")
    assert page.locator("#tree").is_hidden()
    assert page.locator("#found mark").first.inner_text().lower() == "compost"
    page.locator("#found .row").first.click()
    title = page.locator("#found .row .title").first.inner_text()
    until(lambda: read(page) == title)
    page.press("#find", "Escape")
    assert page.locator("#found").is_hidden()
    until(lambda: selected(page) == title)


def test_what_is_found_is_told_apart(page):
    page.fill("#find", "bees")
    page.wait_for_selector("#found .row")
    rows = page.locator("#found .row")
    assert rows.first.locator(".title").inner_text() == "Bees"  # before its chunks
    assert rows.first.locator(".of").inner_text() == "Gardens"
    assert "#" not in rows.all_inner_texts()[1]
    page.press("#find", "Escape")
    row(page, "Bridges").locator(".twist").click()
    until(lambda: page.locator("#tree .row").count() > 4)
    assert not [text for text in page.locator("#tree .excerpt").all_inner_texts() if "#" in text]


def test_words_that_are_nowhere_leave_the_outline(page):
    page.fill("#find", "xylophone")
    until(lambda: page.locator("#find-count").inner_text() == "nothing found")
    assert page.locator("#tree").is_visible()
    page.press("#find", "Escape")
    assert page.locator("#find-count").is_hidden()


def test_the_map_names_and_selects_chunks(page):
    page.click("#panes [data-pane=map]")
    page.wait_for_selector("#legend button")
    page.focus("#points")
    page.keyboard.press("ArrowRight")
    caption = page.locator("#map-caption")
    until(lambda: not re.search("…|similar", caption.inner_text()))
    title = caption.inner_text().split(" · ")[0]
    page.keyboard.press("Enter")
    until(lambda: read(page) == title)
    legend = page.locator("#legend button").first
    legend.click()
    assert legend.get_attribute("aria-pressed") == "true"


def test_the_map_zooms_by_wheel_and_keys(page):
    page.click("#panes [data-pane=map]")
    page.wait_for_selector("#legend button")
    page.focus("#points")
    canvas = page.locator("#points")
    canvas.hover(position={"x": 3, "y": 3})  # near no point
    whole = pixels(canvas)
    page.mouse.wheel(0, -300)
    until(lambda: pixels(canvas) != whole)
    page.mouse.wheel(0, 300)
    until(lambda: pixels(canvas) == whole)
    page.keyboard.press("+")
    until(lambda: pixels(canvas) != whole)
    page.keyboard.press("-")
    until(lambda: pixels(canvas) == whole)


def pixels(canvas):
    """A canvas as a PNG image."""
    return canvas.evaluate("(canvas) => canvas.toDataURL()")


def test_a_map_that_arrives_late_is_not_shown_for_another_level(page):
    late = []
    page.route(
        "**/api/map?*", lambda route: route.continue_() if len(late) == 1 else late.append(route)
    )
    page.click("#panes [data-pane=map]")
    until(lambda: page.wait_for_timeout(20) or len(late) == 1)
    late.pop().abort()  # a map that fails is asked for again
    caption, levels = page.locator("#map-caption"), page.locator("#map-level")
    until(lambda: "cannot be shown" in caption.inner_text())
    page.click("#panes [data-pane=outline]")
    page.click("#panes [data-pane=map]")
    until(lambda: page.wait_for_timeout(20) or len(late) == 1)
    shown = levels.input_value()
    other = next(value for value in levels_of(page) if value != shown)
    levels.select_option(other)
    page.wait_for_selector("#legend button")
    legend = page.locator("#legend").inner_text()
    with page.expect_response(lambda reply: f"level={shown}&" in reply.url):
        late[0].continue_()
    page.wait_for_timeout(200)
    assert page.locator("#legend").inner_text() == legend


def levels_of(page):
    return page.locator("#map-level option").evaluate_all("all => all.map((each) => each.value)")


def test_long_lists_load_what_is_asked_for(look, serve, tmp_path):
    text = "\n\n".join(f"Report {i} of the archive has {i} pages." for i in range(450))
    page = look(serve(of_documents(tmp_path / "many", Document(text=text, id_="archive"))))
    page.click("#panes [data-pane=outline]")
    rows, more = page.locator("#tree .row"), page.locator("#tree .more")
    until(lambda: rows.count() == 1 + 100 + 1)
    more.click()
    until(lambda: rows.count() == 1 + 200 + 1)
    for n in (300, 400):
        more.click()
        until(lambda n=n: rows.count() == 1 + n + 1)
    assert more.text_content() == "Show 50 more of 450 rows"
    more.click()
    until(lambda: rows.count() == 1 + 450)
    assert rows.last.get_attribute("aria-posinset") == "450"


def test_a_node_far_down_a_list_is_shown_with_those_around_it(look, serve, tmp_path):
    text = "\n\n".join(f"Report {i} of the archive has {i} pages." for i in range(1230))
    index = of_documents(tmp_path / "many", Document(text=text, id_="archive"))
    url = serve(index)
    children = apart(lambda: index.describe(index.info()["roots"][0])["children"])
    page = look(f"{url}#node={children[1150]}")
    page.click("#panes [data-pane=outline]")
    rows = page.locator("#tree .row")
    until(lambda: "Report 1150" in page.locator("#tree [aria-selected=true] .excerpt").inner_text())
    assert "Report 1150" in cited(page)

    def places():
        return rows.evaluate_all("rows => rows.map((row) => Number(row.ariaPosInSet))")

    head, around = [*range(1, 101)], [*range(1101, 1201)]
    assert places() == [1, *head, 0, *around, 0]
    gaps = page.locator("#tree .more")
    assert gaps.all_inner_texts() == ["Show 100 more of 1,230 rows", "Show 30 more of 1,230 rows"]
    gaps.first.click()
    until(lambda: places() == [1, *head, *range(101, 201), 0, *around, 0])
    gaps.last.click()
    until(lambda: places() == [1, *head, *range(101, 201), 0, *around, *range(1201, 1231)])
    page.locator("#tree .row").first.locator(".twist").click()
    until(lambda: places() == [1])


def test_widening_keeps_the_place_that_is_read(look, serve, tmp_path):
    text = "\n\n".join(f"Page {i} says: " + "and so on, " * 100 for i in range(300))
    index = of_documents(tmp_path / "long", Document(text=text, id_="long"))
    middle = apart(lambda: index.describe(index.info()["roots"][0])["children"][150])
    page = look(f"{serve(index)}#node={middle}")
    until(lambda: "Page 150 " in cited(page))
    shown = page.locator("#passage")
    top = "document.querySelector('#cited').getBoundingClientRect().top"
    for more in ("More before", "More after", "More before"):
        shown.evaluate("(block) => block.scrollBy(0, 31)")
        before, n = page.evaluate(top), len(shown.inner_text())
        page.get_by_text(more).evaluate("(button) => button.click()")
        until(lambda n=n: len(shown.inner_text()) > n)
        assert abs(page.evaluate(top) - before) < 2
    assert not shown.get_by_text("More").locator("visible=true").count()
    assert "Page 150 " in cited(page)
    assert page.locator("#notice").is_hidden()
