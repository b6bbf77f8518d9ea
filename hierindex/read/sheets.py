"""Excel files: their Markdown."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby, takewhile
from typing import Any, BinaryIO
from zipfile import ZipFile

from hierindex.read.number_formats import displayed
from hierindex.read.office import left_out, properties, sectioned, unpacked
from hierindex.read.records import is_header
from hierindex.read.tables import Merged, n_heads, repeated, table_blocks, title_in
from hierindex.read.text import Reading, UnreadableError

MAX_CELLS = 10_000_000
MAX_ROWS = 2**20  # of a sheet, as in Excel
MAX_MERGED = 2_000_000  # places of merged cells
MERGED = re.compile(rb'<(?:\w+:)?mergeCell [^>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
UNKNOWN = re.compile(rb"</(?:\w+:)?f>\s*(?:<(?:\w+:)?v(?:\s*/|></(?:\w+:)?v)>)?\s*</(?:\w+:)?c>")
"""A formula without a result."""
PARTS = {  # of a file that are not read, and their names
    "comment": re.compile(r"xl/(worksheets/)?comments.*\.xml"),
    "chart": re.compile(r"xl/charts/chart\w*\.xml"),
    "picture": re.compile(r"xl/media/.+"),
}


def read_excel(file: BinaryIO) -> Reading:
    """Return the Markdown of visible sheets: sections with the tables that blank rows separate.

    Numbers are read as displayed; of formulas, the last results. Long tables become records.
    """
    with unpacked(file, "Excel") as parts:
        from openpyxl import load_workbook

        metadata, unread = properties(parts), _unread(parts)
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        sections, n_cells, n_merged = list[tuple[str, list[str]]](), 0, 0
        formats = dict[int, str]()
        for sheet in book.worksheets:
            if sheet.sheet_state != "visible":
                unread["hidden sheet"] += 1
                continue
            sheet.reset_dimensions()  # of which files may say anything
            rows: list[list[str]] = []
            for row in sheet.iter_rows():
                n_cells += len(row)
                if n_cells > MAX_CELLS:
                    raise UnreadableError(f"has more than {MAX_CELLS:,} cells")
                if len(rows) >= MAX_ROWS:
                    raise UnreadableError(f"has a sheet of more than {MAX_ROWS:,} rows")
                rows.append([_cell(cell, formats) for cell in row])
            source = parts.read(sheet._worksheet_path.lstrip("/"))
            unread["formula of unknown result"] += len(UNKNOWN.findall(source))
            n_merged += _merge(rows, MERGED.findall(source), MAX_MERGED - n_merged)
            sections.append((sheet.title, [*_blocks(rows)]))
        return sectioned(sections)._replace(metadata=metadata | left_out(unread))


def _unread(parts: ZipFile) -> Counter[str]:
    found = Counter[str](dict.fromkeys(PARTS, 0))
    for name in parts.namelist():
        for kind, pattern in PARTS.items():
            if pattern.fullmatch(name):
                found[kind] += parts.read(name).count(b"<comment ") if kind == "comment" else 1
    return found


def _blocks(rows: Iterable[list[str]]) -> Iterator[str]:
    """Yield the titles and tables of a sheet; a table that continues another gets its heads."""
    heads: list[list[str]] = []
    for blank, group in groupby(rows, lambda row: not any(row)):
        if blank:
            continue
        table = [*group]
        titles = [*takewhile(bool, map(title_in, table))]
        yield from titles
        table = table[len(titles) :]
        if heads and table and _continues(heads[-1], table):
            table = [*heads, *table]
        elif table:
            heads = table[: n_heads(table)]
            if not is_header(heads[-1], table[len(heads) :]):
                heads = []
        yield from table_blocks(table, len(heads))


def _continues(head: Sequence[str], table: Sequence[Sequence[str]]) -> bool:
    """Return whether a table has the columns of another, and no head of its own."""
    named = _columns([head])
    return (
        min(named) in (columns := _columns(table))
        and columns <= named
        and not is_header(table[0], table[1:])
    )


def _columns(table: Iterable[Sequence[str]]) -> set[int]:
    return {i for row in table for i, cell in enumerate(row) if cell}


def _merge(rows: list[list[str]], ranges: Iterable[tuple[bytes, ...]], most: int) -> int:
    """Write the texts of merged cells at each of their places, and return how many these are."""
    from openpyxl.utils import column_index_from_string

    width, n_merged = max(map(len, rows), default=0), 0
    for first_column, first_row, last_column, last_row in ranges:
        top, bottom = int(first_row), min(int(last_row), len(rows))
        left = column_index_from_string(first_column.decode())
        if not 0 < top <= bottom or left > len(rows[top - 1]) or not rows[top - 1][left - 1]:
            continue
        right = min(column_index_from_string(last_column.decode()), width)
        text = rows[top - 1][left - 1]
        n_merged += (right - left + 1) * (bottom - top + 1)
        n_merged += sum(max(0, right - len(row)) for row in rows[top - 1 : bottom])
        if n_merged > most:
            raise UnreadableError(f"has merged cells of more than {MAX_MERGED:,} places")
        for i in range(top - 1, bottom):
            rows[i] += [""] * (right - len(rows[i]))
            for j in range(left - 1, right):
                said = text if (i, j) == (top - 1, left - 1) else repeated(text)
                rows[i][j] = Merged(
                    said, is_wide=right > left, is_below=i >= top, is_first=j == left - 1
                )
    return n_merged


def _cell(cell: Any, formats: dict[int, str]) -> str:
    """Return a cell with its value as people see it."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return str(value)
    if (code := formats.get(cell._style_id)) is None:
        code = formats[cell._style_id] = cell.number_format
    if isinstance(value, int | float):
        return displayed(value, code)
    if isinstance(value, timedelta):
        seconds = round(value.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if isinstance(value, datetime) and "h" not in code.lower():
        return date.isoformat(value)
    return str(value).removesuffix(" 00:00:00")
