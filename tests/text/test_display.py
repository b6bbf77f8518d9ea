"""Stored text as people read it: what is hidden, what is joined, and what is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.text.display import Mark, displayed, marks_of

SIGNS = st.text(alphabet="ab .\n#*_`[](){}:~<>|=-!t1", max_size=200)


WIDE = "It is an old mill, and similar in this and that way"


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("## On *mills* ##", "On mills"),
        ("## Of C # and F # mills", "Of C # and F # mills"),
        ("See `a < b` and `List<int>`.", "See a < b and List<int>."),
        ("Mills\n=====\n\nThey grind.", "Mills\n\nThey grind."),
        ("See :class:`~wind.Mill` and ``key``.", "See Mill and key."),
        ("See [the mill][m].\n\n[m]: ../mills.md#old", "See the mill.\n\n"),
        ("[Bo]: Yes\n[10:15]: hello\n[x]: 3.5", "[Bo]: Yes\n[10:15]: hello\n[x]: 3.5"),
        (f"> {WIDE}\n> it was *built*.", f"> {WIDE} it was built."),
        ("matrix[i][j], a[k][n+1] = b", "matrix[i][j], a[k][n+1] = b"),
        (
            "It is an old mill, and similar in this way\nto a pump: It turns.",
            "It is an old mill, and similar in this way to a pump: It turns.",
        ),
        ("Read :ref:`the guide <mills>` first.", "Read the guide first."),
        ("Read :ref:`the guide\n    <mills>` first.", "Read the guide first."),
        ("It was found :cite:`Ash.2014` early.", "It was found  early."),
        ("As [t:]Ash.ea.2014` says, it turns.", "As Ash.ea.2014 says, it turns."),
        ("A [page](http://a.b/c_(d)) and ![a sail](s.png).", "A page and a sail."),
        ("It is **not** a _mill_ at all.", "It is not a mill at all."),
        ("They turn 2 * 3 * 4 times, **kwargs and `a*b*c`.", None),
        ("Call __init__ of snake_case_name for $x_1 + x_2$.", None),
        ("```python\nx = *a, *b\n```", "x = *a, *b"),
        ("| *a* | b |\n| 1 | 2 |", "| *a* | b |\n| 1 | 2 |"),
        (
            "The mill stands on a hill above the town that built it,\nThe sails turn.",
            "The mill stands on a hill above the town that built it, The sails turn.",
        ),
        ("Ash Lane 4\nMill Town", "Ash Lane 4\nMill Town"),
    ],
)
def test_a_text_as_it_is_shown(stored, shown) -> None:
    expected = stored.replace("`", "") if shown is None else shown
    assert displayed(stored) == expected


@given(SIGNS)
def test_marks_are_inside_and_in_order_and_invent_nothing(text) -> None:
    marks = marks_of(text)
    assert marks == sorted(marks, key=lambda mark: (mark.start, -mark.end))
    assert all(0 <= mark.start <= mark.end <= len(text) for mark in marks)
    assert {mark.shown for mark in marks} <= {None, "", " "}
    kept = iter(text.replace("\n", " "))
    assert all(character in kept for character in displayed(text).replace("\n", " "))


@given(SIGNS, st.integers(0, 200))
def test_parts_together_are_the_whole(text, at) -> None:
    marks = marks_of(text)
    at = min(at, len(text))
    if not any(mark.start < at < mark.end and mark.shown for mark in marks):
        parts = displayed(text, 0, at, marks) + displayed(text, at, marks=marks)
        assert parts == displayed(text, marks=marks)


def test_styles_tell_code_and_headings() -> None:
    styles = {mark.style for mark in marks_of("# A\n\nThe `key` is **new**.\n\n```sh\nls\n```")}
    assert styles == {"", "heading", "code", "strong", "block"}
    assert Mark(0, 3, style="heading") in marks_of("# A")


MANY = 50_000  # characters
SIGNS_AGAIN = "*", "[", "`", "_", ":a:`", ":a:a", "**a", "[a](", "\n#", "a."
STARTS = "a ", "# a", "`a", "`a <", ":a:`~"


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("again", [*SIGNS_AGAIN, " ", "<"])
def test_signs_that_are_repeated_are_read_once(start, again) -> None:
    """A quadratic function would take minutes."""
    text = f"{start}{again * (MANY // len(again))}b"
    assert displayed(text).endswith("b")
