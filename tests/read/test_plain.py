"""Headings of plain text, of which a wrong one is worse than none."""

import pytest

from hierindex.read.plain import plain_headings

BODY = "\n\n" + "It is told in full.\n" * 9 + "\n"


def text_of(*lines: str, body: str = BODY) -> str:
    return "".join(line + body for line in lines)


@pytest.mark.parametrize(
    ("lines", "levels"),
    [
        (["1. Aims", "2. Means", "3. Ends"], [1, 1, 1]),
        (["0 Aims", "1 Means", "1.1 Tools", "1.2 Costs", "1.2.1 Rent", "2 It"], [1, 1, 2, 2, 3, 1]),
        (["Chapter 1 Aims", "CHAPTER 2: Means", "Chapter 3. Ends"], [1, 1, 1]),
        (["1. Aims", "6 December 1963", "2. Means", "3. Ends"], [1, 1, 1]),
    ],
)
def test_lines_that_count_are_headings(lines, levels):
    text = text_of(*lines)
    found = plain_headings(text)
    assert [heading.level for heading in found] == levels
    for heading in found:
        assert text[heading.start :].startswith(heading.title + "\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        text_of("1. Aims", "2. Means"),
        text_of("3. Aims", "4. Means", "5. Ends"),
        text_of("1. Aims", "3. Means", "5. Ends"),
        text_of("1. Aims", "2. Means", "3. Ends", body="\n\nShort.\n\n"),
        text_of("1. Aims", "2. Means", "3. Ends", body="\n\n") + BODY * 9,
        text_of("1. Aims", "2. Means", "3. Ends", body="\n") + BODY * 9,
        text_of("1. Aims;", "2. Means:", "3. Ends,"),
        text_of(*(f"{i}. The keeper of the light wrote to her on day one of it." for i in "123")),
        text_of("1. 100", "2. 200", "3. 300"),
        text_of("VIEW FROM THE TOWER", "COMMISSION EXHIBIT", "FLOOR PLAN"),
        text_of("Ada: Yes.", "Bo: No.", "Ada: One."),
        text_of("  1. Aims", "  2. Means", "  3. Ends"),
    ],
)
def test_where_it_is_not_sure_there_are_none(text):
    assert plain_headings(text) == []
