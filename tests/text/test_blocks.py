"""Blocks: each part of a text with what it is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import chunks_of

from hierindex import Node, read_documents, sentence_splitter
from hierindex.text.blocks import blocks_of, split_blocks

PIECES = (
    "# The pier\n",
    "The pier was closed.\n",
    "- a rope\n",
    "| rope | 12 |\n",
    "> He wrote it.\n",
    "```py\nx = 1\n",
    "```\n",
    "\n",
    "\f",
    "---\n",
    "Figure 1: The pier\n",
    "[^1]: A note.\n",
    "Notes ........ 12\n",
    "雪が降った。\n",
)


def kinds_of(text: str) -> list[tuple[str, str]]:
    return [(text[block.start : block.end], block.kind) for block in split_blocks(text)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("heading", "## The pier"),
        ("heading", "The pier\n========"),
        ("paragraph", "The pier was closed in May,\nand the ferry too."),
        ("paragraph", "Figure 2 shows the pier."),
        ("paragraph", "A. Smith wrote the report."),
        ("paragraph", "The keeper: it is closed."),
        ("item", "- a rope\n  of hemp"),
        ("item", "12. a rope"),
        ("item", "● a rope"),
        ("item", "(b) a rope"),
        ("row", "| rope | 12 |"),
        ("row", "rope\t12"),
        ("record", "Rope: hemp; Length: 12 m; Price: 4.50"),
        ("record", "rope: hemp; price: 4.50"),
        ("paragraph", "The rope: it was wet; it was heavy."),
        ("paragraph", "He said: go at once; she said: never again."),
        ("paragraph", "It cost " + "." * 20_000),
        ("code", "```py\nx = f(1)\n```"),
        ("code", "x = f(1)\ny = g(x)"),
        ("quotation", "> The pier\n> is closed."),
        ("caption", "Figure 3: The pier from the north"),
        ("caption", "**Table A.2.** Ropes by length"),
        ("caption", "Abbildung 4: Der Pier"),
        ("footnote", "[^2]: See the log of 1911."),
        ("contents", "1 The pier ............ 4\n2 The ferry ........... xii"),
        ("front matter", "---\ntitle: The pier\ntags: [rope]\n---"),
        ("front matter", '---\n# Of the pier\n"the title": Pier\n\ntags:\n- rope\n\n---'),
        ("front matter", '+++\ntitle = "The pier"\n\n[about]\ntags = ["rope"]\n+++'),
        ("furniture", "* * *"),
        ("furniture", "Page 3 of 12"),
    ],
)
def test_a_block_has_a_kind(kind: str, text: str) -> None:
    assert kinds_of(text) == [(text, kind)]


def test_text_between_rules_is_no_front_matter() -> None:
    for text in (
        "---\n\n# Ropes\n\n- hemp\n\n---",
        "---\nHemp is old.\n\nWire: new.\n---",
        "+++\na\n---",
    ):
        assert "front matter" not in dict(map(reversed, kinds_of(text)))


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_blocks_are_all_that_is_not_blank(text: str) -> None:
    end = 0
    for block in split_blocks(text):
        assert not text[end : block.start].strip()
        assert text[block.start : block.end].strip()
        end = block.end
    assert not text[end:].strip()


def test_sections_tell_what_stands_below_them(tmp_path: Path) -> None:
    page = """<h1>Ropes</h1><p>Hemp is older than wire, and it is heavier when it is wet.</p>
        <h2>References</h2><p>Ash, J. (1911). The rope walk. Harbour Press.</p><ul>
        <li>Elm, K. (1920). Wire. Harbour Press.</li></ul>"""
    (tmp_path / "ropes.html").write_text(page)
    documents, _ = read_documents(tmp_path)
    found = [
        (chunk.text[block.start : block.end], block.kind)
        for chunk in chunks_of(documents, sentence_splitter())
        for block in blocks_of(chunk)
    ]
    assert [kind for _, kind in found] == ["heading", "paragraph", "heading", "reference"]
    assert "The rope walk" in found[3][0]


def test_chapters_below_contents_are_text(tmp_path: Path) -> None:
    page = """<h1>House rules</h1><h2>Contents</h2><ul><li>Wheels</li></ul>
        <h3>Wheels</h3><p>Bicycles with wet wheels stay in the yard.</p>"""
    (tmp_path / "rules.html").write_text(page)
    documents, _ = read_documents(tmp_path)
    kinds = {
        chunk.text[block.start : block.end].strip("- "): block.kind
        for chunk in chunks_of(documents, sentence_splitter())
        for block in blocks_of(chunk)
        if block.kind != "heading"
    }
    assert kinds == {
        "Wheels": "contents",
        "Bicycles with wet wheels stay in the yard.": "paragraph",
    }


def test_titles_without_text_of_their_own_are_headings(tmp_path: Path) -> None:
    page = "<h1>Ropes</h1><h2>1 Aims of all</h2><h3>1.1 Hemp</h3><p>It is older than wire.</p>"
    (tmp_path / "ropes.html").write_text(page)
    documents, _ = read_documents(tmp_path)
    (chunk,) = chunks_of(documents, sentence_splitter())
    found = [(chunk.text[block.start : block.end], block.kind) for block in blocks_of(chunk)]
    headings = [(title, "heading") for title in ("Ropes", "1 Aims of all", "1.1 Hemp")]
    assert found == [*headings, ("It is older than wire.", "paragraph")]


def test_the_title_of_a_section_is_a_heading_without_marks(tmp_path: Path) -> None:
    below = "The rope was wet, and so it was heavy.\n" * 12
    (tmp_path / "ropes.txt").write_text("\n".join(f"{i}. Part\n\n{below}" for i in (1, 2, 3)))
    documents, _ = read_documents(tmp_path)
    chunks = chunks_of(documents, sentence_splitter())
    found = [
        chunk.text[block.start : block.end]
        for chunk in chunks
        for block in blocks_of(chunk)
        if block.kind == "heading"
    ]
    assert found == ["1. Part", "2. Part", "3. Part"]


def test_what_a_reply_quotes_is_apart_from_the_reply() -> None:
    text = "Ada wrote:\n> Is the pier\n> closed?\nIt is, since May."
    found = [(text[at:to], kind) for at, to, kind in split_blocks(text)]
    assert found == [
        ("Ada wrote:", "paragraph"),
        ("> Is the pier\n> closed?", "quotation"),
        ("It is, since May.", "paragraph"),
    ]


@pytest.mark.parametrize("text", ["> It is closed\nsince May.", "Each gap must be\n> 5 mm wide."])
def test_a_line_with_that_sign_may_go_on(text: str) -> None:
    assert [block.end for block in split_blocks(text)] == [len(text)]


def test_a_node_without_places_has_blocks() -> None:
    node = Node("a", "- a rope\n\nIt is wet.")
    assert [block.kind for block in blocks_of(node)] == ["item", "paragraph"]
