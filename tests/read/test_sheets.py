"""Numbers as Excel shows them, and the grids of sheets."""

from datetime import datetime, time, timedelta

import openpyxl
import pytest
from office_files import saved
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment

from hierindex.errors import SourceError
from hierindex.node import LEFT_OUT
from hierindex.read import sheets


def sheet_of(*rows, merged=()):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for each in merged:
        book.active.merge_cells(each)
    return book


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (0.125, "0.0%", "12.5%"),
        (0.5, "0%", "50%"),
        (-0.0312, "0.00%", "-3.12%"),
        (1234.5, '#,##0.00 "EUR"', "1,234.50 EUR"),
        (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
        (1234.5, '_-* #,##0.00\\ "kr"_-;-* #,##0.00\\ "kr"_-', "1,234.50 kr"),
        (-1234.5, '"$"#,##0_);("$"#,##0)', "($1,235)"),
        (-5, "$#,##0.00;[Red]-$#,##0.00", "-$5.00"),
        (-5, '0 "m"', "-5 m"),
        (7, "000", "007"),
        (2.675, "0.00", "2.68"),
        (2.5, "0.0#", "2.5"),
        (0, "0.00;-0.00;;@", "0.00"),
        (2_500_000, '0.0,,"M"', "2.5M"),
        (21.5, "0.0\\ °C", "21.5 °C"),
        (1e-9, "0.00E+00", "1e-09"),
        (0.75, "# ?/?", "0.75"),
        (3.0, "General", "3"),
        (45000.5, 'General" kg"', "45000.5 kg"),
        (0.285, "0%", "29%"),
        (500, '[>=1000]#,##0,"K";0', "500"),
        (12, '0"%"', "12%"),
        (12345678.125, "@", "12345678.125"),
        (10**15 + 1, "0", "1000000000000001"),
        (True, "0.0%", "True"),
        ("00042", "0.0%", "00042"),
        (datetime(2024, 3, 5, 14), "yyyy-mm-dd", "2024-03-05"),
        (datetime(2024, 3, 5, 14), "dd/mm/yyyy hh:mm", "2024-03-05 14:00:00"),
        (time(7, 30), "h:mm", "07:30:00"),
        (timedelta(days=1, hours=6), "[hh]:mm:ss", "30:00:00"),
    ],
)
def test_values_are_read_as_displayed(read_one, value, code, text):
    book = sheet_of(["Item", "Value"], ["Bolt", value])
    book.active["B2"].number_format = code
    last = read_one("a.xlsx", saved(book)).text.split("\n")[-1]
    assert last == f"| Bolt | {text} |"


@pytest.mark.parametrize(
    ("rows", "merged", "lines"),
    [
        (  # a cell of two rows
            [["Room", "Floor", "Rent"], ["A", "First", 100], ["B", None, 120]],
            ["B2:B3"],
            [
                "| Room | Floor | Rent |",
                "| --- | --- | --- |",
                "| A | First | 100 |",
                "| B | First | 120 |",
            ],
        ),
        (  # heads of two rows, above the names of the rows
            [[None, 2023, None, 2024, None], ["Room", "Q1", "Q2", "Q1", "Q2"], ["A", 1, 2, 3, 4]],
            ["B1:C1", "D1:E1"],
            [
                "| Room | 2023 / Q1 | 2023 / Q2 | 2024 / Q1 | 2024 / Q2 |",
                "| --- | --- | --- | --- | --- |",
                "| A | 1 | 2 | 3 | 4 |",
            ],
        ),
        (  # a blank row between the heads and the values
            [["In EUR", None, 2023], ["Room", "Rent", "Heat"], [], ["A", 1, 2], ["B", 3, 4]],
            [],
            [
                "| In EUR / Room | Rent | 2023 / Heat |",
                "| --- | --- | --- |",
                "| A | 1 | 2 |",
                "| B | 3 | 4 |",
            ],
        ),
        (  # a form
            [["Name", *[None] * 9, "Ada"], [None] * 11, ["Town", *[None] * 9, "Oslo"]],
            ["A1:J1", "A3:J3"],
            ["| Name | Ada |", "| --- | --- |", "", "| Town | Oslo |", "| --- | --- |"],
        ),
    ],
    ids="rows heads apart form".split(),
)
def test_values_stay_below_their_heads(read_one, rows, merged, lines):
    text = read_one("a.xlsx", saved(sheet_of(*rows, merged=merged))).text
    assert text == "\n".join(["# Sheet", "", *lines])


def test_what_is_not_read_is_told(read_one):
    book = sheet_of(["Room", "Rent"], ["A", 1], ["Sum", "=SUM(B2:B2)"], ["", "=B3"])
    book.active["A2"].comment = Comment("Too high?", "Ada")
    chart = BarChart()
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=2))
    book.active.add_chart(chart, "D1")
    for state in ("hidden", "veryHidden"):
        book.create_sheet(state).append(["secret", state])
        book[state].sheet_state = state
    document = read_one("a.xlsx", saved(book))
    assert document.text == "# Sheet\n\n| Room | Rent |\n| --- | --- |\n| A | 1 |\n| Sum |  |"
    assert document.metadata[LEFT_OUT] == [
        "1 chart",
        "1 comment",
        "2 uncomputed formulas",
        "2 hidden sheets",
    ]


@pytest.mark.parametrize(
    ("limit", "n", "message"),
    [
        ("MAX_CELLS", 5, "has over 5 cells or "),
        ("MAX_ROWS", 4, "cells or 4 rows"),
        ("MAX_CELLS", 19, "has merged cells that span more than 19 cells"),
    ],
)
def test_hostile_sheets_are_skipped(read_one, monkeypatch, limit, n, message):
    book = sheet_of(*[["a"]] * 4, [*"abcde"], merged=["A1:E4"])
    monkeypatch.setattr(sheets, limit, n)
    with pytest.raises(SourceError, match=message):
        read_one("a.xlsx", saved(book))
