"""Superscripts, notes and merged cells of books."""

import pytest
from office_files import epub


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>10<sup>6</sup> cells", "10^6 cells"),
        ("<p>the XX<sup>e</sup> and the 1<sup>st</sup>", "the XXe and the 1st"),
        ("<p>H<sub>2</sub>O and 101<sub>2</sub>", "H2O and 101_2"),
        ("<p>In 1990<sup><a href='#n2'>2</a></sup>.", "In 1990[2]."),
        ("<p>In 1990<a href='b.html#n2'><sup>2</sup></a>.", "In 1990[2]."),
        ("<p>In 1990.<a href='#n2'>2</a>", "In 1990.[2]"),
        ("<p>See <a href='#s2'>section 2</a>.", "See section 2."),
        ("<p>A note.<a href='#r1'>\u21a9\ufe0e</a>", "A note."),
        ("<p>Pay <del>40</del>50 or <s>3</s>4.", "Pay 50 or 4."),
    ],
)
def test_marks_in_books(read_one, html, text):
    assert read_one("a.epub", epub({"a.html": html})).text == text


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        (
            "<tr><th>Room<th>Floor<th>Rent<tr><td>A<td rowspan=2>First<td>100<tr><td>B<td>120",
            ["| Room | Floor | Rent |", "| A | First | 100 |", "| B | First | 120 |"],
        ),
        (
            "<tr><th>Room<th colspan=2>Rent<tr><td>A<td>1<td>2",
            ["| Room | Rent | Rent |", "| A | 1 | 2 |"],
        ),
        (
            "<tr><th>Room<th>Rent<tr><td>A<td rowspan=2>1<tr><td>B",
            ["| Room | Rent |", "| A | 1 |", "| B | 1 |"],
        ),
        (
            "<tr><th>a<th>b<tr><td rowspan=99999 colspan=0>A<td colspan=x>1",
            ["| a | b |", "| A | 1 |"],
        ),
    ],
    ids="rows columns last odd".split(),
)
def test_merged_cells_of_books_are_expanded(read_one, rows, lines):
    text = read_one("a.epub", epub({"a.html": f"<table>{rows}</table>"})).text.split("\n")
    assert [text[0], *text[2:]] == lines


def test_merged_cells_of_hostile_books_do_not_grow(read_one):
    rows = f"<tr>{'<td rowspan=1000 colspan=1000>x' * 30}" * 300
    assert len(read_one("a.epub", epub({"a.html": f"<table>{rows}</table>"})).text) < 10**6
