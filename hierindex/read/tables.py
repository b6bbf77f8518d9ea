"""Tables: cells below their headers, and rows as lines, Markdown or records."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from typing import NamedTuple
from xml.etree.ElementTree import Element

from hierindex.read.html_elements import CHROME, CONTENTS, LINKED, PRE, UNSEEN, Line
from hierindex.read.records import NAME, as_block, records_of_table

MAX_REPEATED = 100  # characters; a longer text of merged cells is written once
MOST_HEADS = 4  # rows
LONGEST_HEAD = 60  # characters, below another head

Row = Sequence[str]
MAX_ROW = 4000  # characters; cells of a longer table row are text side by side, not data
MAX_SPAN = 1000  # columns, as browsers have it
MAX_SPANNED = 10_000_000  # characters of a page; more spanned cells are not repeated
OF_ALL = CONTENTS | LINKED | UNSEEN  # a table is of links if all its cells are
APART = CHROME | CONTENTS | UNSEEN  # rows that may be left out without the others


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


def table_blocks(rows: Sequence[Row], n_named: int = 0, *, has_head: bool = True) -> Iterator[str]:
    """Yield the titles above a table, then the table as Markdown or, if it is long, as records.

    Parameters
    ----------
    rows : sequence of sequences of str
        Merged cells have a `Merged` in each of their positions.
    n_named : int
        Number of rows known to be headers; there may be more, see `n_heads`.
    has_head : bool
        Whether the first row after the titles is a header.
    """
    rows = _without_copies([row for row in rows if any(row)])
    while rows and (title := title_in(rows[0])) and not _heads_some(title, rows):
        yield title
        rows, n_named = rows[1:], n_named - 1
    if rows and has_head:
        n = n_heads(rows, n_named)
        yield markdown_table([_head(rows[:n]), *map(_values, rows[n:])])
    elif rows:
        yield "\n".join(map(_line, _without_empty_columns([*map(_values, rows)])))


def _without_copies(rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows without the columns in which each row continues the cell to the left."""
    pairs = (enumerate(pairwise(["", *row])) for row in rows)
    kept = {i for row in pairs for i, (left, cell) in row if not _is_same(left, cell)}
    return [[cell for i, cell in enumerate(row) if i in kept] for row in rows]


def title_in(row: Row) -> str:
    """Return the only text of a row, or "" if it has several."""
    first, *more = [*filter(None, row)] or [""]
    return first if all(_is_same(cell, first) for cell in more) else ""


def _heads_some(title: str, rows: Sequence[Row]) -> bool:
    """Return whether the only text of the first row is the header of some columns, not of all."""
    beside = rows[1][: rows[0].index(title)] if len(rows) > 1 else ()
    return any(beside) and are_names(rows[1]) and _divides(rows[1], rows[0])


def _is_same(cell: str, other: str) -> bool:
    """Return whether two positions of a table belong to the same merged cell."""
    return cell is other and isinstance(cell, Merged)


def markdown_table(rows: Sequence[Row]) -> str:
    """Return a table as Markdown without empty columns, or as records if it is long.

    The first row is its header.
    """
    cells = _without_empty_columns(rows)
    if records := records_of_table(cells):
        return as_block(records)
    head, *below = map(_line, cells)
    return "\n".join([head, f"|{' --- |' * len(cells[0])}", *below])


def _without_empty_columns(rows: Sequence[Row]) -> list[list[str]]:
    columns = sorted({i for row in rows for i, cell in enumerate(row) if cell})
    return [[" ".join("".join(row[i : i + 1]).split()) for i in columns] for row in rows]


def _line(row: Row) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


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


def _head(rows: Sequence[Row]) -> list[str]:
    """Return the names of columns, each joined from all header rows."""
    width = max(map(len, rows))
    names = [[row[i] for row in rows if i < len(row) and row[i]] for i in range(width)]
    return [" / ".join(dict.fromkeys(each)) for each in names]


def _values(row: Row) -> Row:
    """Return the texts of a row, or a single one if one cell is as wide as the table."""
    if isinstance(row[0], Merged) and (title := title_in(row)):
        return [title]
    return row


class Cell(NamedTuple):
    """The lines of a cell, how many columns and rows it spans, and whether it is a header."""

    lines: list[Line]
    n_columns: int
    n_rows: int
    is_header: bool


class HtmlRow(NamedTuple):
    """A row of an HTML table: its lines, the texts of its columns, and whether it is a header."""

    lines: list[Line]
    columns: Row
    is_header: bool

    def is_plain(self) -> bool:
        """Return whether it can be a line of a table."""
        is_block = any(line.level or line.inside & PRE for line in self.lines)
        return not is_block and sum(len(line.text) for line in self.lines) <= MAX_ROW


def span(cell: Element, name: str) -> int:
    """Return how many columns or rows a cell spans."""
    value = cell.get(name, "1").strip()[:6]
    return max(1, min(int(value), MAX_SPAN)) if value.isdecimal() else 1


def html_table(cells: Sequence[Sequence[Cell]], room: int) -> tuple[list[Line], int]:
    """Return the rows of an HTML table as `table_blocks`, but rows with large cells as their lines.

    Parameters
    ----------
    cells : sequence of sequences of Cell
        The cells of each row.
    room : int
        Maximum number of characters that repeating the texts of spanning cells may add.

    Returns
    -------
    list[Line], int
        The lines, and the number of these characters that are left.
    """
    rows, room = _spanned(cells, room)
    found, heads = list[Line](), list[Row]()
    for run in _runs(row for row in rows if row.lines):
        if not run[0].is_plain():
            found += (line for row in run for line in row.lines)
            continue
        named = [row.columns for row in run if row.is_header]
        heads = named or heads
        columns = [*heads, *(row.columns for row in run[len(named) :])]
        below = [line for row in run[len(named) :] or run for line in row.lines]
        inside = _kinds(below) | PRE
        for block in table_blocks(columns, len(heads), has_head=bool(heads)):
            text = f"\n{block}\n" if block.startswith("\n") else block  # records
            text = text.lstrip("\n") if found and found[-1].text.endswith("\n\n") else text
            found.append(Line(text, inside, region=below[0].region))
    return found, room


def _runs(rows: Iterable[HtmlRow]) -> Iterator[list[HtmlRow]]:
    """Yield runs of headers and the rows below them, which are plain and left out together."""
    run = list[HtmlRow]()
    for row in rows:
        last = run[-1] if run else row
        is_apart = (_kinds(row.lines) ^ _kinds(last.lines)) & APART and not last.is_header
        if is_apart or row.is_plain() != last.is_plain() or row.is_header > last.is_header:
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _kinds(lines: Sequence[Line]) -> int:
    """Return the kinds of lines, of which some are those of a table only if all lines have them."""
    kinds = [line.inside for line in lines]
    return reduce(or_, kinds) & ~OF_ALL | reduce(and_, kinds)


def _spanned(cells: Sequence[Sequence[Cell]], room: int) -> tuple[list[HtmlRow], int]:
    """Return rows in which the texts of spanning cells are repeated, and the room that is left."""
    grid = [dict[int, str]() for _ in cells]  # texts by column
    rows = list[HtmlRow]()
    for i, row in enumerate(cells):
        at = 0
        for cell in row:
            while at in grid[i]:
                at += 1
            text = " ".join(line.text for line in cell.lines)
            n_columns, n_rows = cell.n_columns, min(cell.n_rows, len(cells) - i)
            added = (n_columns * n_rows - 1) * (len(text) + 3) + (n_rows - 1) * at * 3
            if added > room:
                added, n_columns, n_rows = 0, 1, 1
            room -= added
            text = Merged(text) if n_columns * n_rows > 1 else text
            for spanned in grid[i : i + n_rows]:
                spanned |= dict.fromkeys(range(at, at + n_columns), repeated(text))
            grid[i][at] = text
        columns = [grid[i].get(at, "") for at in range(max(grid[i], default=-1) + 1)]
        is_title = title_in(columns) and columns[0]
        is_header = not is_title and all(cell.is_header for cell in row if cell.lines)
        rows.append(HtmlRow([line for cell in row for line in cell.lines], columns, is_header))
    return rows, room
