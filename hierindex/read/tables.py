"""Tables with merged cells: their Markdown, with each value below its heads."""

from collections.abc import Iterator, Sequence

from hierindex.read.records import NAME, as_block, records_of_table

MAX_REPEATED = 100  # characters; a longer text of merged cells is written once
MAX_CELLS = 1_000_000  # of a document with merged cells, which small files can have many of
MOST_HEADS = 4  # rows
LONGEST_HEAD = 60  # characters, below another head
MOST_COPIES = 3  # of a head, on average; cells of a form are merged to place them, and have one


class Merged(str):
    """The text of merged cells at one of their places in the grid of a table."""

    is_wide: bool  # with a cell beside it
    is_below: bool  # with the cell above it
    is_first: bool  # of its row

    def __new__(cls, text: str, *, is_wide: bool, is_below: bool, is_first: bool) -> "Merged":
        """Return a text that is also that of cells beside or above it."""
        made = super().__new__(cls, text)
        made.is_wide, made.is_below, made.is_first = is_wide, is_below, is_first
        return made


def repeated(text: str) -> str:
    """Return the text of merged cells as it is at all but the first of their places."""
    return text if len(text) <= MAX_REPEATED else ""


def merged(text: str, width: int, *, is_below: bool = False) -> list[str]:
    """Return the places in a row of a cell that is `width` columns wide."""
    if width < 2 and not is_below:
        return [text]
    return [
        Merged(
            repeated(text) if at else text, is_wide=width > 1, is_below=is_below, is_first=not at
        )
        for at in range(width)
    ]


def table_blocks(rows: Sequence[Sequence[str]], n_named: int = 0) -> Iterator[str]:
    """Yield the titles above a table, and its Markdown or, if it is long, its records.

    Parameters
    ----------
    rows : sequence of sequences of str
        Merged cells are `Merged` at each of their places.
    n_named : int
        Rows that are known to name the columns; there may be more, see `n_heads`.
    """
    rows = _without_copies([row for row in rows if any(row)])
    while rows and (title := title_in(rows[0])):
        yield title
        rows, n_named = rows[1:], n_named - 1
    if rows:
        n = n_heads(rows, n_named)
        head = _head(rows[:n])
        if len({*filter(None, head)}) * MOST_COPIES < len(head):
            rows = [[*map(_once, row)] for row in rows]
            head = _head(rows[:n])
        yield markdown_table([head, *map(_values, rows[n:])])


def _without_copies(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Return rows without the columns in which each row continues the cell to the left."""
    kept = {i for row in rows for i, cell in enumerate(row) if _is_first(cell)}
    return [[cell for i, cell in enumerate(row) if i in kept] for row in rows]


def title_in(row: Sequence[str]) -> str:
    """Return the only text of a row, or nothing if there are several."""
    texts = [*filter(None, row)]
    if len(texts) == 1 or (len({*texts}) == 1 and sum(map(_is_first, texts)) == 1):
        return texts[0]
    return ""


def _once(cell: str) -> str:
    """Return the text of merged cells at the first of their places in a row, and no other."""
    return cell if _is_first(cell) else ""


def _is_first(cell: str) -> bool:
    return not isinstance(cell, Merged) or cell.is_first


def _is_wide(cell: str) -> bool:
    return isinstance(cell, Merged) and cell.is_wide


def _is_below(cell: str) -> bool:
    return isinstance(cell, Merged) and cell.is_below


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown without empty columns, or its records if it is long.

    The first row is its header.
    """
    columns = sorted({i for row in rows for i, cell in enumerate(row) if cell})
    cells = [[" ".join("".join(row[i : i + 1]).split()) for i in columns] for row in rows]
    if records := records_of_table(cells):
        return as_block(records)
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells]
    return "\n".join([lines[0], f"|{' --- |' * len(columns)}", *lines[1:]])


def n_heads(rows: Sequence[Sequence[str]], n_named: int = 0) -> int:
    """Return how many rows name the columns: one, and those that are known to or divide it."""
    n = 1
    while n < min(MOST_HEADS, len(rows) - 1) and _are_names(rows[n]):
        if n >= n_named and not _divides(rows[n], rows[n - 1]):
            break
        n += 1
    return n


def _are_names(row: Sequence[str]) -> bool:
    return all(NAME.fullmatch(cell) and len(cell) <= LONGEST_HEAD for cell in row if cell)


def _divides(row: Sequence[str], above: Sequence[str]) -> bool:
    """Return whether a row divides the merged heads above it, and only these."""
    pairs = [*zip(above, row, strict=False)]
    divided = {cell for head, cell in pairs if _is_wide(head)}
    beside = [(head, cell) for head, cell in pairs if not _is_wide(head)]
    return len(divided) > 1 and not any(
        head and cell and not _is_below(cell) for head, cell in beside
    )


def _head(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of columns, each with those of all its rows."""
    width = max(map(len, rows))
    names = [[row[i] for row in rows if i < len(row) and row[i]] for i in range(width)]
    return [" / ".join(dict.fromkeys(each)) for each in names]


def _values(row: Sequence[str]) -> Sequence[str]:
    """Return the texts of a row; once if it is one cell that is as wide as the table."""
    if isinstance(row[0], Merged) and (title := title_in(row)):
        return [title, *[""] * (len(row) - 1)]
    return row
