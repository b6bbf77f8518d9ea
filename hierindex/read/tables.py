"""Tables with merged cells: their Markdown, with each value below its heads."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hierindex.read.records import NAME, as_block, records_of_table

MAX_REPEATED = 100  # characters; a longer text of merged cells is written once
MOST_HEADS = 4  # rows
LONGEST_HEAD = 60  # characters, below another head

Row = Sequence[str]


class Merged(str):
    """The text of merged cells: the same object stands at each of their places in a table."""


def repeated(text: str) -> str:
    """Return the text of merged cells as it is at all but the first of their places."""
    return text if len(text) <= MAX_REPEATED else ""


def merge(rows: list[list[str]], top: int, left: int, bottom: int, right: int) -> None:
    """Repeat the first of merged cells at each of their places."""
    cell = Merged(rows[top][left])
    for row in rows[top:bottom]:
        row.extend([""] * (right - len(row)))
        row[left:right] = [repeated(cell)] * (right - left)
    rows[top][left] = cell


def table_blocks(rows: Sequence[Row], n_named: int = 0) -> Iterator[str]:
    """Yield the titles above a table, and its Markdown or, if it is long, its records.

    Parameters
    ----------
    rows : sequence of sequences of str
        With a `Merged` at each place of merged cells.
    n_named : int
        Rows that are known to name the columns; there may be more, see `n_heads`.
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
    """Return the only text of a row, or nothing if there are several."""
    first, *more = [*filter(None, row)] or [""]
    return first if all(_is_same(cell, first) for cell in more) else ""


def _is_same(cell: str, other: str) -> bool:
    """Return whether two places of a table have the same merged cell."""
    return cell is other and isinstance(cell, Merged)


def markdown_table(rows: Sequence[Row]) -> str:
    """Return a table of Markdown without empty columns, or its records if it is long.

    The first row is its header.
    """
    columns = sorted({i for row in rows for i, cell in enumerate(row) if cell})
    cells = [[" ".join("".join(row[i : i + 1]).split()) for i in columns] for row in rows]
    if records := records_of_table(cells):
        return as_block(records)
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]
    return "\n".join([lines[0], f"|{' --- |' * len(columns)}", *lines[1:]])


def n_heads(rows: Sequence[Row], n_named: int = 0) -> int:
    """Return how many rows name the columns: one, and those that are known to or divide it."""
    n = 1
    while n < min(MOST_HEADS, len(rows) - 1) and are_names(rows[n]):
        is_short = all(len(name) <= LONGEST_HEAD for name in rows[n])
        if n >= n_named and not (is_short and _divides(rows[n], rows[n - 1])):
            break
        n += 1
    return n


def are_names(row: Row) -> bool:
    """Return whether all texts of a row can name columns."""
    return all(NAME.fullmatch(cell) for cell in row if cell)


def _divides(row: Row, above: Row) -> bool:
    """Return whether a row divides the wide heads above it, and only these."""
    widths = Counter(id(head) for head in above if isinstance(head, Merged))
    pairs = [*zip(above, row, strict=False)]
    divided = {cell for head, cell in pairs if widths[id(head)] > 1}
    beside = [(head, cell) for head, cell in pairs if widths[id(head)] < 2 and head and cell]
    return len(divided) > 1 and all(_is_same(head, cell) for head, cell in beside)


def _head(rows: Sequence[Row]) -> list[str]:
    """Return the names of columns, each with those of all its rows."""
    width = max(map(len, rows))
    names = [[row[i] for row in rows if i < len(row) and row[i]] for i in range(width)]
    return [" / ".join(dict.fromkeys(each)) for each in names]


def _values(row: Row) -> Row:
    """Return the texts of a row; once if it is one cell that is as wide as the table."""
    if isinstance(row[0], Merged) and (title := title_in(row)):
        return [title]
    return row
