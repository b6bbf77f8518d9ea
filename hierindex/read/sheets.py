"""Excel files as Markdown."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby, takewhile
from typing import Any, BinaryIO

from hierindex.read.office import Block, as_reading, formatted_number, unpacked
from hierindex.read.records import is_header
from hierindex.read.tables import MOST_HEADS, are_names, merge, n_heads, table_blocks, title_in
from hierindex.read.text import Reading, UnreadableError

MAX_CELLS, MAX_ROWS = 10_000_000, 2**20  # small files can have billions of empty ones
MERGED = re.compile(rb'<(?:\w+:)?mergeCell [^>]*?ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
UNKNOWN = re.compile(rb"</(?:\w+:)?f>\s*(?:<(?:\w+:)?v(?:\s*/|></(?:\w+:)?v)>)?\s*</(?:\w+:)?c>")
"""A formula without a result."""


def read_excel(file: BinaryIO) -> Reading:
    """Return the visible sheets as Markdown: a section for each, tables separated by blank rows.

    Numbers are read as displayed, and formulas as their last results. Long tables become records.
    """
    with unpacked(file, "Excel") as parts:
        from openpyxl import load_workbook

        unread, blocks, n_cells = Counter[str](), list[Block](), 0
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        for sheet in book.worksheets:
            if sheet.sheet_state != "visible":
                unread["hidden sheet"] += 1
                continue
            sheet.reset_dimensions()  # of which files may say anything
            rows = list[list[str]]()
            for row in sheet.iter_rows():
                n_cells += len(row)
                if n_cells > MAX_CELLS or len(rows) >= MAX_ROWS:
                    raise UnreadableError(f"has over {MAX_CELLS:,} cells or {MAX_ROWS:,} rows")
                rows.append([*map(_said, row)])
            source = parts.read(sheet._worksheet_path.lstrip("/"))
            unread["uncomputed formula"] += len(UNKNOWN.findall(source))
            _merge(rows, MERGED.findall(source))
            blocks += [Block(sheet.title, 1), *map(Block, _blocks(rows))]
        return as_reading(parts, blocks, unread)


def _blocks(rows: Iterable[list[str]]) -> Iterator[str]:
    """Yield the titles and tables of a sheet; a table that continues another gets its heads."""
    heads: list[list[str]] = []
    for table, n_named in _tables(rows):
        titles = [*takewhile(bool, map(title_in, table))]
        yield from titles
        table = table[len(titles) :]
        if heads and table and _continues(heads[-1], table):
            table = [*heads, *table]
        elif table:
            heads = table[: n_heads(table, n_named - len(titles))]
            if not n_named and not is_header(heads[-1], table[len(heads) :]):
                heads = []
        yield from table_blocks(table, len(heads))


def _tables(rows: Iterable[list[str]]) -> Iterator[tuple[list[list[str]], int]]:
    """Yield the tables between blank rows: header rows, and their number, with the values."""
    heads: list[list[str]] = []
    for blank, group in groupby(rows, lambda row: not any(row)):
        if blank:
            continue
        table, above = [*group], heads
        is_head = (
            len(table) <= MOST_HEADS and not title_in(table[-1]) and all(map(are_names, table))
        )
        heads = table if is_head else []
        if above and not are_names(table[0]):
            yield [*above, *table], len(above)
            continue
        if above:
            yield above, 0
        if not heads:
            yield table, 0
    if heads:
        yield heads, 0


def _continues(head: Sequence[str], table: Sequence[Sequence[str]]) -> bool:
    """Return whether a table has the columns of another one, and no header of its own."""
    named, columns = _columns([head]), _columns(table)
    return min(named) in columns and columns <= named and not is_header(table[0], table[1:])


def _columns(table: Iterable[Sequence[str]]) -> set[int]:
    return {i for row in table for i, cell in enumerate(row) if cell}


def _merge(rows: list[list[str]], ranges: Iterable[bytes]) -> None:
    """Repeat the texts of merged cells in each of their positions."""
    from openpyxl.utils import range_boundaries

    width, n_merged = max(map(len, rows), default=0), 0
    for places in ranges:
        left, top, right, bottom = range_boundaries(places.decode())
        if not 0 < top <= min(bottom, len(rows)) or not any(rows[top - 1][left - 1 : left]):
            continue
        bottom, right = min(bottom, len(rows)), min(right, width)
        n_merged += right * (bottom - top + 1)  # as rows become as long
        if n_merged > MAX_CELLS:
            raise UnreadableError(f"has merged cells that span more than {MAX_CELLS:,} cells")
        merge(rows, top - 1, left - 1, bottom, right)


def _said(cell: Any) -> str:
    """Return the value of a cell as displayed."""
    value = cell.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return formatted_number(value, cell.number_format)
    if isinstance(value, timedelta):
        seconds = round(value.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if isinstance(value, datetime) and "h" not in cell.number_format.lower():
        return date.isoformat(value)
    return "" if value is None else str(value).strip().removesuffix(" 00:00:00")
