"""Reading, searching and asking with the mouse; and going back."""

import re

import pytest
from browser.actions import (
    QUESTION,
    apart,
    archive,
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
from indexes import built
from llama_index.core.schema import Document

from hierindex import DocumentHierarchy


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
    assert page.locator("#blocks [data-lit=quoted]").count() == 0
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
    assert re.match(r"\d+ passages? read but not quoted", folded.inner_text())
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


@pytest.mark.parametrize("level", ["0", "1"])
def test_a_question_is_asked_at_a_level(page, level):
    ask(page, Level=level)
    assert page.locator("#blocks [data-lit=quoted]").count()
    page.click("#answer summary")
    others = page.locator("#answer details small").all_inner_texts()
    assert all(text.strip().startswith(f"level {level} ") for text in others)
    assert page.locator("#options-set").inner_text().strip() == "(1)"


def test_a_question_without_an_answer_is_refused_in_words(page):
    ask(page, "What is the boiling point of tungsten hexafluoride?")
    assert page.locator("#answer .refused").inner_text()
    assert page.locator("#answer a.sentence").count() == 0
    assert page.locator("#blocks [data-lit=quoted]").count() == 0


@pytest.mark.parametrize("question", ["Which files are there?", "Which files mention Harlow?"])
def test_a_list_of_documents_is_shown(page, question):
    ask(page, question)
    assert "document" in page.locator("#answer .text").first.inner_text()
    assert page.locator("#answer .refused").count() == 0


def test_a_wrong_filter_is_named_in_one_sentence(page):
    page.click("[popovertarget=options]")
    page.get_by_label("Only where").fill("no filter")
    page.keyboard.press("Escape")
    page.fill("#asked", QUESTION)
    page.press("#asked", "Enter")
    page.wait_for_selector("#notice:not([hidden])")
    assert "no filter" in page.locator("#notice").inner_text()


def test_what_is_found_is_listed_by_document_with_its_sentence(page):
    page.fill("#asked", "bees")
    page.wait_for_selector("#found .row")
    group = page.locator("#found [role=group]", has=page.get_by_text("Gardens", exact=True))
    rows = group.locator(".row")
    assert rows.first.locator(".title").inner_text() == "Bees"  # before its chunks
    assert {mark.lower() for mark in page.locator("#found mark").all_inner_texts()} <= {
        "bees",
        "bee",
    }
    assert re.match(r"\d+ found$", page.locator("#find-count").inner_text())
    rows.filter(has_text="Bees visit").first.click()
    until(lambda: cited(page) == "Bees visit the garden from March.")
    assert page.locator("#found").is_hidden()


def test_a_link_with_an_option_that_was_dropped_opens(look, serve, library):
    page = look(f"{serve(library)}#q=When+was+the+last+toll+lifted%3F&by=text&top_k=3&read=answer")
    until(lambda: "1971" in page.locator("#answer .cards").inner_text())


def test_all_is_collapsed(page):
    n = page.locator("#tree .row").count()
    row(page, "Gardens").locator(".twist").click()
    until(lambda: page.locator("#tree .row").count() > n)
    page.locator("#tree .row").last.click()
    page.click("#collapse")
    assert page.locator("#tree .row").count() == n
    assert selected(page) == "Gardens"


def test_names_lose_what_all_begin_with_and_are_cut_before_their_ends(
    look, serve, tmp_path, embed_model
):
    names = ["with-a-very-long-name--of-gated-units", "with-a-very-long-name--beams", "with-none"]
    (tmp_path / "docs").mkdir()
    for name in names:
        text = "\n\n".join(f"Paragraph {i} of {name} tells of {name}." for i in range(9))
        (tmp_path / "docs" / f"book--{name}.md").write_text(text)
    index = apart(
        lambda: built(tmp_path / "docs", tmp_path / "index", DocumentHierarchy, model=embed_model)
    )
    page = look(serve(index), viewport={"width": 900, "height": 700})
    page.click("#panes [data-pane=outline]")
    titles = page.locator("#tree [data-kind=document] .title")
    until(lambda: titles.count() == 3)
    assert sorted(titles.all_text_contents()) == sorted(
        each.removeprefix("with-") for each in names
    )
    assert titles.first.get_attribute("title").startswith("book--with-")
    assert titles.locator("span").all_text_contents()


@pytest.fixture
def chart(page):
    """The page with its map."""
    page.click("#panes [data-pane=map]")
    page.wait_for_selector("#map-marks .name:not([hidden])")
    return page


def test_the_map_names_and_selects_chunks(chart):
    x, y = places_of(chart)[0]
    plane = chart.locator("#plane").bounding_box()
    at = plane["x"] + x * plane["width"], plane["y"] + y * plane["height"]
    chart.mouse.move(*at)
    tip = chart.locator("#map-tip")
    until(tip.is_visible)
    title = tip.locator("b").inner_text()
    chart.evaluate("document.querySelectorAll('.name').forEach((name) => name.hidden = true)")
    chart.mouse.click(*at)
    until(lambda: read(chart) == title)
    assert chart.locator("#map-marks .ring:not([hidden])").count() == 2
    name = chart.locator("#map-marks .name:not([hidden])").first
    title = name.get_attribute("title")
    name.click()
    until(lambda: read(chart) == title)


def places_of(chart):
    """Where the points of the map are, as shares of it."""
    dots = "paths => paths.map((path) => path.getAttribute('d')).join('').match(/[^MhV]+(?=h0)/g)"
    places = chart.locator("#dots path").evaluate_all(dots)
    return [[*map(float, each.split())] for each in places]


def test_points_that_an_answer_cites_have_its_numbers(chart):
    ask(chart, Level="0")
    n = chart.locator("#answer .cards > li").count()
    chart.click("#panes [data-pane=map]")
    numbers = ", ".join(chart.locator("#map-marks .number").all_inner_texts()).split(", ")
    assert sorted(map(int, numbers)) == [*range(1, n + 1)]


def test_names_of_the_map_do_not_meet(chart):
    boxes = [name.bounding_box() for name in chart.locator("#map-marks .name:visible").all()]
    assert len(boxes) > 1
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert any(
                a[side] + a[size] <= b[side] or b[side] + b[size] <= a[side]
                for side, size in (("x", "width"), ("y", "height"))
            )


def test_the_map_zooms_and_is_dragged_and_reset(chart):
    plane, points = chart.locator("#plane"), chart.locator("#points")
    whole, pane = plane.bounding_box(), points.bounding_box()
    points.hover()
    for _ in range(30):
        chart.mouse.wheel(0, -300)
    until(lambda: plane.bounding_box()["width"] > 20 * whole["width"])
    chart.mouse.move(pane["x"] + pane["width"] / 2, pane["y"] + pane["height"] / 2)
    near = plane.bounding_box()
    chart.mouse.down()
    chart.mouse.move(
        pane["x"] + pane["width"] / 2 + 60, pane["y"] + pane["height"] / 2 + 40, steps=4
    )
    chart.mouse.up()
    moved = plane.bounding_box()
    assert (round(moved["x"] - near["x"]), round(moved["y"] - near["y"])) == (60, 40)
    assert "node=" not in chart.url.partition("&")[2]
    points.dblclick(position={"x": 3, "y": 3})
    until(lambda: plane.bounding_box() == whole)
    chart.click("#map-zoom [aria-label='Zoom in']")
    until(lambda: plane.bounding_box()["width"] == 2 * whole["width"])
    chart.click("#map-zoom [value='0']")
    until(lambda: plane.bounding_box() == whole)


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
    page.wait_for_selector("#map-marks .name")
    names = page.locator("#map-marks").inner_text()
    with page.expect_response(lambda reply: f"level={shown}&" in reply.url):
        late[0].continue_()
    page.wait_for_timeout(200)
    assert page.locator("#map-marks").inner_text() == names


def levels_of(page):
    return page.locator("#map-level option").evaluate_all("all => all.map((each) => each.value)")


def test_long_lists_load_what_is_asked_for(look, serve, tmp_path):
    page = look(serve(archive(tmp_path / "many", 450)))
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
    index = archive(tmp_path / "many", 1230)
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


@pytest.fixture
def long(tmp_path):
    """An index of one long document, in a file."""
    said = (f"Page {i} says {i}: " + "and so on, " * 100 for i in range(400))
    (tmp_path / "long.txt").write_text("\n\n".join(said))
    return of_documents(tmp_path / "index", tmp_path / "long.txt")


def test_a_document_is_scrolled_through_from_the_passage_to_its_ends(look, serve, long):
    middle = apart(lambda: long.describe(long.info()["roots"][0])["children"][150])
    page = look(f"{serve(long)}#node={middle}")
    until(lambda: cited(page).startswith("Page 150 says"))
    shown, parts = page.locator("#passage"), page.locator("#passage .part")
    n = parts.count()
    box, first = shown.bounding_box(), page.locator(".cited").first
    until(lambda: (at := first.bounding_box()) and 0 < at["y"] - box["y"] < box["height"] / 2)
    assert n > 20
    assert parts.locator("p").count() < n * 20 / 2  # a part has about 20 paragraphs
    for place, words in (("scrollHeight", "Page 399 says"), ("0 * scrollHeight", "Page 0 says")):
        jump = f"(block) => {{ block.scrollTop = {place.replace('scroll', 'block.scroll')}; }}"
        until(lambda jump=jump, words=words: shown.evaluate(jump) or words in shown.inner_text())
    assert page.locator("#passage .cited").count()


def test_the_edge_has_the_marks_of_all_that_is_read(page):
    row(page, "Bridges").click()
    until(lambda: read(page) == "Bridges")
    sentences, marks = page.locator("#summary a.sentence"), page.locator("#edge a")
    until(lambda: marks.count() == sentences.count() > 2)
    assert page.locator("#passage mark").count() >= marks.count()
    tops = marks.evaluate_all("all => all.map((each) => parseFloat(each.style.top))")
    assert all(0 <= top <= 100 for top in tops)
    last = marks.nth(tops.index(max(tops)))
    last.click()
    until(lambda: last.get_attribute("aria-current") == "true")
    current = page.locator("#summary a.sentence[aria-current]")
    assert flat(current.inner_text()) == cited(page)
    ask(page)
    until(lambda: marks.count() == page.locator("#answer .cards > li").count())


def test_the_file_is_opened_in_another_tab(page):
    row(page, "Bridges").click()
    until(lambda: read(page) == "Bridges")
    with page.expect_popup() as opened:
        page.get_by_text("open the file").click()
    assert "# Bridges" in opened.value.locator("body").inner_text()
    opened.value.close()


def test_a_chunk_is_shown_in_its_document_alone(page):
    closed = page.locator("#tree .row[aria-expanded=false] .twist")
    while closed.count():
        closed.first.click()
        page.wait_for_timeout(100)
    page.locator("#tree .row:not([aria-expanded])", has_text="Painters return").first.click()
    until(lambda: "Painters return every seven years." in cited(page))
    assert "Painters" not in page.locator("#summary .text").inner_text()


def test_a_document_is_read_with_its_summaries_beside_it(page):
    row(page, "Bridges").click()
    until(lambda: read(page) == "Bridges")
    page.click("#source-bar button:has-text('Read')")
    until(lambda: page.locator("#passage .notes").count() > 0)
    assert page.locator("#summary").is_hidden()
    level, marks = page.locator("#summaries"), page.locator("#passage mark:not(.cited)")
    for n in range(1, int(level.get_attribute("max")) + 1):
        level.fill(str(n))
        assert f"level {n}" in page.locator("#source-bar output").inner_text()
        text = flat("".join(page.locator("#passage p").all_inner_texts()))
        notes = page.locator("#passage .notes > p").all_inner_texts()
        assert all(flat(note) in text for note in notes)
    level.fill("0")
    assert marks.count() == 0
    assert page.locator("#passage .notes > p").count() == 0
    page.keyboard.press("Escape")
    until(page.locator("#summary").is_visible)


def test_a_sentence_tells_which_summaries_quote_it(page, library):
    row(page, "Bridges").click()
    until(lambda: read(page) == "Bridges")
    page.click("#source-bar button:has-text('Read')")
    page.locator("#passage p a.sentence").first.click()
    page.wait_for_selector("#passage .uses a")
    said = cited(page)
    links = page.locator("#passage .uses a").evaluate_all("all => all.map((each) => each.hash)")
    nodes = [re.search("node=(\\w+)", link)[1] for link in links]
    texts = [flat(apart(lambda node=node: library.describe(node))["text"]) for node in nodes]
    assert all(said in text for text in texts)
    levels = page.locator("#passage .uses li").all_inner_texts()
    assert levels == sorted(levels)
    page.locator("#passage .uses a").last.click()
    until(lambda: page.locator("#summary").is_visible() and nodes[-1] in page.url)
