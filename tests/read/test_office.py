"""Files of office programs and books."""

import sys
from datetime import datetime
from io import BytesIO
from random import Random
from zipfile import ZIP_DEFLATED, ZipFile

import openpyxl
import pptx
import pytest
from office_files import RELATION, epub, excel, paragraph, saved, table, word, zipped
from pptx.util import Inches
from read.conftest import BETWEEN, headings

from hierindex import Skipped, read_documents
from hierindex.errors import SourceError
from hierindex.node import HEADINGS

OFFICE = (".docx", ".pptx", ".xlsx", ".epub")


def powerpoint():
    """A file of three slides: with bullets and notes, a table and a group, and without a title."""
    slides = pptx.Presentation()
    first, second, third = (slides.slides.add_slide(slides.slide_layouts[i]) for i in (1, 5, 6))
    first.shapes.title.text = "The first\vslide"
    body = first.placeholders[1].text_frame
    body.text = "One point"
    point = body.add_paragraph()
    point.text, point.level = "A point below", 1
    first.notes_slide.notes_text_frame.text = "Speak slowly."
    second.shapes.title.text = "Figures"
    box = [Inches(i) for i in (1, 2, 3, 4)]
    cells = second.shapes.add_table(2, 2, *box).table
    for i, text in enumerate(["Year", "Sum", "2026", "12\n13"]):
        cells.cell(i // 2, i % 2).text = text
    group = second.shapes.add_group_shape()
    group.shapes.add_textbox(*box).text_frame.text = "In a group."
    third.shapes.add_textbox(*box).text_frame.text = "No title."
    return saved(slides)


BOOK = epub({"a.html": "<h1>First</h1><p>It is so."})
REPORT = word(
    paragraph("The report", "Title"),
    paragraph("Results &amp; more", "Heading1"),
    paragraph("It is so."),
    paragraph("Timing", "Heading2"),
    table(["Way", "Seconds"], ["old", "2"], ["new", "1"]),
    paragraph("# no heading? 1 * 2 * 3"),
)
SALES = excel(
    {
        "Sales": [
            ["Sales of 2026"],
            [],
            ["Region", "Q1", 2025, "On"],
            ["North", 3.0, 0.1 + 0.2, datetime(2026, 11, 22)],
            ["South", None, True, datetime(2026, 11, 22, 8, 30)],
            [],
            [None, 1, None, "2\n3"],
            [None, 3, None, 4],
        ],
        "Empty": [],
    }
)


@pytest.mark.parametrize(
    ("suffix", "data", "text", "found"),
    [
        (
            ".docx",
            REPORT,
            "# The report\n\n# Results & more\n\nIt is so.\n\n## Timing\n\n"
            "| Way | Seconds |\n| --- | --- |\n| old | 2 |\n| new | 1 |\n\n# no heading? 1 * 2 * 3",
            [(1, "The report"), (1, "Results & more"), (2, "Timing")],
        ),
        (
            ".pptx",
            powerpoint(),
            "# The first slide\n\n- One point\n  - A point below\n\nNotes: Speak slowly.\n\n"
            "# Figures\n\n| Year | Sum |\n| --- | --- |\n| 2026 | 12 13 |\n\nIn a group.\n\n"
            "# Slide 3\n\nNo title.",
            [(1, "The first slide"), (1, "Figures"), (1, "Slide 3")],
        ),
        (
            ".xlsx",
            SALES,
            "# Sales\n\nSales of 2026\n\n"
            "| Region | Q1 | 2025 | On |\n| --- | --- | --- | --- |\n"
            "| North | 3 | 0.3 | 2026-11-22 |\n| South |  | True | 2026-11-22 08:30:00 |\n\n"
            "| 1 | 2 3 |\n| --- | --- |\n| 3 | 4 |\n\n# Empty",
            [(1, "Sales"), (1, "Empty")],
        ),
    ],
    ids=OFFICE[:3],
)
def test_files_become_markdown(read_one, suffix, data, text, found):
    document = read_one(f"a{suffix}", data)
    assert document.text == text
    assert headings(document) == [
        (level, title, f"{'#' * level} {title}") for level, title in found
    ]


@pytest.mark.parametrize("suffix", [".pptx", ".xlsx"])
def test_without_the_extra_files_are_skipped(skipped, monkeypatch, suffix):
    for module in ("openpyxl", "pptx"):
        monkeypatch.setitem(sys.modules, module, None)
    reason = "needs `pip install 'hierindex[office]'`"
    assert skipped({f"a{suffix}": SALES}) == [Skipped(f"a{suffix}", reason)]


OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000)
OF_KIND = {".docx": REPORT, ".pptx": powerpoint(), ".xlsx": SALES, ".epub": BOOK}
KINDS = {".docx": "Word", ".pptx": "PowerPoint", ".xlsx": "Excel", ".epub": "EPUB"}


@pytest.mark.parametrize("suffix", OFFICE)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b" ",
        lambda data: b"plain text",
        lambda data: data[:-100],
        lambda data: data[:200] + b"\xff" * 2000 + data[2200:],
        lambda data: zipped({"mimetype": "other"}),
        lambda data: zipped(
            {
                name: ZipFile(BytesIO(data)).read(name)[:-9]
                for name in ZipFile(BytesIO(data)).namelist()
            }
        ),
    ],
    ids="blank text cut overwritten other unclosed".split(),
)
def test_corrupt_files_are_skipped_with_a_reason(skipped, capfd, suffix, spoil):
    (found,) = skipped({f"a{suffix}": spoil(OF_KIND[suffix])})
    assert found == Skipped(f"a{suffix}", f"cannot be read as {KINDS[suffix]}")
    assert capfd.readouterr() == ("", "")


@pytest.mark.spread
@pytest.mark.parametrize("suffix", OFFICE)
@pytest.mark.parametrize("seed", range(5))
def test_damaged_files_are_read_or_skipped(tmp_path, suffix, seed):
    random = Random(seed)
    archive = ZipFile(BytesIO(OF_KIND[suffix]))
    parts = {name: bytearray(archive.read(name)) for name in archive.namelist()}
    for part in parts.values():
        for _ in range(random.randrange(3)):
            at = random.randrange(len(part) or 1)
            part[at : at + random.randrange(9)] = random.choice(
                [b"<", b"/>", b"&x;", b"\xff", b'"']
            )
    (tmp_path / f"a{suffix}").write_bytes(zipped({k: bytes(v) for k, v in parts.items()}))
    (tmp_path / "good.txt").write_text("good")
    documents, skipped = read_documents(tmp_path)
    assert len(documents) + len(skipped) == 2


@pytest.mark.parametrize("suffix", OFFICE)
def test_encrypted_files_are_skipped(skipped, suffix):
    (found,) = skipped({f"a{suffix}": OLD})
    assert "is encrypted, or not in the format" in found.reason


def test_zip_bombs_are_not_unpacked(tmp_path):
    archive = ZipFile(tmp_path / "a.docx", "w", ZIP_DEFLATED)
    with archive, archive.open("word/document.xml", "w") as part:
        for _ in range(101):
            part.write(bytes(1_000_000))
    for suffix in OFFICE:
        (tmp_path / "a.docx").replace(tmp_path / f"a{suffix}")
        with pytest.raises(SourceError, match=r"grows by 1\d\d,\d{3},\d{3} bytes when unpacked"):
            read_documents(tmp_path)
        (tmp_path / f"a{suffix}").replace(tmp_path / "a.docx")


def test_slides_that_miss_a_part_are_skipped(skipped):
    archive = ZipFile(BytesIO(OF_KIND[".pptx"]))
    parts = {name: archive.read(name) for name in archive.namelist()}
    slide = "ppt/slides/slide1.xml"
    parts[slide] = parts[slide].replace(b"p:cSld", b"p:odd")
    assert skipped({"a.pptx": zipped(parts)})[0].reason == "cannot be read as PowerPoint"


ROWS = [[f"r{i}", "", f"It is said of it that {i} is so."] for i in range(60)]
RECORDS = BETWEEN.join(f"Name: {name}; Note: {note}" for name, _, note in ROWS)
HEADS = ["Name", "", "Note"]


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        (".docx", word(paragraph("x"), table(HEADS, *ROWS))),
        (".xlsx", excel({"x": [HEADS, *ROWS]})),
    ],
)
def test_rows_of_a_long_table_carry_their_header(read_one, suffix, data):
    assert read_one(f"a{suffix}", data).text.lstrip("# ") == f"x{BETWEEN}{RECORDS}\n"


def test_a_workbook_is_titled_by_its_author_or_its_file(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(SALES)
    book = openpyxl.load_workbook(BytesIO(SALES))
    book.properties.title = " The sales "
    book.save(tmp_path / "b.xlsx")
    documents, _ = read_documents(tmp_path)
    assert [document.metadata["title"] for document in documents] == ["a.xlsx", "The sales"]


def test_cells_and_text_on_slides_are_no_headings(read_one):
    sheets = {"x _y_": [["# a"], ["b", "c"], ["# d", "1"]], "z": []}
    found = headings(read_one("a.xlsx", excel(sheets)))
    assert found == [(1, "x _y_", "# x _y_"), (1, "z", "# z")]
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[6])
    slide.shapes.add_textbox(*[Inches(1)] * 4).text_frame.text = "# No title"
    assert headings(read_one("a.pptx", saved(slides))) == [(1, "Slide 1", "# Slide 1")]


@pytest.mark.parametrize("suffix", [".doc", ".ppt", ".xls"])
def test_old_files_are_skipped_with_what_to_do(written, suffix):
    (document,), (found,) = read_documents(written({f"a{suffix}": OLD, f"b{suffix}": "Plain."}))
    assert document.text == "Plain."
    assert "; save it as ." in found.reason


def test_linked_pictures_are_not_fetched(read_one):
    """A socket would be refused, and warnings are errors."""
    relation = (
        f'<Relationship Id="r2" Type="{RELATION}/image" TargetMode="External" '
        'Target="http://example.org/a.png"/>'
    )
    wp = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"
    blip = '<pic:pic xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture">'
    blip += '<pic:blipFill><a:blip r:link="r2"/></pic:blipFill></pic:pic>'
    picture = (
        f'<w:p><w:r><w:drawing><wp:inline xmlns:wp="{wp}"><a:graphic><a:graphicData>{blip}'
        "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
    )
    data = word(picture, paragraph("Text."), relations=relation)
    assert read_one("a.docx", data).text == "Text."


LAUGHS = "<!DOCTYPE x [<!ENTITY a0 'ha'>{}]>".format(
    "".join(f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 10))
)


def test_entities_are_not_expanded(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    outside = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    for doctype, entity in ((LAUGHS, "&a9;"), (outside, "&e;")):
        (tmp_path / "a.docx").write_bytes(word(paragraph(f"Word. {entity}"), doctype=doctype))
        for document in read_documents(tmp_path)[0]:
            assert document.id_ == "secret.txt" or "secret" not in document.text
            assert len(document.text) < 100


def test_chapters_are_read_in_their_order_and_headings_are_where_they_stand(read_one):
    chapters = {
        "b.xhtml": "<?xml version='1.0'?><html><head><title/></head><body><h1>First</h1>"
        "<p>An <em>odd</em> day.</p></body></html>",
        "the%20end.xhtml": "<html><head><title>No</title></head><body><h2 id='x'>Second</h2>"
        "<ol><li>one</li><li>two</li></ol></body></html>",
        "gone.xhtml": "",
    }
    document = read_one("a.epub", epub(chapters))
    assert document.text == "First\nAn odd day.\nSecond\n1. one\n2. two"
    assert document.metadata[HEADINGS] == [[1, "First", 0, ""], [2, "Second", 18, ""]]
    about = [document.metadata[key] for key in ("title", "author", "date")]
    assert about == ["A book", "Ada", "1901-02-03"]


def test_each_chapter_is_read_once_and_pictures_are_not(read_one):
    with ZipFile(BytesIO(epub({"a.html": "<p>Once.", "b.png": "\0"}))) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    package = parts["OEBPS/book.opf"].replace(b'"b.png"', b"'b.png' media-type='image/png'")
    again = b"<itemref idref='i0'/>" * 1000 + b"</spine>"
    parts["OEBPS/book.opf"] = package.replace(b"</spine>", again)
    assert read_one("a.epub", zipped(parts)).text == "Once."


def test_chapters_beside_an_article_are_content(read_one):
    article = f"<article><p>{'It is so. ' * 50}</article>"
    book = epub({"a.html": "<p><a href='b.html'>Ada</a>", "b.html": article})
    assert read_one("a.epub", book).text.startswith("Ada\nIt is so.")
