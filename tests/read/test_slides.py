"""Charts, the order of shapes, and tables of slides."""

from io import BytesIO

import pptx
import pytest
from office_files import saved
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from hierindex.node import LEFT_OUT

BLANK = 6  # layout


def deck_of(*places):
    """A slide with text boxes by left, top and height, each named by its number."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[BLANK])
    for i, (left, top, height) in enumerate(places):
        box = slide.shapes.add_textbox(Inches(left), Inches(top), Inches(1), Inches(height))
        box.text_frame.text = f"Box {i}"
    return deck, slide


@pytest.mark.parametrize(
    ("places", "order"),
    [
        ([(1, 5, 1), (1, 1, 1), (1, 3, 1)], [1, 2, 0]),
        ([(6, 1, 1), (1, 1.1, 1), (1, 4, 1)], [1, 0, 2]),
        ([(5, 1, 1), (5, 5, 1), (1, 1, 6)], [2, 0, 1]),
        ([(1, 1, 1), (1, 1, 1)], [0, 1]),
    ],
    ids="below beside column same".split(),
)
def test_shapes_are_read_from_top_to_bottom_and_left_to_right(read_one, places, order):
    text = read_one("a.pptx", saved(deck_of(*places)[0])).text
    assert text.split("\n\n")[1:] == [f"Box {i}" for i in order]


def test_placeholders_have_the_places_of_their_layouts(read_one):
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Title"
    slide.placeholders[1].text = "Body"
    for top, text in ((7, "Below"), (1.2, "Above")):
        box = slide.shapes.add_textbox(Inches(1), Inches(top), Inches(1), Inches(0.2))
        box.text_frame.text = text
    assert read_one("a.pptx", saved(deck)).text == "# Title\n\nAbove\n\nBody\n\nBelow"


def test_charts_are_tables(read_one):
    deck, slide = deck_of()
    data = CategoryChartData(number_format="0.0%")
    data.categories = ["2022", "2023"]
    data.add_series("Boats", (0.125, 0.5))
    data.add_series("Rafts", (None, 1))
    box = [Inches(i) for i in (1, 1, 4, 3)]
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *box, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Boats a year"
    chart.value_axis.has_title = True
    chart.value_axis.axis_title.text_frame.text = "Share"
    assert read_one("a.pptx", saved(deck)).text == (
        "# Slide 1\n\nChart: Boats a year: Share\n\n|  | Boats | Rafts |\n| --- | --- | --- |\n"
        "| 2022 | 12.5% |  |\n| 2023 | 50.0% | 100.0% |"
    )


def test_charts_of_points_have_both_values(read_one):
    deck, slide = deck_of()
    data = XyChartData()
    series = data.add_series("Depth")
    for x, y in ((1, 4), (2.5, 9)):
        series.add_data_point(x, y)
    box = [Inches(i) for i in (1, 1, 4, 3)]
    slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *box, data)
    text = read_one("a.pptx", saved(deck)).text
    assert "| 1 | 4 |\n| 2.5 | 9 |" in text


@pytest.mark.parametrize(
    ("merge", "rows"),
    [
        ([(1, 0), (2, 0)], ["| Boat | Length |", "| Heron / Tern | 12 |", "| Heron / Tern | 9 |"]),
        ([(2, 0), (2, 1)], ["| Boat | Length |", "| Heron | 12 |", "| Tern / 9 |  |"]),
        ([(1, 1), (2, 1)], ["| Boat | Length |", "| Heron | 12 / 9 |", "| Tern | 12 / 9 |"]),
    ],
    ids="rows wide values".split(),
)
def test_merged_cells_of_slides_are_expanded(read_one, merge, rows):
    deck, slide = deck_of()
    table = slide.shapes.add_table(3, 2, *[Inches(1)] * 4).table
    for i, text in enumerate(["Boat", "Length", "Heron", "12", "Tern", "9"]):
        table.cell(i // 2, i % 2).text = text
    table.cell(*merge[0]).merge(table.cell(*merge[1]))
    lines = read_one("a.pptx", saved(deck)).text.split("\n")[2:]
    assert [lines[0], *lines[2:]] == rows


def test_hidden_slides_and_pictures_are_told_and_slides_keep_their_numbers(read_one):
    deck, first = deck_of((1, 1, 1))
    first._element.set("show", "0")
    second = deck.slides.add_slide(deck.slide_layouts[BLANK])
    second.shapes.add_textbox(*[Inches(1)] * 4).text_frame.text = "Seen."
    second.shapes.add_picture(BytesIO(PIXEL), Inches(1), Inches(3))
    document = read_one("a.pptx", saved(deck))
    assert document.text == "# Slide 2\n\nSeen."
    assert document.metadata[LEFT_OUT] == ["1 picture", "1 hidden slide"]


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8"
    "ffbf1e0005fe02fea735a2640000000049454e44ae426082"
)


@pytest.mark.parametrize(
    ("marks", "text", "left_out"),
    [
        ({"baseline": "30000"}, "10^6", None),
        ({"baseline": "-25000"}, "10_6", None),
        ({"strike": "sngStrike"}, "10", ["1 word struck out"]),
    ],
)
def test_raised_and_struck_text_of_slides(read_one, marks, text, left_out):
    deck, slide = deck_of((1, 1, 1))
    paragraph = slide.shapes[0].text_frame.paragraphs[0]
    paragraph.runs[0].text = "10"
    run = paragraph.add_run()
    run.text = "6"
    for name, value in marks.items():
        run._r.get_or_add_rPr().set(name, value)
    document = read_one("a.pptx", saved(deck))
    assert document.text.split("\n")[-1] == text
    assert document.metadata.get(LEFT_OUT) == left_out


def test_equations_of_slides_are_text(read_one):
    deck, slide = deck_of((1, 1, 1))
    office = "http://schemas.microsoft.com/office/drawing/2010/main"
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    mc = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    choice = pptx.oxml.parse_xml(
        f'<mc:AlternateContent xmlns:mc="{mc}">'
        f'<mc:Choice Requires="a14"><a14:m xmlns:a14="{office}"><m:oMath xmlns:m="{math}"><m:r>'
        "<m:t>E=m</m:t></m:r></m:oMath></a14:m></mc:Choice><mc:Fallback/></mc:AlternateContent>"
    )
    slide.shapes[0].text_frame.paragraphs[0]._p.append(choice)
    assert read_one("a.pptx", saved(deck)).text.split("\n")[-1] == "Box 0E=m"


def test_decks_have_titles_authors_and_dates(read_one):
    deck, _ = deck_of((1, 1, 1))
    assert "author" not in read_one("a.pptx", saved(deck)).metadata  # of the template
    deck.core_properties.title, deck.core_properties.author = "The pier", "Ada"
    found = read_one("a.pptx", saved(deck)).metadata
    assert (found["title"], found["author"]) == ("The pier", "Ada")
