"""Tables of HTML: cells under their heads, and rows as lines or records."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby, zip_longest
from operator import and_, or_
from typing import NamedTuple
from xml.etree.ElementTree import Element

from hierindex.read.html_elements import CONTENTS, LINKED, UNSEEN
from hierindex.read.records import records_of_table

MAX_ROW = 4000  # characters; cells of a longer table row are text side by side, not data
MAX_SPAN = 1000  # columns, as browsers have it
MAX_REPEATED = 10_000_000  # characters of a page; more spanned cells are not repeated


class Line(NamedTuple):
    """A block of text, the kinds of its elements, and its level and anchor if it is a heading.

    `region` numbers the page header, footer or aside where it is; 0 if it is in none.
    """

    text: str
    inside: int
    level: int = 0
    anchor: str = ""
    region: int = 0


class Cell(NamedTuple):
    """The text of a cell, how many columns and rows it spans, and whether it is a header."""

    text: str
    n_columns: int
    n_rows: int
    is_header: bool


@dataclass(eq=False)
class Row:
    """A table row: its cells, and where its lines start and end.

    `has_blocks` says whether it has headings, code or tables. `columns` are those of the table, or
    none if the row is no data, such as a title across all of them; such a row has no `text`, and
    keeps its lines.
    """

    start: int
    end: int
    cells: list[Cell] = field(default_factory=list)
    has_blocks: bool = False
    columns: Sequence[str] = ()
    text: str | None = None

    def is_header(self) -> bool:
        """Return whether all cells with text are headers."""
        return all(cell.is_header for cell in self.cells if cell.text)


def span(cell: Element, name: str) -> int:
    """Return how many columns or rows a cell spans."""
    value = cell.get(name, "1").strip()[:6]
    return max(1, min(int(value), MAX_SPAN)) if value.isdecimal() else 1


def table_lines(lines: Sequence[Line], rows: Sequence[Row]) -> list[Line]:
    """Return the lines from the first row on, with one line for each row that has a text."""
    found, at = list[Line](), rows[0].start
    for row in rows:
        found += lines[at : row.start]
        at, own = row.end, lines[row.start : row.end]
        if row.text is None:
            found += own
        elif row.text:
            kinds = [line.inside for line in own]
            of_all = CONTENTS | LINKED | UNSEEN  # a row is a line of links if all its cells are
            inside = reduce(or_, kinds) & ~of_all | reduce(and_, kinds)
            follows = row.text.startswith("\n") and found and found[-1].text.endswith("\n\n")
            text = row.text.lstrip("\n") if follows else row.text
            found.append(Line(text, inside, region=own[0].region))
    return [*found, *lines[at:]]


def set_texts(rows: Sequence[Row], room: int) -> int:
    """Set the columns and texts of rows: each head is one, and the rows of a long table records.

    Parameters
    ----------
    rows : sequence of Row
    room : int
        How many characters of cells may be repeated.

    Returns
    -------
    int
        How many may still be repeated.
    """
    room = _set_columns(rows, room)
    data = [row for row in rows if row.columns]
    for row in data:
        row.text = _joined(row.columns)
    head = list[Row]()
    for is_header, group in groupby(data, key=Row.is_header):
        below = [*group]
        if any(row.has_blocks for row in rows):
            break
        if is_header:
            head = below
        elif head:
            merged = _merged([row.columns for row in head])
            texts = [_joined(merged), *[""] * (len(head) - 1)]
            records = records_of_table([merged, *(row.columns for row in below)], named=True)
            if len(records) == len(below):
                texts = [""] * len(head) + [f"\n\n{text}\n\n" for text in records]  # blank lines
            for row, text in zip([*head, *below], texts, strict=False):
                row.text = text
    return room


def _set_columns(rows: Sequence[Row], room: int) -> int:
    """Set the columns of rows, repeating what spans several of them."""
    above = dict[int, tuple[int, str]]()  # rows and text of what still spans a column
    for row in rows:
        columns, below, cells = list[str](), dict[int, tuple[int, str]](), deque(row.cells)
        n_texts, last = 0, max(above, default=-1)
        while cells or len(columns) <= last:
            at, width = len(columns), 1
            if at in above:
                n_rows, text = above[at]
                room -= len(text) + 3
            elif cells:
                text, width, n_rows, _ = cells.popleft()
                room -= (width - 1) * (len(text) + 3)
            else:
                text, n_rows = "", 1
            n_texts += bool(text)
            columns += [text] * (width if room > 0 else 1)
            if n_rows > 1 and room > 0:
                below |= dict.fromkeys(range(at, len(columns)), (n_rows - 1, text))
        above = below
        while columns and not columns[-1]:
            columns.pop()
        is_group = row.is_header() and "" in columns and any(c.n_columns > 1 for c in row.cells)
        n_characters = sum(len(cell.text) for cell in row.cells)
        if (
            (n_texts > 1 or is_group)
            and n_characters
            and not row.has_blocks
            and n_characters <= MAX_ROW
        ):
            row.columns = columns
    return room


def _merged(heads: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a head as one.

    >>> _merged([["Room", "Rent", "Rent"], ["Room", "Summer", "Winter"]])
    ['Room', 'Rent Summer', 'Rent Winter']
    """
    columns = zip_longest(*heads, fillvalue="")
    return [" ".join(text for text, _ in groupby(filter(None, column))) for column in columns]


def _joined(columns: Sequence[str]) -> str:
    return " | ".join(columns).strip()
