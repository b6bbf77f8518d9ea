"""PDF files are read without running heads, with page labels and headings."""

import pytest
from pdfs import Typed, pdf_of, typed, with_annotations
from read.conftest import placed_headings

from hierindex import read_documents
from hierindex.node import LEFT_OUT, PAGE_LABELS, PAGES, TITLE

TEXT = "A line of the text, which is long enough to be one, and so there are many of them."


@pytest.fixture
def read(read_one):
    return lambda data: read_one("a.pdf", data)


def headings(document):
    return [(heading.level, heading.title) for heading in placed_headings(document)]


def body(top=600, n=20, text=TEXT):
    return [Typed(text, top - 12 * i) for i in range(n)]


PROSE = "Spring came late. The harbour froze. A mild autumn followed. Winter was long.".split(". ")


def paged(n, head=None, foot=None, text=lambda i: PROSE[i % 4], gap=40, **font):
    """Pages of text, each with lines above and below that `head` and `foot` return for it."""
    pages = []
    for i in range(n):
        page = [Typed(f"{text(i)} {'very ' * i}well", 700 - 14 * k) for k in range(9 + i % 3)]
        if head:
            page.insert(0, Typed(head(i), 700 + gap, **font))
        if foot:
            page.append(Typed(foot(i), 30, **font))
        pages.append(page)
    return pages


@pytest.mark.parametrize(
    ("head", "foot", "told"),
    [
        (lambda i: "The Harbour Report", None, "a line at the top of 6 of 6 pages: 'The Harbour"),
        (lambda i: f"The Harbour Report - page {i + 1}", None, "'The Harbour Report - page 1'"),
        (
            lambda i: ("A. Keeper", "On Lamps")[i % 2],
            None,
            "at the top of 3 of 6 pages: 'On Lamps'",
        ),
        (None, lambda i: str(i + 1), "page numbers at the bottom of 6 of 6 pages"),
        (None, lambda i: f"- {i + 241} -", "a line at the bottom of 6 of 6 pages: '- 241 -'"),
        (None, lambda i: f"Seite {i + 1} von 6", "page numbers at the bottom of 6 of 6 pages"),
        (None, lambda i: ["i", "ii", "1", "2", "3", "4"][i], "page numbers at the bottom of 6"),
    ],
)
def test_what_recurs_on_most_pages_apart_from_the_text_is_left_out_and_told(read, head, foot, told):
    document = read(typed(*paged(6, head, foot), labels=True))
    assert document.text == "\f".join("\n".join(line.text for line in page) for page in paged(6))
    assert told in " ".join(document.metadata[LEFT_OUT])


@pytest.mark.parametrize(
    ("head", "font"),
    [
        (lambda i: f"Invoice {1001 + i}", {}),
        (lambda i: f"Statement of 2024-01-0{i + 1}", {}),
        (lambda i: f"Question {i + 1}", {"bold": True}),
        (lambda i: f"{1001 + i}", {}),
        (lambda i: "Our harbour", {"size": 24}),
        (lambda i: f"Step {i + 1}", {"size": 24}),
        (lambda i: "Results", {"gap": 14}),
        (lambda i: ("Fees", "Hours", "Rules")[i % 3], {}),
        (lambda i: "Harbour dues" if i > 3 else f"Note {PROSE[i]}", {}),
    ],
    ids=str,
)
def test_in_doubt_a_line_stays(read, head, font):
    pages = paged(6, head, **font)
    document = read(typed(*pages))
    assert document.text == "\f".join("\n".join(line.text for line in page) for page in pages)
    assert LEFT_OUT not in document.metadata


@pytest.mark.parametrize("gap", [14, 18, 22])
def test_rows_and_column_titles_of_a_long_table_stay(read, gap):
    rows = [f"2024-{1 + i // 28:02}-{1 + i % 28:02} {i * 731 % 997}.50" for i in range(120)]
    pages = [
        [Typed("Date Amount", 740 + gap), *(Typed(row, 740 - 14 * k) for k, row in enumerate(part))]
        for part in (rows[i : i + 30] for i in range(0, 120, 30))
    ]
    text = read(typed(*pages)).text
    assert [line for line in text.splitlines() if line != "Date Amount"] == rows
    assert text.count("Date Amount") == 4


def test_a_number_beside_a_running_head_is_the_pages(read):
    def pages(first):
        return [
            [Typed("Harbour guide", 760), Typed(str(i + first), 760, x=400), *page]
            for i, page in enumerate(paged(6))
        ]

    assert "Harbour guide" not in read(typed(*pages(1))).text
    kept = read(typed(*pages(5001)))
    assert "Harbour guide 5006" in kept.text
    assert headings(kept) == []


@pytest.mark.parametrize("line", ["Account 12-345", "ISO 4711:2020", "VAT reg. 998877"])
def test_what_recurs_with_other_numbers_than_the_pages_is_read_once(read, line):
    for pages in paged(5, lambda i: line), paged(5, None, lambda i: line):
        document = read(typed(*pages))
        assert document.text.count(line) == 1
        assert f"of 4 of 5 pages: '{line}'" in document.metadata[LEFT_OUT][0]


def test_a_stamp_on_the_margin_is_no_heading(read):
    stamp = "BT /F2 20 Tf 0 1 -1 0 30 300 Tm (Draft of 1 January 2021) Tj ET"
    text = " T* ".join("(The rope was wet and heavy in the rain.) Tj" for _ in range(9))
    page = f"BT /F1 14 Tf 72 740 Td (1 Ropes) Tj /F1 10 Tf 12 TL 0 -30 Td {text} ET"
    document = read(typed(f"{page} {stamp}"))
    assert headings(document) == [(1, "1 Ropes")]
    assert "Draft of 1 January 2021" in document.text


def test_footnotes_stay(read):
    pages = [[*page, Typed(f"{i + 1} See note {i * i}.", 40)] for i, page in enumerate(paged(5))]
    text = read(typed(*pages)).text
    assert all(f"{i + 1} See note {i * i}." in text for i in range(5))


def test_dot_leaders_are_left_out(read):
    lines = {
        "1 One . . . . . . . 3": "1 One",
        "Preface.......... iv": "Preface",
        "2.1 Two ..... 12": "2.1 Two",
        "And so on...": "And so on...",
        "etc....": "etc....",
    }
    page = [Typed(line, 700 - 20 * i) for i, line in enumerate(lines)]
    assert read(typed(page)).text.splitlines() == [*lines.values()]


def test_page_labels_are_metadata_if_they_are_not_the_numbers(read):
    pages = [body(n=1)] * 4
    assert read(typed(*pages, labels=True)).metadata[PAGE_LABELS] == ["i", "ii", "1", "2"]
    assert PAGE_LABELS not in read(typed(*pages)).metadata


def test_headings_of_an_outline(read):
    first = [Typed("1 Results", 740, 18, True), *body(700, 5)]
    second = [
        Typed("2.1 A title that is so long that", 740, 14, True),
        Typed("it takes two lines", 724, 14, True),
        *body(700, 5),
    ]
    outline = [
        ("Results", 0, 750, None),
        ("A title that is so long that it takes two lines", 1, 750, 0),
        ("Nowhere to be found", 1, 300, None),
    ]
    assert headings(read(typed(first, second, outline=outline))) == [
        (1, "1 Results"),
        (2, "2.1 A title that is so long that it takes two lines"),
    ]


def test_the_number_of_a_page_is_not_in_the_heading_below_it(read):
    pages = [[Typed("4", 745), Typed("1 Aims", 720, 18, True), *body(690, 5)], body()]
    pages += [[Typed("6", 745), Typed("Results", 720, 18, True), *body(690, 5)]]
    outline = [("1 Aims", 0, 745, None), ("Results", 2, 745, None)]
    assert headings(read(typed(*pages, outline=outline))) == [(1, "1 Aims"), (1, "Results")]


def test_the_title_of_a_page_is_found_where_the_outline_begins_below_it(read):
    page = [Typed("Lamps of the coast", 760, 18), Typed("Ada Holm", 730, 12), *body(700, 5)]
    page += [Typed("1 Aims", 620, 14, True), *body(600, 5), Typed("2 Results", 520, 14, True)]
    outline = [("1 Aims", 0, 630, None), ("2 Results", 0, 530, None)]
    found = read(typed([*page, *body(500, 5)], outline=outline))
    assert found.metadata[TITLE] == "Lamps of the coast"
    assert headings(found) == [(1, "1 Aims"), (1, "2 Results")]


@pytest.mark.parametrize(
    ("stated", "outlined", "title"),
    [
        ("The  Report: 2024", [("Aims", None), ("Results", None)], "The Report: 2024"),
        ("Microsoft Word - x.doc", [("Aims", None), ("Results", None)], "a.pdf"),
        ("Lamps of the coast", [("Aims", None), ("Results", None)], "Lamps of the coast"),
        ("untitled", [("Aims", None), ("Results", None)], "a.pdf"),
        ("report_final2", [("Aims", None), ("Results", None)], "a.pdf"),
        ("C:\\\\work\\\\Report.indd", [("Aims", None), ("Results", None)], "a.pdf"),
        ("", [("Aims", None), ("Results", None)], "a.pdf"),
        ("", [("Aims", None), ("Results", 0)], "Aims"),
        ("", [], None),
    ],
)
def test_title_is_of_the_properties_or_the_highest_heading(read, stated, outlined, title):
    page = [Typed("THE REPORT 2024", 760), Typed("Aims", 740), *body(700, 5)]
    page.append(Typed("Results", 600))
    outline = [(name, 0, 750 - 140 * i, above) for i, (name, above) in enumerate(outlined)]
    assert read(typed(page, outline=outline, stated=stated)).metadata.get(TITLE) == title


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("Lamps of the coast", "Lamps of the coast"),
        ("x = 2y + 1", "a.pdf"),
        ("University of the Coast", "a.pdf"),
        ("1 Introduction", "a.pdf"),
    ],
)
def test_only_a_heading_that_reads_like_a_title_is_one(read, heading, title):
    pages = [[Typed(heading, 740, 20), *body()], [Typed("Fees", 740, 14), *body()]]
    assert read(typed(*pages)).metadata[TITLE] == title


def test_a_heading_under_other_text_is_no_title(read):
    assert (
        read(typed([*body(700, 20), Typed("Fees", 400, 20), *body(360)])).metadata[TITLE] == "a.pdf"
    )


@pytest.mark.parametrize(
    ("author", "created", "about"),
    [
        ("Ada  King", "D:20240305102030+01'00'", ("Ada King", "2024-03-05")),
        ("(anonymous)", "D:20240305102030Z00'00'", (None, "2024-03-05")),
        ("admin", "D:20240305", (None, "2024-03-05")),
        ("", "D:20249905", (None, None)),
        ("-", "yesterday", (None, None)),
    ],
)
def test_author_and_date_of_the_properties_are_metadata(read, author, created, about):
    metadata = read(typed(body(), Author=author, CreationDate=created)).metadata
    assert (metadata.get("author"), metadata.get("date")) == about


def test_headings_by_their_fonts(read):
    page = [
        Typed("The Report", 740, 20),
        Typed("1 Results", 700, 14, True),
        *body(680, 6),
        Typed("1.1 Timing", 590, 10, True),
        *body(576, 6),
        Typed("Note", 504, 10, True),
        Typed("2 A discussion of what we have found in", 440, 14, True),
        Typed("the two years", 424, 14, True),
        *body(404, 6),
        Typed("3", 300, 14, True),
    ]
    assert headings(read(typed(page))) == [
        (1, "The Report"),
        (2, "1 Results"),
        (3, "1.1 Timing"),
        (2, "2 A discussion of what we have found in the two years"),
    ]


@pytest.mark.parametrize(
    "page",
    [
        body(),
        [Typed(line.text, line.y, 10, i % 2 == 0) for i, line in enumerate(body())],
        [*body(), *(Typed(TEXT, 300 - 20 * i, 14) for i in range(5))],
        [Typed("1", 700, 20), *body()],
    ],
    ids=["one font", "every other line bold", "a large paragraph", "a number"],
)
def test_no_headings_by_fonts_where_it_is_unsure(read, page):
    assert headings(read(typed(page))) == []


def test_bold_headings_may_be_smaller_than_the_text(read):
    index = [Typed("A", 700, 9, True), *body(689, 3), Typed("12", 640, 5, True)]
    index.append(Typed("B", 620, 9, True))
    index.append(Typed("tiny", 560, 5, True))
    assert headings(read(typed([*index, *body()]))) == [(1, "A"), (1, "B")]


def test_bold_terms_begin_lines_but_numbered_headings_may_end_in_code(read):
    page = [
        Typed("Note:", 740, bold=True),
        Typed("it is good to know.", 740, x=110),
        *body(700, 6),
        Typed("1.1 Option", 600, bold=True),
        Typed("draft", 600, x=130),
        *body(576, 6),
    ]
    assert headings(read(typed(page))) == [(1, "1.1 Option draft")]


def test_many_bold_headings_are_not_the_text(read):
    page = []
    for i in range(9):
        page.append(Typed(f"The option number {i}", 740 - 60 * i, 14, True))
        page += body(724 - 60 * i, 2, "It is an option.")
    assert len(headings(read(typed(page)))) == 9


def test_list_items_and_footnotes_are_no_headings(read):
    page = [Typed("Results", 740, bold=True), *body(720, 20)]
    page += [Typed("* A footnote", 420, bold=True), Typed("- An item", 390, bold=True)]
    assert headings(read(typed(page))) == [(1, "Results")]


def test_entries_of_a_table_of_contents_are_no_headings(read):
    contents = [
        Typed("Contents", 740, 14, True),
        *(Typed(f"{i} Part {i} 1{i}", 700 - 40 * i, 14, True) for i in range(3)),
        *(Typed(f"Section {i} . . . . . . . . {i}", 500 - 20 * i) for i in range(3)),
    ]
    assert headings(read(typed(contents, body(n=40)))) == [(1, "Contents")]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("They pay more and more atten-\ntion to it.", "attention"),
        ("A test of exam-\nples. One example is here.", "examples"),
        ("Under order ORD-\n77 it came.", "ORD-77"),
        ("Write to lamp@coast-\nguard.example today.", "lamp@coast-guard.example"),
        ("A fire of oil-\nsoaked cloth. The oil was old, the cloth soaked.", "oil-soaked"),
        ("A long-\nterm plan. It is long-term.", "long-term"),
        ("By the Franco-\nPrussian war.", "Franco-Prussian"),
        ("It was out-\nof-the-\nway, on the coast.", "-the-way"),
        ("In 1911-\n1912 it froze.", "1911-"),
    ],
)
def test_hyphens_at_the_end_of_lines(read, lines, words):
    assert words in read(pdf_of(lines)).text


@pytest.mark.parametrize(
    ("typeset", "words"),
    [
        ("de\\034ned", "defined"),
        ("a \\035ame o\\033ered", "a flame offered"),
        ("e\\036cient ba\\037ed", "efficient baffled"),
        ("\\034ve \\020lamps\\021", "five \u201clamps\u201d"),
    ],
)
def test_control_bytes_of_fonts_are_the_letters_they_show(read, typeset, words):
    assert words in read(pdf_of(f"It is {typeset} here.")).text


IMAGE = "0 0 300 300 re f"


@pytest.mark.parametrize(
    ("pages", "left_out"),
    [
        ([body(), IMAGE, IMAGE], ["2 of 3 pages have no text"]),
        ([IMAGE, body()], ["1 of 2 pages has no text"]),
        ([body(), ""], None),
        ([body()], None),
    ],
)
def test_pages_without_text_are_told(read, pages, left_out):
    document = read(typed(*pages))
    assert document.metadata.get(LEFT_OUT) == left_out
    assert document.metadata[PAGES] == len(pages)


def test_filled_fields_are_read_and_comments_told(read):
    data = with_annotations(
        typed([Typed("Application", 700), Typed("Name:", 306, x=30)]),
        {"Type": "/Annot", "Subtype": "/Widget", "FT": "/Tx", "T": "name", "V": "Grace Hopper"},
        {"Subtype": "/FreeText", "Contents": "Received in May"},
        {"Subtype": "/Text", "Contents": "Is this right?"},
    )
    document = read(data)
    assert "Grace Hopper" in document.text
    assert "Received in May" in document.text
    assert document.metadata[LEFT_OUT] == ["1 comment"]


def test_odd_outlines_and_labels_do_not_keep_files_from_being_read(tmp_path):
    line = Typed("Some text here.", 700)
    outlined = typed([line], outline=[("x", 0, 700, None)])
    assert b"/XYZ 72 700 null" in outlined
    odd = {
        "destination.pdf": outlined.replace(b"/XYZ 72 700 null", b"/XYZ 72         "),
        "label.pdf": pdf_of(line.text).replace(
            b"/Type /Catalog", b"/Type /Catalog /PageLabels << /Nums [0 << /P <FEFFD800> >>] >>"
        ),
    }
    for name, data in odd.items():
        (tmp_path / name).write_bytes(data)
    documents, skipped = read_documents(tmp_path)
    assert ([d.text for d in documents], skipped) == ([line.text] * 2, [])
