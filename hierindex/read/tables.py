"""Tables: cells below their headers, and rows as lines, Markdown or records."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby, pairwise, zip_longest
from operator import and_, or_
from typing import Any, NamedTuple

from hierindex.read.html_elements import CONTENTS, LINKED, UNSEEN, Line
from hierindex.read.marks import whole
from hierindex.read.records import NAME, as_block, records_of_table

MAX_REPEATED = 100  # characters; a longer text of merged cells is written once
MOST_HEADS = 4  # rows
LONGEST_HEAD = 60  # characters, below another head

Row = Sequence[str]
MAX_ROW = 4000  # characters; cells of a longer table row are text side by side, not data
MAX_SPAN = 1000  # columns, as browsers have it
MAX_SPANNED = 10_000_000  # characters of a page; more spanned cells are not repeated


class Merged(str):
    """The text of merged cells; the same object stands in each of their positions in a table."""


def repeated(text: str) -> str:
    """Return the text of merged cells for all but the first of their positions."""
    return text if len(text) <= MAX_REPEATED else ""


def merge(rows: list[list[str]], top: int, left: int, bottom: int, right: int) -> None:
    """Copy the text of merged cells to each of their positions."""
    cell = Merged(rows[top][left])
    for row in rows[top:bottom]:
        row.extend([""] * (right - len(row)))
        row[left:right] = [repeated(cell)] * (right - left)
    rows[top][left] = cell


def table_blocks(rows: Sequence[Row], n_named: int = 0) -> Iterator[str]:
    """Yield the titles above a table, then the table as Markdown or, if it is long, as records.

    Parameters
    ----------
    rows : sequence of sequences of str
        Merged cells have a `Merged` in each of their positions.
    n_named : int
        Number of rows known to be headers; there may be more, see `n_heads`.
    """
    rows = _without_copies([row for row in rows if any(row)])
    while rows and (title := title_in(rows[0])):
        yield title
        rows, n_named = rows[1:], n_named - 1
    if rows:
        n = n_heads(rows, n_named)
        yield markdown_table([_head(rows[:n]), *map(_values, rows[n:])])


def _without_copies(rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows without the columns in which each row continues the cell to the left."""
    pairs = (enumerate(pairwise(["", *row])) for row in rows)
    kept = {i for row in pairs for i, (left, cell) in row if not _is_same(left, cell)}
    return [[cell for i, cell in enumerate(row) if i in kept] for row in rows]


def title_in(row: Row) -> str:
    """Return the only text of a row, or "" if it has several."""
    first, *more = [*filter(None, row)] or [""]
    return first if all(_is_same(cell, first) for cell in more) else ""


def _is_same(cell: str, other: str) -> bool:
    """Return whether two positions of a table belong to the same merged cell."""
    return cell is other and isinstance(cell, Merged)


def markdown_table(rows: Sequence[Row]) -> str:
    """Return a table as Markdown without empty columns, or as records if it is long.

    The first row is its header.
    """
    columns = sorted({i for row in rows for i, cell in enumerate(row) if cell})
    cells = [[" ".join("".join(row[i : i + 1]).split()) for i in columns] for row in rows]
    if records := records_of_table(cells):
        return as_block(records)
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]
    return "\n".join([lines[0], f"|{' --- |' * len(columns)}", *lines[1:]])


def n_heads(rows: Sequence[Row], n_named: int = 0) -> int:
    """Return the number of header rows: one, plus the known ones and those that subdivide it."""
    n = 1
    while n < min(MOST_HEADS, len(rows) - 1) and are_names(rows[n]):
        is_short = all(len(name) <= LONGEST_HEAD for name in rows[n])
        if n >= n_named and not (is_short and _divides(rows[n], rows[n - 1])):
            break
        n += 1
    return n


def are_names(row: Row) -> bool:
    """Return whether all texts of a row can be column names."""
    return all(NAME.fullmatch(cell) for cell in row if cell)


def _divides(row: Row, above: Row) -> bool:
    """Return whether a row divides the wide headers above it, and only these."""
    widths = Counter(id(head) for head in above if isinstance(head, Merged))
    pairs = [*zip(above, row, strict=False)]
    divided = {cell for head, cell in pairs if widths[id(head)] > 1}
    beside = [(head, cell) for head, cell in pairs if widths[id(head)] < 2 and head and cell]
    return len(divided) > 1 and all(_is_same(head, cell) for head, cell in beside)


def _head(rows: Sequence[Row], between: str = " / ") -> list[str]:
    """Return the names of columns, each joined from all header rows."""
    columns = zip_longest(*rows, fillvalue="")
    return [between.join(dict.fromkeys(filter(None, column))) for column in columns]


def _values(row: Row) -> Row:
    """Return the texts of a row, or a single one if one cell is as wide as the table."""
    if isinstance(row[0], Merged) and (title := title_in(row)):
        return [title]
    return row


class Cell(NamedTuple):
    """The text of a cell, how many columns and rows it spans, and whether it is a header."""

    text: str
    n_columns: int
    n_rows: int
    is_header: bool


@dataclass(eq=False)
class HtmlRow:
    """A table row: its cells, and where its lines start and end.

    `has_blocks` tells whether it contains headings, code or tables. `columns` are those of the
    table; they are empty if the row is not data, such as a title across all columns. Such a row has
    no `text` and keeps its lines.
    """

    start: int
    end: int
    cells: list[Cell] = field(default_factory=list)
    has_blocks: bool = False
    columns: Sequence[str] = ()
    text: str | None = None

    def add(self, cell: Any, text: str, *, is_header: bool) -> None:
        """Add a cell with a text."""
        n_columns, n_rows = (
            max(1, min(whole(cell.get(name), 1), MAX_SPAN)) for name in ("colspan", "rowspan")
        )
        self.cells.append(Cell(text, n_columns, n_rows, is_header))

    def is_header(self) -> bool:
        """Return whether all non-empty cells are headers."""
        return all(cell.is_header for cell in self.cells if cell.text)


def table_lines(
    lines: Sequence[Line], rows: Sequence[HtmlRow], room: int
) -> tuple[list[Line], int]:
    """Return the lines from the first row on; rows of data become one line, or a record, each.

    Parameters
    ----------
    lines : sequence of Line
    rows : sequence of HtmlRow
    room : int
        Maximum number of characters that repeating cells of several columns or rows may add.

    Returns
    -------
    list[Line]
    int
        The number of these characters that are left.
    """
    room = _set_columns(rows, room)
    _set_texts(rows)
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
    return [*found, *lines[at:]], room


def _set_texts(rows: Sequence[HtmlRow]) -> None:
    """Set the texts of rows; the rows of a long table become records."""
    data, head = [row for row in rows if row.columns], list[HtmlRow]()
    for row in data:
        row.text = _joined(row.columns)
    if any(row.has_blocks for row in rows):
        return
    for is_header, group in groupby(data, key=HtmlRow.is_header):
        below = [*group]
        if is_header:
            head = below
        elif head:
            merged = _head([row.columns for row in head], " ")
            texts = [_joined(merged), *[""] * (len(head) - 1)]
            records = records_of_table([merged, *(row.columns for row in below)], named=True)
            if len(records) == len(below):
                texts = [""] * len(head) + [f"\n\n{text}\n\n" for text in records]  # blank lines
            for row, text in zip([*head, *below], texts, strict=False):
                row.text = text


def _set_columns(rows: Sequence[HtmlRow], room: int) -> int:
    """Set the columns of rows, repeating cells that span several columns."""
    grid = [dict[int, str]() for _ in rows]  # texts by column
    for i, row in enumerate(rows):
        at, n_texts = 0, len([*filter(None, grid[i].values())])
        for cell in row.cells:
            while at in grid[i]:
                at += 1
            n_columns, n_rows = cell.n_columns, min(cell.n_rows, len(rows) - i)
            added = (n_columns * n_rows - 1) * (len(cell.text) + 3) + (n_rows - 1) * at * 3
            if added > room:
                added, n_columns, n_rows = 0, 1, 1
            room -= added
            for spanned in grid[i : i + n_rows]:
                spanned |= dict.fromkeys(range(at, at + n_columns), cell.text)
            n_texts += bool(cell.text)
        columns = [grid[i].get(at, "") for at in range(max(grid[i], default=-1) + 1)]
        while columns and not columns[-1]:
            columns.pop()
        is_group = row.is_header() and "" in columns and any(c.n_columns > 1 for c in row.cells)
        is_data = (n_texts > 1 or is_group) and not row.has_blocks
        if is_data and 0 < sum(len(cell.text) for cell in row.cells) <= MAX_ROW:
            row.columns = columns
    return room


def _joined(columns: Sequence[str]) -> str:
    return " | ".join(columns).strip()
