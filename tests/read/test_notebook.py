import json
from io import BytesIO

import pytest

from hierindex.read.markdown import MAX_OUTPUT, read_notebook


def notebook(*cells, **about):
    return json.dumps({"nbformat": 4, "metadata": about, "cells": cells})


def code(source, *outputs):
    return {"cell_type": "code", "source": source, "outputs": outputs}


def read(text):
    return read_notebook(BytesIO(text.encode()))


PYTHON = {"kernelspec": {"language": "python"}}


def test_cells_are_markdown():
    reading = read(
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
    assert reading.text == (
        "# A title\n\nSome *text*.\n\n```python\n# no heading\nx = 1\nx\n```\n\n"
        "```\nsaid\nagain\n```\n\n```\n1\n```\n\nAs it is.\n\n## More"
    )
    assert [(h.level, h.title) for h in reading.headings] == [(1, "A title"), (2, "More")]
    assert [reading.text[h.start :].split()[0] for h in reading.headings] == ["#", "##"]


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
def test_outputs_are_bounded_text(output, text):
    said = read(notebook(code("f()", output))).text.removeprefix("```\nf()\n```")
    assert said == (f"\n\n```\n{text}\n```" if text else "")


@pytest.mark.parametrize(
    ("about", "language"),
    [
        ({"kernelspec": {"name": "ir"}, "language_info": {"name": "R"}}, "R"),
        ({"kernelspec": {"language": "julia"}}, "julia"),
        ({}, ""),
    ],
)
def test_fences_name_the_language(about, language):
    assert read(notebook(code("x"), **about)).text == f"```{language}\nx\n```"


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
def test_what_is_no_notebook_is_read_as_json(text, read_as):
    assert read(text).text == read_as


def test_notebooks_of_version_3_are_read():
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["The pier"]},
        {"cell_type": "code", "input": ["x = 2"], "outputs": [{"text": ["1\n"]}]},
    ]
    reading = read(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}))
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
def test_rich_outputs_are_text(output, text):
    said = read(notebook(code("f()", output), TEXT)).text
    assert said.removeprefix("```\nf()\n```\n\n") == (f"{text}\n\nAfter." if text else "After.")


def test_fences_are_longer_than_those_within():
    assert read(notebook(code("s = '````'"), **PYTHON)).text == "`````python\ns = '````'\n`````"


@pytest.mark.parametrize(
    "cell",
    [
        {"cell_type": "code", "source": "x = 1"},
        {"cell_type": "code", "source": ["x = ", "1"], "outputs": None},
        {"cell_type": "code", "source": "x = 1", "outputs": [{"output_type": "display_data"}]},
        {"source": "```\nx = 1\n```"},
    ],
)
def test_a_cell_that_lacks_something_is_read(cell):
    assert read(notebook(cell, {"cell_type": "code"}, TEXT)).text == "```\nx = 1\n```\n\nAfter."
