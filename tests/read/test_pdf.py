"""PDF files are read without running heads, with page labels and headings."""

import pytest
from pdfs import Typed, pdf_of, typed

from hierindex.node import HEADINGS, PAGE_LABELS, PAGES, TITLE, Heading
from hierindex.read.documents import (
    read_documents,
)

TEXT = "A line of the text, which is long enough to be one, and so there are many of them."


@pytest.fixture
def read(tmp_path):
    def read(data):
        (tmp_path / "a.pdf").write_bytes(data)
        (document,), skipped = read_documents(tmp_path / "a.pdf")
        assert not skipped
        return document

    return read


def headings(document):
    found = [Heading(*values) for values in document.metadata.get(HEADINGS, [])]
    for heading in found:
        assert document.text.startswith(heading.title, heading.start)
        assert heading.start == 0 or document.text[heading.start - 1] in "\n\f"
    return [(heading.level, heading.title) for heading in found]


def body(top=600, n=20, text=TEXT):
    return [Typed(text, top - 12 * i) for i in range(n)]


def test_running_heads_and_page_numbers_are_left_out(read):
    sections = "Spring Summer Autumn Winter Spring Spring Summer Summer".split()
    pages = [
        [
            Typed(f"Chapter {1 + i // 4}: {section}", 760),
            *body(n=3, text=f"It is {section} on page {i + 1}, {'well ' * i}."),
            Typed(str(i + 1), 30),
        ]
        for i, section in enumerate(sections)
    ]
    pages[3][0] = Typed("A section of one page", 760)
    assert read(typed(*pages)).text == "\f".join(
        "\n".join(line.text for line in page[1:-1]) for page in pages
    )


def test_lines_that_recur_elsewhere_are_kept(read):
    pages = [[Typed("end", 700 - 50 * i), *body(300 - 20 * i, 3)] for i in range(4)]
    assert read(typed(*pages)).text.count("end") == 4
    assert read(typed(*[[Typed("Head", 700), *body()]] * 2)).text.count("Head") == 2


def test_dot_leaders_are_left_out(read):
    lines = [
        "1 One . . . . . . . 3",
        "Preface.......... iv",
        "2.1 Two ..... 12",
        "And so on...",
        "etc....",
    ]
    page = [Typed(line, 700 - 20 * i) for i, line in enumerate(lines)]
    assert read(typed(page)).text.splitlines() == [
        "1 One",
        "Preface",
        "2.1 Two",
        "And so on...",
        "etc....",
    ]


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
        Typed("Results. They are good.", 500),
        Typed("Timlng of It", 450),
    ]
    outline = [
        ("Results", 0, 750, None),
        ("A title that is so long that it takes two lines", 1, 750, 0),
        ("Results", 1, 510, 1),
        ("Timing of it", 1, 460, 1),
        ("Nowhere to be found", 1, 300, None),
    ]
    assert headings(read(typed(first, second, outline=outline))) == [
        (1, "1 Results"),
        (2, "2.1 A title that is so long that it takes two lines"),
        (3, "Results"),
        (3, "Timlng of It"),
    ]


@pytest.mark.parametrize(
    ("stated", "outlined", "title"),
    [
        ("The  Report: 2024", [("Aims", None), ("Results", None)], "The Report: 2024"),
        ("Microsoft Word - x.doc", [("Aims", None), ("Results", None)], "a.pdf"),
        ("", [("Aims", None), ("Results", None)], "a.pdf"),
        ("", [("Aims", None), ("Results", 0)], "Aims"),
        ("", [], None),
    ],
)
def test_title_is_stated_on_the_first_page_or_the_highest_heading(read, stated, outlined, title):
    page = [Typed("THE REPORT 2024", 760), Typed("Aims", 740), *body(700, 5)]
    page.append(Typed("Results", 600))
    outline = [(name, 0, 750 - 140 * i, above) for i, (name, above) in enumerate(outlined)]
    assert read(typed(page, outline=outline, stated=stated)).metadata.get(TITLE) == title


def test_a_damaged_title_is_none(read):
    data = typed(body(n=1), stated="AB")
    damaged = data.replace(b"/Title (AB)", b"/Title (\xfe\xff\xd8\x00)")
    assert damaged != data
    assert TITLE not in read(damaged).metadata


def test_an_outline_of_other_words_is_not_used(read):
    page = [Typed("Results", 740, 18, True), *body(700, 9)]
    outline = [(f"Slide {i}", 0, 700, None) for i in range(3)]
    assert headings(read(typed(page, outline=outline))) == [(1, "Results")]


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


def test_text_beside_much_code_is_no_heading(read):
    code = [body(700 - 12 * i, 1, "a = b; " * 9)[0]._replace(size=7) for i in range(40)]
    page = [Typed("Results", 760, 14), *code]
    for y, n in ((200, 1), (160, 1), (120, 4), (50, 2)):
        page += body(y, n, "We explain.")
    assert headings(read(typed(page))) == [(1, "Results")]


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


def test_hyphens_at_the_end_of_lines_are_joined(read):
    assert "attention" in read(pdf_of("They pay more and more atten-\ntion to the words.")).text


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


PAGES_OF_PDF = ["The first page.\nIt has two lines.", "The second page is here.", "A third one."]


def test_pages_of_a_pdf_are_joined_by_form_feeds(read_one):
    document = read_one("a.pdf", pdf_of(*PAGES_OF_PDF))
    assert document.text == "\f".join(PAGES_OF_PDF)
    assert document.metadata[PAGES] == 3
