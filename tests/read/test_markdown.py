"""Headings, front matter and tables of Markdown; cells of notebooks as Markdown."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from read.conftest import BETWEEN, headings

from hierindex.node import HEADINGS, LEFT_OUT

MAX_OUTPUT = 1000  # characters


@pytest.fixture(scope="session")
def read(read_one):
    return lambda text: read_one("a.md", text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# A\n\n###### B ##\n", [(1, "A", "# A"), (6, "B", "###### B ##")]),
        ("A\n===\n\nB\n---\n", [(1, "A", "A"), (2, "B", "B")]),
        ("Text.\n   ## A", [(2, "A", "## A")]),
        ("one\ntwo\n---", [(2, "one two", "one")]),
        (
            "# The *first* `x_y` [link](u) ![alt](i) &amp; \\*\n",
            [(1, "The first x_y link & *", ...)],
        ),
        ("# ![The logo](i)\n", [(1, "The logo", "# ![The logo](i)")]),
        ("# The set {a, b}\n", [(1, "The set {a, b}", "# The set {a, b}")]),
        ("# Named {#anchor .kind}\n", [(1, "Named", "# Named {#anchor .kind}")]),
        ("# <a id='x'></a>A  B\n", [(1, "A B", "# <a id='x'></a>A  B")]),
        ("#hashtag\n####### seven\n#\n    # code\n", []),
        ("```sh\n# comment\n```\n~~~\n# comment\n", []),
        ("<div>\n# in HTML\n</div>\n\n<!--\n# gone\n-->\n", []),
        ("> # quoted\n\n- # listed\n", []),
        ("Text\n\n---\n\n| a |\n|---|\n| b |\n", []),
        ("---\ntitle: x\n---\n# A\n", [(1, "A", "# A")]),
    ],
)
def test_headings_are_those_of_commonmark(read, text, found):
    made = headings(read(text))
    assert [m[:2] for m in made] == [f[:2] for f in found]
    assert all(f[2] in (..., m[2]) for m, f in zip(made, found, strict=True))


LINES = st.sampled_from("# A|## B *b*|C|===|---||```|  ### D|- x|> q|    e|<p>|\tF".split("|"))


@given(st.lists(LINES, max_size=12).map("\n".join).filter(str.strip))
def test_headings_are_those_that_would_be_rendered(read, text):
    tokens = MarkdownIt("commonmark").parse(text)
    rendered = [
        (int(token.tag[1:]), "".join(child.content or " " for child in tokens[i + 1].children))
        for i, token in enumerate(tokens)
        if token.type == "heading_open" and not token.level
    ]
    document = read(text)
    found = headings(document)
    assert [(level, title) for level, title, _ in found] == [
        (level, " ".join(title.split())) for level, title in rendered if title.strip()
    ]
    starts = [heading[2] for heading in document.metadata.get(HEADINGS, [])]
    assert starts == sorted(set(starts))
    assert all(line == line.lstrip() != "" for _, _, line in found)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("---\ntitle: The log\nyear: 1901\n---\n", {"title": "The log", "year": 1901}),
        ("---\ntags: [sea, 3]\ndraft: true\n...\nText", {"tags": ["sea", 3], "draft": True}),
        ("---\ndate: 1901-02-03\n---\n", {"date": "1901-02-03"}),
        ("---\nat: 1901-02-03 04:05:06\n---\n", {"at": "1901-02-03T04:05:06"}),
        ("---\ntitle: 1901\n---\n", {"title": "1901"}),
        (
            '---\n# Of the log\n"the year": 1901\n\nby:\n- Ash\n\n---\n',
            {"the year": 1901, "by": ["Ash"]},
        ),
        ("---\nnested: {a: 1}\nnone:\nlists: [[1]]\n1: number\n---\n", {}),
        ("---\npage: 3\nsection: A\nheadings: x\nhierindex: {}\nhierindex_level: 1\n---\n", {}),
        (f"---\nlong: {'x' * 1001}\n---\n", {}),
    ],
)
def test_front_matter_is_metadata_and_text(read, text, entries):
    document, others = read(text), read("Text.").metadata.keys()
    assert {k: v for k, v in document.metadata.items() if k not in others} == entries
    assert document.text == text


@pytest.mark.parametrize(
    "text",
    [
        "---\nA title\n---\n",
        "---\n- a\n---\n",
        "---\na: b: c\n---\n",
        "---\na: 2026-99-99\n---\n",
        "---\n" + "[" * 1000 + "\n---\n",
        "--- \nno end: 1\n",
        "\n---\na: 1\n---\n",
        "----\na: 1\n----\n",
        "+++\nno toml\n+++\n",
        "+++\na = 1\n---\n",
        "---\nx: !!python/object/apply:os.system [ls]\n---\n",
    ],
)
def test_other_text_between_rules_is_no_front_matter(read, text):
    document = read(text)
    assert document.text == text
    assert not {"a", "no end", "x"} & document.metadata.keys()


ROWS = [f"| r{i} | It is said that {i} is *so*. |\n" for i in range(60)]
RECORDS = [f"Name: r{i}; Note: It is said that {i} is *so*." for i in range(60)]
TABLE = "| Name | Note |\n|---|:-:|\n" + "".join(ROWS)


@pytest.mark.spread
@pytest.mark.parametrize("before", ["", "Text.\n", "# A\n\n---\n\n", "---\nby: x\n---\n# A\n"])
@pytest.mark.parametrize("after", ["", "\n# B\n", f"\n- x\n\nC\n---\n{TABLE}\n# D\n"])
def test_rows_of_a_long_table_carry_their_header(read, before, after):
    """No chunk ends within them, and the headings are at their places."""
    text = before + TABLE + after
    document = read(text)
    parts = [part.strip("\n") for part in document.text.split(BETWEEN)]
    assert [part for part in parts if part in RECORDS] == RECORDS * text.count(TABLE)
    rest = "\n".join(part for part in parts if part not in RECORDS)
    assert rest.split() == text.replace(TABLE, "").split()
    lines = re.findall(r"(?m)^(?:# )?[A-D]$", text)
    assert [line for _, _, line in headings(document)] == lines


UNCHANGED = {
    "short table": TABLE[:1000],
    "table in code": f"```\n{TABLE}```\n",
    "table in a quotation": "".join(f"> {line}" for line in TABLE.splitlines(keepends=True)),
    "table without a header": TABLE.replace("| Name | Note |", "|  |  |"),
    "uneven table": TABLE.replace("|:-:|", "|:-:|---|"),
    "undivided table": TABLE.replace("|---|:-:|\n", ""),
    "an ellipsis of a picture": "`data:image/png;base64,...`",
    "no URI": "data: a, b",
    "short URI": "The data:x/y,z",
    "URI of a script": f"`import 'data:text/javascript,{'f();' * 20}'`",
    "comment in a fence": "```\n<!-- x -->\n```\n",
    "comment in HTML's code": "<pre>\n<!-- x -->\n</pre>\n",
    "comment in code": "Use `` <!-- a ` b --> `` here.\n",
    "comment after a backtick": "Use ``` `` <!-- a --> ```.\n",
    "comment in code of two lines": "Use `a\nb <!-- c -->`.\n",
    "open comment": "<!-- open\n",
    "open comments": "x <!-- a\n" * 30_000,
    "open tables": "<table>\n\n" * 3000,
    "open tags before the ends of others": "-->" + "<table <pre <script <!-- " * 30_000,
    "open row": "<table><tr><td>x\n\n# B\n",
    "end of a table": "</table>\n",
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_other_text_stays_as_it_is(read, text):
    document = read(text)
    assert document.text == text
    assert LEFT_OUT not in document.metadata


def test_cells_of_a_long_table_are_all_read(read):
    """Also those without a name, and those that hold the mark between cells."""
    rows = ["| a \\| b |", "c | | d", "|| e |\n"]
    text = read(TABLE + "\n".join(rows)).text
    assert text.strip().split(BETWEEN)[60:] == ["Name: a \\| b", "Name: c; d", "Note: e"]


def test_rows_of_a_long_table_are_no_headings(read):
    text = f"# A\n\n{TABLE.replace('Name', '# of items')}\n# B\n"
    assert headings(read(text)) == [(1, "A", "# A"), (1, "B", "# B")]


PICTURE = "data:image/png;base64," + "iVBORw0K" * 200_000
SVG = "data:image/svg+xml;utf8,<svg xmlns='x'>" + "<g/>" * 20 + "</svg>"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"![map]({PICTURE})", "![map]()"),
        (f"![map]({PICTURE} 'Of Lier') here", "![map]( 'Of Lier') here"),
        (f"![map][1]\n\n[1]: {PICTURE}\n\nhere", "![map][1]\n\n[1]: \n\nhere"),
        (f'<img src="{PICTURE}">', '<img src="">'),
        (f'<img src="{SVG}">', '<img src="">'),
        ("<img src='data:image/gif;base64,\nR0lG" + "R0lG\n" * 20 + "'> x", "<img src=''> x"),
        ("![](data:image/svg+xml,%3Csvg%20" + "x" * 40 + ")", "![]()"),
    ],
)
def test_embedded_pictures_are_left_out(read, text, kept):
    document = read(f"# Pier\n\n{text}\n\n## Lier\n")
    assert document.text == f"# Pier\n\n{kept}\n\n## Lier\n"
    assert document.metadata[LEFT_OUT] == ["1 embedded picture"]
    assert document.text[document.metadata[HEADINGS][1][2] :] == "## Lier\n"


def test_comments_are_left_out(read):
    text = (
        "# A\n\n<!-- one\n# x\n-->\n## B\nt <!-- two --> u\n\n- v <!-- three -->\n- `<!-- c -->`\n"
    )
    document = read(text)
    assert document.text == "# A\n\n\n## B\nt  u\n\n- v \n- `<!-- c -->`\n"
    assert document.metadata[LEFT_OUT] == ["3 comments"]
    assert [document.text[h[2] :][:4] for h in document.metadata[HEADINGS]] == ["# A\n", "## B"]


SPANS = "<tr><th>Room<th>Fee<tr><td rowspan=2>A1<td>100{}<tr><td>120"
GRID = "| Room | Fee |\n|---|---|\n| A1 | 100 |\n| A1 | 120 |"


@pytest.mark.parametrize(
    "table",
    [
        f"<table>{SPANS.format('')}</table>",
        f"<table>\n{SPANS.format(chr(10) * 2)}\n\n</table>",
        f"<div><table>\n{SPANS.format('')}</table>\n</div>",
    ],
)
def test_tables_of_html_have_their_grid(read, table):
    text = read(f"Text.\n\n{table}\n\n# B\n").text
    assert GRID in text
    assert text.endswith("# B\n")
    assert "<t" not in text


def test_long_tables_of_html_are_records(read):
    rows = "".join(f"<tr><td>r{i}<td>It is said that {i} is so." for i in range(60))
    document = read(f"# A\n\n<table><tr><th>Name<th>Note{rows}</table>\n\n# B\n")
    records = [f"Name: r{i}; Note: It is said that {i} is so." for i in range(60)]
    assert [part.strip() for part in document.text.split(BETWEEN)] == ["# A", *records, "# B"]


def test_front_matter_may_be_toml(read):
    document = read('+++\ntitle = "The log"\ndate = 1901-02-03\npage = 1\n+++\n# One\n')
    assert (document.metadata["title"], document.metadata["date"]) == ("The log", "1901-02-03")
    assert "page" not in document.metadata
    assert [heading[1] for heading in document.metadata[HEADINGS]] == ["One"]


def notebook(*cells, **about):
    return json.dumps({"nbformat": 4, "metadata": about, "cells": cells})


def code(source, *outputs):
    return {"cell_type": "code", "source": source, "outputs": outputs}


@pytest.fixture
def cells_of(read_one):
    return lambda text: read_one("a.ipynb", text)


PYTHON = {"kernelspec": {"language": "python"}}


def test_cells_are_markdown(cells_of):
    document = cells_of(
        notebook(
            {"cell_type": "markdown", "source": ["# A title\n", "\n", "Some *text*.\n"]},
            code(
                ["# no heading\n", "x = 1\n", "x"],
                {"output_type": "stream", "text": ["said\n", "again\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "1", "text/html": "<b>"}},
            ),
            code("  \n"),
            {"cell_type": "raw", "source": "As it is."},
            {"cell_type": "markdown", "source": "## More"},
            **PYTHON,
        )
    )
    assert document.text == (
        "# A title\n\nSome *text*.\n\n```python\n# no heading\nx = 1\nx\n```\n\n"
        "```\nsaid\nagain\n```\n\n```\n1\n```\n\nAs it is.\n\n## More"
    )
    assert headings(document) == [(1, "A title", "# A title"), (2, "More", "## More")]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            {
                "output_type": "display_data",
                "data": {"image/png": "iVBO", "text/plain": "<Figure>"},
            },
            "",
        ),
        ({"output_type": "display_data", "data": {"text/html": "<b>x</b>"}}, "x"),
        ({"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["long"]}, ""),
        ({"output_type": "stream", "text": "\x1b[31mred\x1b[0m\n"}, "red"),
        ({"output_type": "stream", "text": " 1%\r50%\r100%\nend"}, "100%\nend"),
        (
            {"output_type": "stream", "text": "line\n" * 1000},
            "line\n" * (MAX_OUTPUT // 5 - 1) + "line\n...",
        ),
        ({"output_type": "stream", "text": "x" * 5000}, "x" * MAX_OUTPUT + "\n..."),
    ],
    ids="picture html error colours progress lines line".split(),
)
def test_outputs_are_bounded_text(cells_of, output, text):
    said = cells_of(notebook(code("f()", output))).text.removeprefix("```\nf()\n```")
    assert said == (f"\n\n```\n{text}\n```" if text else "")


@pytest.mark.parametrize(
    ("about", "language"),
    [
        ({"kernelspec": {"name": "ir"}, "language_info": {"name": "R"}}, "R"),
        ({"kernelspec": {"language": "julia"}}, "julia"),
        ({}, ""),
    ],
)
def test_fences_name_the_language(cells_of, about, language):
    assert cells_of(notebook(code("x"), **about)).text == f"```{language}\nx\n```"


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ('{"a": 1}', "a: 1"),
        ('{"cells": [{"row": 1}, {"row": 2}]}', "cells.row: 1; cells.row: 2"),
        ('{"cells": [{"cell_type": "code"}], "metadata": {}}', "cells.cell_type: code"),
        ("[1]", "1"),
        ("no json", "no json"),
    ],
)
def test_what_is_no_notebook_is_read_as_json(cells_of, text, read_as):
    assert cells_of(text).text == read_as


def test_notebooks_of_version_3_are_read(cells_of):
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["The pier"]},
        {"cell_type": "code", "input": ["x = 2"], "outputs": [{"text": ["1\n"]}]},
    ]
    reading = cells_of(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}))
    assert reading.text == "## The pier\n\n```\nx = 2\n```\n\n```\n1\n```"


TEXT = {"cell_type": "markdown", "source": "After."}


def shown(**data):
    return {
        "output_type": "display_data",
        "data": {k.replace("_", "/"): v for k, v in data.items()},
    }


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            shown(text_markdown=["# Result\n", "**3** boats"], text_plain="<x>"),
            "# Result\n**3** boats",
        ),
        (
            shown(
                text_html="<table><tr><td>Oslo<td>3</table>",
                text_plain="<IPython.core.display.HTML object>",
            ),
            "```\nOslo | 3\n```",
        ),
        (
            shown(text_html=["<p>a", "<p>b"], text_plain="<pandas.io.Styler at 0x7fab>"),
            "```\na\nb\n```",
        ),
        (shown(text_html="<table>...", text_plain="   x\n0  1"), "```\n   x\n0  1\n```"),
        (shown(application_json={"a": 1}, text_plain="<IPython.core.display.JSON object>"), ""),
        (shown(text_plain="<made by me>"), "```\n<made by me>\n```"),
    ],
)
def test_rich_outputs_are_text(cells_of, output, text):
    said = cells_of(notebook(code("f()", output), TEXT)).text
    assert said.removeprefix("```\nf()\n```\n\n") == (f"{text}\n\nAfter." if text else "After.")


def test_fences_are_longer_than_those_within(cells_of):
    assert cells_of(notebook(code("s = '````'"), **PYTHON)).text == "`````python\ns = '````'\n`````"


@pytest.mark.parametrize(
    "cell",
    [
        {"cell_type": "code", "source": "x = 1"},
        {"cell_type": "code", "source": ["x = ", "1"], "outputs": None},
        {"cell_type": "code", "source": "x = 1", "outputs": [{"output_type": "display_data"}]},
        {"source": "```\nx = 1\n```"},
    ],
)
def test_a_cell_that_lacks_something_is_read(cells_of, cell):
    assert cells_of(notebook(cell, {"cell_type": "code"}, TEXT)).text == "```\nx = 1\n```\n\nAfter."
