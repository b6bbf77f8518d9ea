"""Tables and JSON as records, each value with its key; chunks do not split short records."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import accumulate, chain, groupby, starmap
from typing import Any, BinaryIO

from hierindex.read.text import HEAD, Reading, read_text

BETWEEN = "\n\n\n"  # of records; LlamaIndex's splitter first divides texts there
SHORT = 200  # characters; a longer value stands on a line of its own
LONG = 2000  # characters; a longer value of JSON is divided into records
LONG_TABLE = 1000  # characters; a longer table does not fit a chunk of 256 tokens
MOST_LONGER = 4  # times; records that repeat longer headers are no help
DELIMITERS = ",|;\t"  # of equally good ones, the last is taken
SEPARATOR = re.compile(r"\"?sep=(.)\"?[ \t]*\n", re.IGNORECASE)  # a line for Excel
REGULAR = 0.9  # share of rows with at least two values and none beyond the header
OFTEN = 0.2  # share of rows
NAME = re.compile(r"\d{4}|.*[^\W\d_].*", re.DOTALL)  # a year, or with a letter

Field = tuple[str, str]
Rows = Sequence[Sequence[str]]


def as_record(fields: Iterable[Field]) -> str:
    r"""Join fields to `key: value; key: value`, without empty values.

    A value that is long or has several lines stands on its own line.

    >>> as_record([("id", "3"), ("", "Ada"), ("born", ""), ("note", "One.\nTwo.")])
    'id: 3; Ada\nnote: One.\nTwo.'
    """
    said = ((f"{key}: {value}" if key else value, value) for key, value in fields if value.strip())
    grouped = groupby(said, key=lambda pair: len(pair[1]) > SHORT or "\n" in pair[1])
    return "\n".join(("\n" if long else "; ").join(text for text, _ in g) for long, g in grouped)


def is_header(row: Sequence[str], below: Iterable[Sequence[str]]) -> bool:
    """Return whether the first row of a table is a header that names the columns.

    In a header, most cells are filled and distinct. Each has a letter or is a year, and is not also
    a value of its column.

    >>> is_header(["name", "1990"], [["Ada", "3"]]), is_header(["Ada", "3"], [["Bob", "3"]])
    (True, False)
    """
    names = [name for name in row if name]
    return (
        len(names) > max(1, len(row) / 2)
        and len(set(names)) == len(names)
        and all(NAME.fullmatch(name) for name in names)
        and not any(a and a == b for values in below for a, b in zip(row, values, strict=False))
    )


def records_of(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield rows as records; values beyond the last column of the header have no key."""
    for row in rows:
        keys = chain(header, [""] * (len(row) - len(header)))
        if record := as_record(zip(keys, row, strict=False)):
            yield record


def records_of_table(rows: Sequence[Sequence[str]], *, named: bool = False) -> list[str]:
    """Return the rows of a table too long for a chunk as records, with their header.

    Parameters
    ----------
    rows : sequence of sequences of str
        The first is the header, if it names the columns; see `is_header`.
    named : bool
        Whether the first row is known to be the header.

    Returns
    -------
    list[str]
        Empty if the table is short or has no header, or if records are much longer.
    """
    length = sum(len(cell) for row in rows for cell in row)
    if length <= LONG_TABLE or not (named or is_header(rows[0], rows[1:])):
        return []
    records = [*records_of(rows[0], rows[1:])]
    return records if sum(map(len, records)) <= MOST_LONGER * length else []


def as_block(records: Iterable[str]) -> str:
    """Return the records of a table as a block of Markdown, surrounded by blank lines.

    The block begins and ends with a line end, so that records are separated from the text around
    them as from each other.
    """
    return f"\n{BETWEEN.join(records)}\n"


def read_csv(file: BinaryIO) -> Reading:
    """Return the rows of a table as records, or the unchanged text if it has no header.

    Lines above the header, such as titles, are kept above the records. The delimiter is given by a
    line `sep=`, or is the character that divides the rows best.
    """
    text, metadata, _ = read_text(file)
    said = SEPARATOR.match(text)
    text = text[said.end() :] if said else text
    sample = text if len(text) <= HEAD else text[: text.rfind("\n", 0, HEAD) + 1]
    tables = list[tuple[float, bool, int, int, str]]()
    try:
        for rank, delimiter in enumerate(said[1] if said else DELIMITERS):
            _, header, below = _table(_rows(sample, delimiter))
            regular = sum(1 < len(row) <= len(header) for row in below)
            if regular >= max(1, REGULAR * len(below)) and is_header(_distinct(header), below):
                is_prose = sample.count(f"{delimiter} ") > sample.count(delimiter) / 2
                exact = sum(len(row) == len(header) for row in below) / len(below)
                tables.append((exact, not is_prose, len(header), rank, delimiter))
        *_, delimiter = max(tables)
        above, header, below = _table(_rows(text, delimiter))
    except (ValueError, csv.Error):  # no table, or a field above `csv.field_size_limit`
        return Reading(text, metadata)
    lines = ["\n".join(f"{delimiter} ".join(filter(None, row)) for row in above)] if above else []
    return Reading(BETWEEN.join([*lines, *records_of(_distinct(header), below)]), metadata)


def _table(rows: Iterable[list[str]]) -> tuple[Rows, Sequence[str], Rows]:
    """Return the lines above a table, which have fewer values than usual, its header, its rows."""
    rows = [*rows]
    widths = Counter(map(_width, rows))
    often = [width for width, n in widths.items() if n > max(1, OFTEN * len(rows))] or [*widths]
    usual = max(often, key=lambda width: width * widths[width], default=0)
    start = next((i for i, row in enumerate(rows) if _width(row) >= usual), 0)
    header, *below = rows[start:] or [[]]
    return rows[:start], header, below


def _width(row: Sequence[str]) -> int:
    """Return the number of values in a row, without empty values at its end."""
    return max((i for i, value in enumerate(row, start=1) if value), default=0)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return column names; repeated names get numbers.

    >>> _distinct(["name", "price", "price", ""])
    ['name', 'price', 'price (2)', '']
    """
    seen = Counter[str]()
    distinct = list[str]()
    for name in names:
        seen[name] += 1
        distinct.append(f"{name} ({seen[name]})" if name and seen[name] > 1 else name)
    return distinct


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter):
        if any(values := [*map(str.strip, row)]):
            yield values


def read_json(file: BinaryIO) -> Reading:
    """Return the records of JSON or JSON Lines, or the unchanged text if it is neither.

    A record is an item of a list, a member of an object, or a run of consecutive members with one
    value or a list of values each. A long record is divided in the same way. Keys are joined by
    dots, and numbers are written as in the file.
    """
    text, metadata, _ = read_text(file)
    try:
        return Reading(BETWEEN.join(filter(None, _records(parse_json(text)))), metadata)
    except (ValueError, RecursionError):
        return Reading(text, metadata)


def parse_json(text: str) -> Any:
    """Return the value of JSON, or the list of values of JSON Lines, with numbers as strings."""
    decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
    try:
        return decoder.decode(text)
    except ValueError:
        return [decoder.decode(line) for line in text.split("\n") if line.strip()]


def _records(value: Any, key: str = "") -> Iterator[str]:
    listed = isinstance(value, list)
    for together, members in groupby(_members(key, value), lambda m: not listed and _is_flat(m[1])):
        if together:
            yield as_record(chain.from_iterable(starmap(_fields, members)))
            continue
        for name, member in members:
            lengths = accumulate(len(said) for _, said in _fields(name, member))
            if isinstance(member, dict | list) and any(length > LONG for length in lengths):
                yield from _records(member, name)
            else:
                yield as_record(_fields(name, member))


def _members(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield f"{key}.{name}" if key else name, member
    else:
        yield from ((key, item) for item in (value if isinstance(value, list) else [value]))


def _fields(key: str, value: Any) -> Iterator[Field]:
    """Yield the values inside a value with their keys; a list of plain values is one value."""
    if _is_flat(value):
        yield key, _said(value)
    else:
        for name, member in _members(key, value):
            yield from _fields(name, member)


def _is_flat(value: Any) -> bool:
    """Return whether a value is plain, or a list of plain values."""
    if isinstance(value, list):
        return not any(isinstance(item, dict | list) for item in value)
    return not isinstance(value, dict)


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(filter(None, map(_said, value)))
    return "" if value is None else str(value).lower()
