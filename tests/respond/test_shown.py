"""What a person sees of an answer and of what was found: as text, in a notebook, and in short."""

import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest
from clients import llm_of
from llama_index.core.postprocessor import SimilarityPostprocessor
from loopback import LoopbackServer
from pdfs import Typed, typed

from hierindex import Answer, Citation, HierarchicalIndex, Node, Passage, Usage

SCRIPT = "<script>alert('x')</script>"
FILES = {
    "roof.md": "# The roof\n\n## Slates\n\nThe slates were laid by Moreau in 1921.\n",
    "bees.html": f"<title>Bees {SCRIPT}</title><p>The bees gave forty kilograms of honey to "
    "&lt;script&gt;alert('x')&lt;/script&gt; the abbey.</p>",
}
TOWER = "The tower of stone was built in nine years by forty masons of the island,"
BELLS = "and its three bells came by ship from a foundry on the other coast of the sea."
LAMP = "The lamp was lit by Ada Harlow, who was the first keeper of the tower."
PAGES = [Typed(TOWER, 700), Typed(BELLS, 685)], [Typed(LAMP, 700)]
ALL = {"level": 0, "top_k": 50, "synthesizer": {"min_score": 0}}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "lamp.pdf").write_bytes(typed(*PAGES, Title="The lamp of the lighthouse"))
    return HierarchicalIndex.build(folder, folder / "index", chunk_size=40)


def test_the_place_of_a_passage_stands_above_it(index):
    answer = index.ask("Who lit the lamp?", **ALL)
    first = answer.passages[0]
    assert (first.title, first.citation.page) == ("The lamp of the lighthouse", 2)
    assert str(answer).startswith(f"{first.title}, page 2\n{first.text} [1]")
    assert [each.citation for each in answer.passages] == answer.citations
    assert answer.best == first.best != ""
    bold = f"<b>{escape(first.best)}</b>"
    assert bold in answer._repr_html_()


def test_a_response_of_llama_index_has_the_passages_and_prints_the_text(index):
    answer = index.ask("Who lit the lamp?", level=0)
    response = index.as_query_engine(level=0).query("Who lit the lamp?")
    assert str(response) == answer.answer
    assert response.metadata["passages"] == answer.to_json()["passages"] != []
    cutoff = SimilarityPostprocessor(similarity_cutoff=-9)
    again = index.ask("Who lit the lamp?", level=0, node_postprocessors=[cutoff])
    assert again.passages == answer.passages
    assert str(again) == str(answer)


def passage(text, title, lead="", best="", **place):
    citation = {"document": title.lower(), "start": 0, "end": 1, "by": "hierindex", **place}
    return Passage(text, lead, best, title, Citation.from_json(citation))


def answer_of(text, *passages, kind="extractive", **others):
    fixed = {"sources": [], "usage": Usage(), "seconds": {}, "passages": [*passages]}
    fixed["citations"] = [each.citation for each in passages]
    return Answer(text, kind, **{**fixed, **others})


def test_a_document_and_a_section_are_named_once():
    slates = {"section": ["Roof", "Slates"], "page": 3}
    copy = {"document": "copy.md", "start": 0, "end": 1, "section": ["Old roof"]}
    answer = answer_of(
        "Only other documents have:\n\n"
        "Laid in\n1921. [1]\n\n| year | cost |\n| 1922 | 9 [2] |\n\nGutters. [2]\n\n"
        "Of Wales. [3]\n\nTin. [4]\n\nBees. [5]\n\nOf slates. [6]\n\n"
        "Of Spain. [7]\n\n2 documents have the word.",
        passage("Laid in\n1921.", "Roof", **slates),
        passage("| 1922 | 9 [2] |\n\nGutters.", "Roof", "| year | cost |", **slates),
        passage("Of Wales.", "Roof", page=4),
        passage("Tin.", "Roof", section=["Tin"], page=4),
        passage("Bees.", "Bees", page=1, page_label="i", also=[copy, copy]),
        passage("Of slates.", "Roof", **slates),
        passage("Of Spain.", "Roof", **slates | {"page": 5}),
    )
    assert str(answer).split("\n\n") == [
        "Only other documents have:",
        "Roof › Slates, page 3\nLaid in\n1921. [1]",
        "| year | cost |\n| 1922 | 9 [2] |",
        "Gutters. [2]",
        "page 4\nOf Wales. [3]",
        "› Tin, page 4\nTin. [4]",
        "Bees, page i (1); also in copy.md › Old roof and 1 more\nBees. [5]",
        "Roof › Slates, page 3\nOf slates. [6]",
        "page 5\nOf Spain. [7]",
        "2 documents have the word.",
    ]


def test_the_words_that_match_best_are_in_bold_type():
    first = passage(
        "It rained. The slates\nheld & shone. It rained.", "Roof", best="slates\nheld &"
    )
    answer = answer_of(f"{first.text} [1]", first, best=first.best)
    assert "It rained. The <b>slates held &amp;</b> shone." in answer._repr_html_()


def test_an_overview_has_its_places_below():
    lines = "Weather (50%): It rained. [1]\n\nRoof [2]\n\nand 1 more part (9%)"
    weather = passage("It rained.", "Notes", "Weather (50%):", section=["May"])
    answer = answer_of(lines, weather, passage("", "Roof", "Roof", page=2), best="It rained.")
    assert str(answer) == f"{lines}\n\n[1] Notes › May\n[2] Roof, page 2"
    assert "<b>It rained.</b>" in answer._repr_html_()


def test_what_is_wrong_with_the_answer_of_a_model_is_said():
    one, two, three = (Citation(name, 0, 1, node="x", by="model") for name in ("a", "b.md", "c"))
    citations = [
        replace(one, title="Notes", supported=True),
        replace(two, anchor="oil", supported=False),
        replace(three, page=3, supported=True, by="hierindex"),
        replace(two, document="", supported=True),
    ]
    text = "Yes [1]. No [2?]. It rained on Monday [3*]. It is so [4]. Nobody knew that [?]."
    others = {"cut_off": True, "unsupported": ["Nobody knew that."]}
    answer = answer_of(text, kind="llm", citations=citations, **others)
    assert str(answer).split("\n\n") == [
        text,
        "The answer is cut off at the model's limit of tokens.",
        "[1] Notes\n[2] b.md#oil, differs from its passage\n[3] c, page 3, found by hierindex\n"
        "[4] unknown location",
        "[?] No passage supports: Nobody knew that.",
    ]


def test_a_refusal_is_one_sentence_and_what_was_not_found(index):
    answer = index.ask("Who sold 1234 bicycles in Xanadu?")
    assert answer.refused
    assert str(answer) == f"{answer.answer}\n\nNot in the passages found: 1234, bicycles, Xanadu"
    assert repr(answer) == f"Answer({answer.answer!r}, refused, score={answer.score:.2f})"


def test_the_answer_of_a_model_has_its_places_below(index):
    def reply(prompt: str) -> str:
        number = re.findall(r"(?m)^\[\d+\]$", prompt.partition("Ada Harlow")[0])[-1]
        return f"{LAMP[:-1]} {number}."

    with LoopbackServer(reply=reply) as server:
        answer = index.ask("Who lit the lamp?", llm=llm_of(server))
    place = "[1] The lamp of the lighthouse, page 2"
    assert str(answer) == f"{LAMP[:-1]} [1].\n\n{place}"
    assert re.fullmatch(r"Answer\('The lamp .*…', 1 passage of 1 document\)", repr(answer))
    assert place in answer._repr_html_()


class Tags(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.text = set[str](), ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


def test_what_documents_say_is_inert_in_a_notebook(index):
    question = "How much honey did the bees give?"
    answer, found = index.ask(question, **ALL), index.as_retriever(level=0).retrieve(question)
    for shown in (answer, found[0]):
        page = Tags(shown._repr_html_())
        assert page.tags <= {"div", "b"}
        assert page.text.count(SCRIPT) == 2  # in the title and in the text
        assert "forty kilograms" in page.text


def test_reprs_are_one_short_line_without_secrets(index):
    found = index.as_retriever(level=0).retrieve("Who lit the lamp?")
    node, place = Node.of(found[0]), "The lamp of the lighthouse, page 2"
    text = "'The lamp was lit by Ada Harlow, who was the first keeper of…'"
    score = f"{found[0].score:.2f}"
    assert repr(found[0]) == f"RetrievedNode(score={score}, level=0, '{place}', {text})"
    assert repr(node) == f"Node({node.id[:12]!r}, level=0, '{place}', {text})"
    answer = index.ask("Who lit the lamp?", **ALL)
    assert re.fullmatch(r"Answer\('The lamp .*…', \d passages? of \d .*=0\.\d\d\)", repr(answer))
    root = index.as_retriever(level="top").retrieve("bees")[0]
    assert "'3 documents'" in repr(root)
    uri = index.store.uri
    assert repr(index.as_retriever()) == f"HierarchyRetriever({uri!r}, mode='auto')"
    top = index.as_retriever(level=["top", 0])
    assert repr(top) == f"HierarchyRetriever({uri!r}, mode='level', level=[0, 'top'])"
    for shown in (answer, *found, root, node, top):
        assert len(repr(shown)) < 250
        assert "\n" not in repr(shown)
