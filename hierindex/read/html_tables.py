"""Tables of HTML: cells under their heads, and rows as lines or records."""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import groupby, pairwise, zip_longest
from operator import and_, or_
from typing import NamedTuple

from hierindex.read.html_elements import CONTENTS, FOLDED, LINKED
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


class Row:
    """A table row while it is read: its first line, and the end and the spans of each cell."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.ends: list[int] = []
        self.spans: list[tuple[int, int]] = []  # columns and rows of each cell
        self.has_blocks = False  # headings, code or tables
        self.is_header = True  # all cells with text are `th`, or in `thead`
        self.cells: list[str] = []  # by column, if it is a line

    def open_cell(self, attributes: Mapping[str, str]) -> None:
        """Note how many columns and rows a cell has."""
        self.spans.append((_span(attributes, "colspan"), _span(attributes, "rowspan")))

    def close_cell(self, end: int, *, is_header: bool) -> None:
        """Note that a cell ends before a line."""
        start = self.ends[-1] if self.ends else self.start
        self.is_header &= is_header or start == end
        self.ends.append(end)


def _span(attributes: Mapping[str, str], name: str) -> int:
    value = attributes.get(name, "1").strip()[:6]
    return max(1, min(int(value), MAX_SPAN)) if value.isdecimal() else 1


class Table:
    """A table while it is read."""

    def __init__(self, room: int) -> None:
        self.rows: list[Row] = []
        self.room = room  # characters of cells that may still be repeated
        self._below: dict[int, tuple[int, str]] = {}  # rows and text of a column's spanning cell

    def lines_of(self, row: Row, lines: list[Line]) -> list[Line]:
        """Add a row that has ended; return it as one line, or its lines if it is no data."""
        self.rows.append(row)
        bounds, found = [row.start, *row.ends], lines[row.start :]
        own = [" ".join(line.text for line in lines[i:j]) for i, j in pairwise(bounds)]
        if row.has_blocks or sum(map(len, own)) > MAX_ROW:
            return found
        n_texts = sum(map(bool, own)) + sum(bool(text) for _, text in self._below.values())
        cells = self._expanded(own, row.spans)
        while cells and not cells[-1]:
            cells.pop()
        is_group = row.is_header and "" in cells and max(columns for columns, _ in row.spans) > 1
        if not found or (n_texts < 2 and not is_group):  # also a title across all columns
            return found
        row.cells = cells
        kinds = [line.inside for line in found]
        of_all = CONTENTS | LINKED | FOLDED  # a row is a line of links if all its cells are
        inside = reduce(or_, kinds) & ~of_all | reduce(and_, kinds)
        return [Line(_joined(cells), inside, region=found[0].region)]

    def _expanded(self, own: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[str]:
        """Return the text of each column, repeated where a cell spans several columns or rows."""
        cells, above, self._below = list[str](), self._below, {}

        def add(text: str, rows: int) -> None:
            if rows and self.room > 0:
                self._below[len(cells)] = rows, text
            cells.append(text)

        def add_above() -> None:
            while (column := len(cells)) in above:
                rows, text = above.pop(column)
                self.room -= len(text) + 3
                add(text, rows - 1)

        for text, (columns, rows) in zip(own, spans, strict=True):
            add_above()
            columns = columns if self.room > 0 else 1
            self.room -= (columns - 1) * (len(text) + 3)
            for _ in range(columns):
                add(text, rows - 1)
        for column in sorted(above):  # of rows that are longer
            cells.extend([""] * (column - len(cells)))
            add_above()
        return cells

    def finished(self, lines: list[Line]) -> list[Line]:
        """Return the lines from the first row on, each head as one line; or records with heads.

        Rows that are no data, such as a title across all columns, keep their lines.
        """
        start = self.rows[0].start if self.rows else len(lines)
        places, records = self._replaced()
        texts = [(i, places.get(i, line.text)) for i, line in enumerate(lines[start:], start)]
        kept = [(i, text) for i, text in texts if text is not None]
        found = []
        for (i, text), (after, _) in pairwise([*kept, (-1, "")]):
            if i in records:  # blank lines around it
                text = f"\n\n{text}" + ("" if after in records else "\n\n")
            found.append(lines[i]._replace(text=text))
        return found

    def _replaced(self) -> tuple[dict[int, str | None], set[int]]:
        """Return new texts of lines, None for a line that others contain; and which are records."""
        places, found, heads = dict[int, str | None](), set[int](), list[Row]()
        data = [row for row in self.rows if row.cells]
        if any(row.has_blocks for row in self.rows):
            return places, found
        for is_header, group in groupby(data, key=lambda row: row.is_header):
            rows = [*group]
            if is_header:
                heads = rows
            elif heads:
                head = _merged([row.cells for row in heads])
                records = records_of_table([head, *(row.cells for row in rows)], named=True)
                places |= dict.fromkeys(row.start for row in heads)
                if len(records) == len(rows):
                    places |= {row.start: said for row, said in zip(rows, records, strict=True)}
                    found |= {row.start for row in rows}
                else:
                    places[heads[0].start] = _joined(head)
        return places, found


def _merged(heads: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a head as one.

    >>> _merged([["Room", "Rent", "Rent"], ["Room", "Summer", "Winter"]])
    ['Room', 'Rent Summer', 'Rent Winter']
    """
    columns = zip_longest(*heads, fillvalue="")
    return [" ".join(text for text, _ in groupby(filter(None, column))) for column in columns]


def _joined(cells: Sequence[str]) -> str:
    return " | ".join(cells).strip()
