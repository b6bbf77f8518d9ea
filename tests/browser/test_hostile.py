"""Documents that hold script, marks of direction or a megabyte are shown as text."""

import pytest
from browser.actions import browse, cited, of_documents, until
from llama_index.core.schema import Document

SCRIPT = (
    "<script>document.title = 'taken'</script> <img src=x onerror=alert(1)> "
    '"><svg onload=alert(2)> <a href="javascript:alert(3)">here</a> '
    "</script><style>body { display: none }</style> &lt;b&gt; {{7*7}} ${7*7}."
)
NAME = "<img src=x onerror=alert(4)>"
MARKS = (
    "The file \u202eexe.gpj\u202c is shown. \u2066Isolated\u2069 words. Null \x01 and \x1b[31m red."
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    long = "x" * 500_000 + " " + "long " * 120_000
    return of_documents(
        tmp_path_factory.mktemp("hostile") / "<i>index",
        Document(text=SCRIPT, id_=NAME, metadata={"title": NAME}),
        Document(text=MARKS, id_="marks\u202e"),
        Document(text=long, id_="megabyte"),
        Document(text="Initials: " + "A. B. C. " * 20_000, id_="initials"),
        Document(text="Shorts. " + "Ab! " * 150_000, id_="sentences"),
        Document(text="עברית עם English ומספרים 123. العربية.", id_="right-to-left"),
        Document(text="💡 astral 🧪 characters. The second 🧪 sentence.", id_="astral"),
    )


@pytest.fixture
def page(look, serve, hostile):
    page = look(serve(hostile))
    browse(page)
    return page


def open_row(page, text):
    """Open the chunk whose text begins so."""
    for _ in range(20):
        closed = page.locator("#tree .row[aria-expanded=false] .twist")
        if not closed.count():
            break
        n = page.locator("#tree .row").count()
        closed.first.click()
        until(lambda n=n: page.locator("#tree .row").count() > n)
    page.locator("#tree .row:not([aria-expanded])").filter(has_text=text).first.click()
    until(lambda: text in cited(page))


def test_script_in_texts_titles_and_names_is_text(page):
    open_row(page, "<script>")
    shown = page.locator("#passage").inner_text()
    assert " ".join(shown.split()) == SCRIPT
    assert NAME in page.locator("#source-bar").inner_text()
    assert (
        page.evaluate(
            "document.querySelectorAll('main img, main svg:not(#dots), main script').length"
        )
        == 0
    )
    assert page.title() == "<i>index · hierindex"
    assert page.locator("#name").inner_text() == "<i>index"


def test_script_in_a_question_and_a_search_is_text(page):
    page.fill("#asked", NAME)
    until(lambda: page.locator("#find-count").inner_text().endswith("found"))
    page.fill("#asked", "<zzz>")
    until(lambda: page.locator("#find-count").inner_text() == "No title or text has “<zzz>”.")
    page.fill("#asked", f"{NAME} taken")
    page.press("#asked", "Enter")
    until(lambda: page.locator("#answer h2").count() or page.locator("#notice").is_visible())
    assert page.locator("#answer h2").inner_text() == f"{NAME} taken"


def test_addresses_that_are_made_up_show_a_sentence(page, look):
    for bad in (
        "#node=<script>",
        "#node=zz&document=x&start=1&end=2",
        "#start=-1&end=x",
        "#&&=%zz",
    ):
        other = look(page.url.partition("#")[0] + bad)
        other.wait_for_selector("#blocks a")
        until(lambda other=other: other.locator("#passage, #quotes, #notice").all_inner_texts())


def test_marks_of_direction_are_written_out(page):
    open_row(page, "The file")
    shown = page.locator("#passage").inner_text()
    assert "U+202Eexe.gpjU+202C" in shown
    assert "U+001B" in shown
    for block in ("#summary", "#passage", "#tree", "#source-bar"):
        assert not set(page.locator(block).inner_text()) & set("\u202e\u202c\u2066\u2069\x01\x1b")


def test_right_to_left_text_is_set_so(page):
    open_row(page, "עברית")
    direction = "(e) => getComputedStyle(e).direction"
    assert page.locator("#passage p").evaluate(direction) == "rtl"
    assert page.locator("body").evaluate(direction) == "ltr"


def test_sentences_of_a_summary_have_their_own_direction(look, serve, tmp_path):
    texts = [
        "The bridge was closed in 1963.",
        "הגשר נסגר בשנת 1963 (על ידי City Council).",
        "The mixed document starts in English.",
        "أغلق الجسر في عام 1963 بسبب الفيضان.",
    ]
    documents = [Document(text=text, id_=str(i)) for i, text in enumerate(texts)]
    page = look(serve(of_documents(tmp_path / "index", *documents)))
    browse(page)
    page.locator("#summary .text").evaluate("(text) => (text.style.whiteSpace = 'nowrap')")
    sentences = page.locator("#summary a.sentence")
    said = [text.strip() for text in sentences.all_inner_texts()]
    assert {text.isascii() for text in said} == {True, False}
    ends = """(sentence) => [0, sentence.textContent.length - 1].map((at) => {
        const range = new Range();
        range.setStart(sentence.firstChild, at);
        range.setEnd(sentence.firstChild, at + 1);
        return range.getBoundingClientRect().x;
    })"""
    for i, text in enumerate(said):
        first, last = sentences.nth(i).evaluate(ends)
        assert (first < last) == text.isascii()


def test_passages_after_characters_beyond_16_bits_are_right(page):
    page.locator("#tree [data-kind=document]", has_text="astral").first.click()
    until(lambda: "astral" in page.locator("#summary .text").inner_text())
    sentences = page.locator("#summary a.sentence")
    sentences.last.click()
    until(lambda: cited(page) == "The second 🧪 sentence.")
    assert sentences.last.inner_text() == "The second 🧪 sentence."


LONG_TASKS = """
    window.long = [];
    new PerformanceObserver((list) => list.getEntries().forEach((e) => long.push(e.duration)))
        .observe({ type: "longtask", buffered: true });
"""


def test_a_list_of_thousands_of_rows_opens_at_once(look, serve, tmp_path):
    texts = ["\n\n".join(f"Report {i} has {i} pages." for i in range(n)) for n in (5_000, 3)]
    documents = [Document(text=text, id_=f"{len(text)} characters") for text in texts]
    page = look(serve(of_documents(tmp_path / "many", *documents)))
    page.click("#panes [data-pane=outline]")
    closed = page.locator("#tree .row[aria-expanded=false] .twist")
    until(closed.count)
    page.evaluate(LONG_TASKS.replace("buffered: true", "buffered: false"))
    while n := closed.count():
        closed.first.click()
        until(lambda n=n: closed.count() < n)
    until(lambda: page.locator("#tree .row").count() > 100)
    assert not [each for each in page.evaluate("long") if each > 100]


@pytest.mark.parametrize("text", ["xxx", "Initials: A. B.", "Shorts. Ab!"])
def test_a_megabyte_is_shown_a_part_at_a_time(page, text):
    page.evaluate(LONG_TASKS)
    open_row(page, text)
    parts = page.locator("#passage .part")
    shown = parts.evaluate_all("all => all.filter((part) => part.childElementCount).length")
    assert 0 < shown < 6 < parts.count()
    assert not [each for each in page.evaluate("long") if each > 100]
    page.focus("#tree .row[aria-selected=true]")
    before = page.url
    page.keyboard.press("Home")
    until(lambda: page.url != before)
