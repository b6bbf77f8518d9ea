"""Documents with pages, and summaries that a language model has written."""

import re
from threading import Event
from typing import Any

import pytest
from browser.actions import QUESTION, apart, ask, browse, cited, until, violations
from edited_index import KINDS
from fakes import HashingEmbedding, Replying
from llama_index.core.llms import CompletionResponse, MockLLM
from pdfs import pdf_of
from pydantic import Field

from hierindex import HierarchicalIndex
from hierindex.export import to_html
from hierindex.summarize import LLMRewriter, TwoStageSummarizer

PAGES = (
    "The lamp of the harbour burned all night.\nNobody came to put it out.",
    "On Tuesday the keeper counted forty gulls.\nHe wrote their number into the book.",
    "A storm broke the northern window in March.\nThe glass was replaced in May.",
)


SUPPORTED, INVENTED = "Forty gulls were counted by the keeper.", "The keeper was from Bonn."


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rewritten")
    (folder / "keeper.pdf").write_bytes(pdf_of(*PAGES))
    invents = Replying(reply=lambda prompt: f"{SUPPORTED} {INVENTED}")
    summarizer = TwoStageSummarizer(LLMRewriter(invents), unsupported="keep")
    hierarchy = KINDS[0](HashingEmbedding(), summarizer, max_children=2)
    return apart(
        lambda: HierarchicalIndex.build(
            folder / "keeper.pdf", folder / "index", hierarchy=hierarchy, chunk_size=30
        )
    )


@pytest.fixture(params=["served", "report"])
def page(request, look, index, tmp_path):
    if request.param == "served":
        page = look(request.getfixturevalue("serve")(index))
    else:
        apart(lambda: to_html(index, tmp_path / "report.html"))
        page = look((tmp_path / "report.html").as_uri())
        page.click("#explore")
    browse(page)
    return page


def test_a_rewritten_sentence_leads_to_what_supports_it(page):
    facts = page.locator("#summary").inner_text()
    assert "written by a model" in facts
    assert re.search(r"\d+ supported, \d+ unsupported", facts)
    assert page.locator("#summary .unsupported").first.inner_text() == INVENTED
    sentence = page.locator("#summary a.rewritten").first
    assert sentence.inner_text() == SUPPORTED
    assert "Rewritten" in sentence.get_attribute("title")
    sentence.click()
    until(lambda: sentence.get_attribute("aria-current") == "true")
    assert any(cited(page) in page_text.replace("\n", " ") for page_text in PAGES)
    assert re.search(r"page [123]", page.locator("#source-bar .place").inner_text())


def test_each_passage_has_its_page(page):
    rows = page.locator("#tree .row")
    for _ in range(5):
        for twist in page.locator("#tree .row[aria-expanded=false] .twist").all():
            n = rows.count()
            twist.click()
            until(lambda n=n: rows.count() > n)
    numbers = set()
    for words in ("lamp", "forty gulls", "northern window"):
        chunk = page.locator("#tree .row:not([aria-expanded])").filter(has_text=words).first
        chunk.click()
        until(lambda words=words: words in cited(page))
        begins = cited(page)[:20]
        number = next(i for i, text in enumerate(PAGES, 1) if begins in text.replace("\n", " "))
        assert page.locator("#source-bar .place").inner_text() == f"page {number}"
        numbers.add(number)
    assert len(numbers) > 1


def test_an_answer_names_its_page(look, serve, index):
    page = look(serve(index))
    browse(page)
    ask(page, "How many gulls did the keeper count on Tuesday?", Level="0")
    assert "forty gulls" in page.locator("#answer .cards").inner_text()
    page.locator("#answer a.sentence").first.click()
    until(lambda: "forty gulls" in cited(page))
    place = page.locator("#source-bar .place")
    until(lambda: place.inner_text() == "page 1")  # where the quote begins


class Writer(MockLLM):
    """A model that waits after its first words."""

    text: str = "The bridge was closed because its piers had sunk. A dragon ate Harlow's mayor."
    go_on: Any = Field(default_factory=Event)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        said, more = self.text[:10], self.text[10:]
        yield CompletionResponse(text=said, delta=said)
        self.go_on.wait(10)
        yield CompletionResponse(text=self.text, delta=more)


def test_an_answer_is_shown_as_it_is_written_and_then_with_marks_of_support(look, serve, library):
    llm = Writer()
    page = look(serve(library, llm))
    page.fill("#asked", QUESTION)
    page.click("#ask")
    written = page.locator("#answer .written")
    until(lambda: written.inner_text() == llm.text[:10].strip())
    llm.go_on.set()
    until(page.locator("#answer .cards").is_visible)
    assert written.locator("a").first.inner_text() == "[1*]"
    assert "sunk" in page.locator("#answer .cards .text").first.inner_text()
    assert written.locator(".unsupported").inner_text() == "[?]"
    written.locator("a").first.click()
    until(lambda: "Harlow" in cited(page))
    assert violations(page) == []


class Failing(Writer):
    """A model that fails after its first words of the answer to one question."""

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield CompletionResponse(text="The bridge", delta="The bridge")
        if QUESTION in prompt:
            raise RuntimeError("the model is gone")
        yield CompletionResponse(text=self.text, delta=self.text[10:])


def test_an_answer_that_breaks_off_says_so_and_the_next_one_begins_anew(look, serve, library):
    page = look(serve(library, Failing()))
    page.fill("#asked", QUESTION)
    page.click("#ask")
    written = page.locator("#answer .written")
    until(lambda: written.inner_text() == "The bridge … The answer ended early.")
    until(lambda: "the model is gone" in page.locator("#notice").inner_text())
    page.fill("#asked", "Who paid a toll?")
    page.click("#ask")
    until(page.locator("#answer .cards").is_visible)
    assert written.inner_text().startswith("The bridge was closed")
    assert page.locator("#answer h2").inner_text() == "Who paid a toll?"
    assert page.locator("#notice").is_hidden()
