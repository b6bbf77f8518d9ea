"""What Word computes, merges, raises, strikes and hides."""

from io import BytesIO
from zipfile import ZipFile

import pytest
from office_files import (
    RELATION,
    cell,
    grid,
    item,
    numbering,
    paragraph,
    run,
    runs,
    table,
    word,
    zipped,
)

from hierindex.errors import SourceError
from hierindex.node import HEADINGS, LEFT_OUT
from hierindex.read import word as reader

SUPER = '<w:vertAlign w:val="superscript"/>'
SUB = '<w:vertAlign w:val="subscript"/>'
STRUCK = "<w:strike/>"
HIDDEN = "<w:vanish/>"
STRUCK_ONCE = ["1 word struck out"]
DELETED = "<w:del><w:r><w:delText>40</w:delText></w:r></w:del>"


@pytest.fixture
def text_of(read_one):
    def text_of(*blocks, **more):
        return read_one("a.docx", word(*blocks, **more)).text

    return text_of


LEGAL = numbering(("decimal", "%1.", ""), ("decimal", "%1.%2", ""), ("lowerLetter", "(%3)", ""))


def test_numbers_of_headings_and_clauses_are_text_and_headings_have_them(read_one):
    document = read_one(
        "a.docx",
        word(
            paragraph("Lease", "Title"),
            item("Rent", style="Heading1"),
            item("It is due in May.", 1),
            item("It is paid", 1),
            item("in coins;", 2),
            item("or in kind.", 2),
            item("End", style="Heading1"),
            item("On notice.", 1),
            parts=LEGAL,
        ),
    )
    assert document.text == (
        "# Lease\n\n# 1. Rent\n\n1.1 It is due in May.\n1.2 It is paid\n  (a) in coins;\n"
        "  (b) or in kind.\n\n# 2. End\n\n2.1 On notice."
    )
    headings = [
        (title, document.text[start:][: len(title) + 2])
        for _, title, start, *_ in headings_of(document)
    ]
    assert headings == [(title, f"# {title}") for title in ("Lease", "1. Rent", "2. End")]


def headings_of(document):
    return document.metadata[HEADINGS]


@pytest.mark.parametrize(
    ("kind", "third", "twenty_eighth"),
    [
        ("decimal", "3", "28"),
        ("decimalZero", "03", "28"),
        ("lowerLetter", "c", "bb"),
        ("upperLetter", "C", "BB"),
        ("lowerRoman", "iii", "xxviii"),
        ("upperRoman", "III", "XXVIII"),
        ("hebrew1", "3", "28"),
    ],
)
def test_formats_of_numbers(text_of, kind, third, twenty_eighth):
    parts = numbering((kind, "Article %1:", ""))
    lines = text_of(*[item("x")] * 28, parts=parts).split("\n")
    assert lines[2] == f"Article {third}: x"
    assert lines[27] == f"Article {twenty_eighth}: x"


def test_texts_around_numbers_are_cut(text_of):
    text = text_of(item("x"), parts=numbering(("decimal", f"%1{'.' * 5000}", "")))
    assert text == f"1{'.' * 98} x"


def test_lists_start_restart_and_go_on_where_they_say(text_of):
    nums = (
        "<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num>"
        "<w:num w:numId='2'><w:abstractNumId w:val='0'/><w:lvlOverride w:ilvl='0'>"
        "<w:startOverride w:val='7'/></w:lvlOverride></w:num>"
        "<w:num w:numId='3'><w:abstractNumId w:val='0'/></w:num>"
    )
    parts = numbering(("decimal", "%1.", ""), nums=nums)
    blocks = [item("a"), paragraph("Between."), item("b"), item("c", num=2), item("d", num=2)]
    text = text_of(*blocks, item("e", num=3), item("f", num=0), parts=parts)
    assert text == "1. a\n\nBetween.\n\n2. b\n7. c\n8. d\n9. e\n\nf"


def test_levels_restart_below_those_above(text_of):
    parts = numbering(
        ("upperRoman", "%1", ""), ("decimal", "%1.%2", "<w:isLgl/>"), ("lowerLetter", "%3)", "")
    )
    levels = [0, 1, 2, 2, 0, 1, 2]
    text = text_of(*(item("x", level) for level in levels), parts=parts)
    numbers = [line.split()[0] for line in text.split("\n")]
    assert numbers == ["I", "1.1", "a)", "b)", "II", "2.1", "a)"]


def test_styles_number_their_paragraphs(text_of):
    styles = (
        '<w:style w:type="paragraph" w:styleId="Clause"><w:name w:val="Clause"/><w:pPr><w:numPr>'
        '<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:type="paragraph" w:styleId="Sub"><w:name w:val="Sub"/>'
        '<w:basedOn w:val="Clause"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Section"><w:name w:val="Section"/><w:pPr>'
        '<w:outlineLvl w:val="1"/></w:pPr></w:style>'
    )
    parts = numbering(("decimal", "§ %1", ""), ("decimal", "%1.%2", '<w:pStyle w:val="Sub"/>'))
    blocks = [paragraph("Rent", "Clause"), paragraph("Due in May.", "Sub")]
    text = text_of(*blocks, paragraph("Fees", "Section"), styles=styles, parts=parts)
    assert text == "§ 1 Rent\n1.1 Due in May.\n\n## Fees".replace("\n1.1", "\n  1.1")


def test_bullets_and_unknown_lists(text_of):
    parts = numbering(("bullet", "\uf0b7", ""), ("bullet", "o", ""), ("none", "", ""))
    text = text_of(item("a"), item("b", 1), item("c", 2), item("d", num=9), parts=parts)
    assert text == "- a\n  - b\n\nc\n\nd"


def test_deleted_paragraphs_are_not_counted(text_of):
    deleted = "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    gone = item("").replace("</w:pPr>", f"<w:rPr><w:del/></w:rPr></w:pPr>{deleted}")
    parts = numbering(("decimal", "%1.", ""))
    assert text_of(item("a"), gone, item("b"), parts=parts) == "1. a\n2. b"


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        (  # a head of two columns, above two heads
            [
                [cell("Room", 1, "restart"), cell("Rent", 2)],
                [cell("", 1, "continue"), cell("2023"), cell("2024")],
                [cell("A"), cell("1"), cell("2")],
            ],
            ["| Room | Rent / 2023 | Rent / 2024 |", "| --- | --- | --- |", "| A | 1 | 2 |"],
        ),
        (  # a head of two columns, above data
            [[cell("Name"), cell("Calls", 2)], [cell("Ada"), cell("1"), cell("2")]],
            ["| Name | Calls | Calls |", "| --- | --- | --- |", "| Ada | 1 | 2 |"],
        ),
        (  # a title, and a row of one cell
            [
                [cell("Prices", 2)],
                [cell("Item"), cell("Price")],
                [cell("Tools", 2)],
                [cell("Saw"), cell("9")],
            ],
            ["Prices", "", "| Item | Price |", "| --- | --- |", "| Tools |  |", "| Saw | 9 |"],
        ),
        (  # a long text, which is written once
            [[cell("a"), cell("b"), cell("c")], [cell("1"), cell("x" * 101, 2)]],
            ["| a | b | c |", "| --- | --- | --- |", f"| 1 | {'x' * 101} |  |"],
        ),
    ],
    ids="heads data title long".split(),
)
def test_values_stay_below_their_heads(text_of, rows, lines):
    assert text_of(grid(*rows)).split("\n") == lines


def test_tables_for_layout_are_text(text_of):
    inside = f"<w:tc>{paragraph('Left.', 'Heading1')}{table(['a', 'b'], ['1', '2'])}</w:tc>"
    text = text_of(grid([inside, cell("Right.")]), grid([cell("One.")], [cell("Two.")]))
    assert text == "# Left.\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nRight.\n\nOne.\n\nTwo."


def test_wide_cells_of_hostile_files_do_not_grow(read_one):
    wide = cell("x" * 100, 10**8, "restart")
    text = read_one("a.docx", word(grid([wide] * 100, [cell("a"), cell("b")]))).text
    assert len(text) < 10**6


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ([run("10"), run("6", SUPER), run(" m")], "10^6 m"),
        ([run("10"), run("\u2212", SUPER), run("6", SUPER)], "10^\u22126"),
        ([run("101"), run("2", SUB)], "101_2"),
        ([run("5"), run("6", '<w:vertAlign w:val="baseline"/>')], "56"),
    ],
)
def test_superscripts_are_no_digits_of_the_number_before(text_of, inside, text):
    assert text_of(runs(*inside)) == text


@pytest.mark.parametrize(
    ("inside", "text", "unread"),
    [
        ([run("Pay "), run("4", STRUCK), run("0", STRUCK), run("50.")], "Pay 50.", STRUCK_ONCE),
        ([run("Pay "), run("40", "<w:dstrike/>"), run("50.")], "Pay 50.", STRUCK_ONCE),
        ([run("Pay "), run("50.", '<w:strike w:val="0"/>')], "Pay 50.", None),
        ([run("Seen."), run(" Not.", HIDDEN)], "Seen.", ["1 word not displayed"]),
        (
            [run("Seen."), run(" Not "), run("at all", HIDDEN)],
            "Seen. Not",
            ["2 words not displayed"],
        ),
        ([run("Seen."), run(" Too.", '<w:vanish w:val="false"/>')], "Seen. Too.", None),
        ([DELETED, "<w:ins>", run("50"), "</w:ins>"], "50", None),
        ([f"<w:moveFrom>{run('40')}</w:moveFrom>", run("50")], "50", None),
        ([f"<w:moveTo>{run('50')}</w:moveTo>"], "50", None),
    ],
)
def test_struck_and_hidden_text_is_left_out(read_one, inside, text, unread):
    document = read_one("a.docx", word(runs(*inside)))
    assert document.text == text
    assert document.metadata.get(LEFT_OUT) == unread


def test_styles_strike_and_hide(read_one):
    styles = "".join(
        f'<w:style w:type="{kind}" w:styleId="{name}"><w:rPr>{mark}</w:rPr></w:style>'
        for kind, name, mark in [("character", "Old", STRUCK), ("paragraph", "Secret", HIDDEN)]
    )
    struck = runs(run("Pay "), run("40", '<w:rStyle w:val="Old"/>'), run("50."))
    document = read_one("a.docx", word(struck, paragraph("Not.", "Secret"), styles=styles))
    assert document.text == "Pay 50."
    assert document.metadata[LEFT_OUT] == ["1 word struck out", "1 word not displayed"]


def test_notes_have_marks_in_brackets(text_of):
    def note(kind, at):
        return f'<w:r><w:{kind}Reference w:id="{at}"/></w:r>'

    parts = {
        f"{kind}s.xml": f"<w:{kind}s>"
        + "".join(f'<w:{kind} w:id="{i}">{paragraph(f"{kind} {i}.")}</w:{kind}>' for i in (1, 2, 3))
        + f"</w:{kind}s>"
        for kind in ("footnote", "endnote")
    }
    first = runs(run("Since 1990"), note("footnote", 2), run(", or later"), note("endnote", 1))
    text = text_of(first, runs(run("Again"), note("footnote", 1)), parts=parts)
    assert text == (
        "Since 1990[1], or later[2]\n\nAgain[3]\n\n"
        "[1] footnote 2.\n\n[2] endnote 1.\n\n[3] footnote 1."
    )


def math(inside):
    return f"<m:oMath>{inside}</m:oMath>"


def part(name, text):
    return f"<m:{name}><m:r><m:t>{text}</m:t></m:r></m:{name}>"


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (f"<m:sSup>{part('e', 'c')}{part('sup', '2')}</m:sSup>", "c^2"),
        (f"<m:f>{part('num', 'a+b')}{part('den', '2')}</m:f>", "(a+b)/2"),
        (
            f"<m:d><m:e><m:f><m:fPr><m:type m:val='noBar'/></m:fPr>{part('num', 'n')}"
            f"{part('den', 'k')}</m:f></m:e></m:d>",
            "(n choose k)",
        ),
        (
            f"<m:sSup><m:e><m:d>{part('e', 'x+a')}</m:d></m:e>{part('sup', 'n')}</m:sSup>",
            "(x+a)^n",
        ),
        (f"<m:rad><m:deg/>{part('e', 'x')}</m:rad>", "√x"),
        (
            f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr>{part('sub', 'i=1')}"
            f"{part('sup', 'n')}{part('e', 'i')}</m:nary>",
            "∑_(i=1)^n i",
        ),
        (f"<m:sPre>{part('sub', '6')}{part('sup', '14')}{part('e', 'C')}</m:sPre>", "_6^14C"),
        (f"<m:d>{part('e', 'x')}{part('e', 'y')}</m:d>", "(x|y)"),
        (
            f"<m:m><m:mr>{part('e', '1')}{part('e', '0')}</m:mr>"
            f"<m:mr>{part('e', '0')}{part('e', '1')}</m:mr></m:m>",
            "[1, 0; 0, 1]",
        ),
    ],
)
def test_equations_are_text(text_of, inside, text):
    assert text_of(runs(run("It is "), math(inside), run("."))) == f"It is {text}."


def edges(*kinds):
    """Page headers and footers by their kinds and ids: a section, relations and parts."""
    section = "".join(f'<w:{kind}Reference r:id="r{at}"/>' for kind, at, _ in kinds)
    relations = "".join(
        f'<Relationship Id="r{at}" Type="{RELATION}/{kind}" Target="{kind}{at}.xml"/>'
        for kind, at, _ in kinds
    )
    parts = {f"{kind}{at}.xml": f"<w:hdr>{inside}</w:hdr>" for kind, at, inside in kinds}
    return f"<w:sectPr>{section}</w:sectPr>", relations, parts


def test_page_headers_and_footers_are_read_once(text_of):
    section, relations, parts = edges(
        ("header", 11, table(["Contract", "4711-B"])),
        ("header", 12, table(["Contract", "4711-B"])),
        ("footer", 13, paragraph("Harbour Board")),
        ("footer", 14, paragraph("Page 3 of 12")),
        ("footer", 15, paragraph("- iv -")),
    )
    text = text_of(paragraph("Rent", "Heading1"), section, relations=relations, parts=parts)
    assert text == "Page header: Contract | 4711-B\n\nPage footer: Harbour Board\n\n# Rent"


def test_text_boxes_are_read_once_and_pictures_and_comments_counted(read_one):
    box = f"<w:txbxContent>{paragraph('Boxed.')}</w:txbxContent>"
    drawing = (
        f"<w:r><mc:AlternateContent><mc:Choice><w:drawing>{box}</w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )
    comments = "<w:comments><w:comment/><w:comment/></w:comments>"
    data = word(
        runs(run("Before."), drawing),
        parts={"comments.xml": comments, "media/image1.png": "<odd>"},
    )
    document = read_one("a.docx", data)
    assert document.text == "Before.\n\nBoxed."
    assert document.metadata[LEFT_OUT] == ["1 picture", "2 comments"]


CREATED = "<dcterms:created>2024-03-05T10:00:00Z</dcterms:created>"


BY_TWO = f"<dc:title>Rules</dc:title><dc:creator>Ada; Bob</dc:creator>{CREATED}"
BY_LIBRARY = f"<dc:creator>python-docx</dc:creator>{CREATED}"
AT_ZERO = "<dcterms:created>1970-01-01T00:00:00Z</dcterms:created>"


@pytest.mark.parametrize(
    ("core", "blocks", "expected"),
    [
        (
            BY_TWO,
            [paragraph("x"), paragraph("Fees", "Heading1")],
            ("Rules", "Ada, Bob", "2024-03-05"),
        ),
        (
            "<dc:title>Document1</dc:title><dc:creator>User</dc:creator>",
            [paragraph("x"), paragraph("The rules", "Title")],
            ("The rules", None, None),
        ),
        (
            f"<dc:title>Microsoft Word - a.doc</dc:title>{BY_LIBRARY}",
            [paragraph("Fees", "Heading2")],
            ("Fees", None, None),
        ),
        ("", [paragraph("x"), paragraph("Fees", "Heading2")], ("a.docx", None, None)),
        (AT_ZERO, [paragraph("x", "Heading1")], ("x", None, None)),
    ],
)
def test_titles_authors_and_dates(read_one, core, blocks, expected):
    found = read_one("a.docx", word(*blocks, core=core)).metadata
    assert tuple(found.get(key) for key in ("title", "author", "date")) == expected


def test_long_paragraphs_in_styles_of_headings_are_no_headings(read_one):
    document = read_one("a.docx", word(paragraph("It is so. " * 30, "Heading2")))
    assert HEADINGS not in document.metadata


def test_charts_and_diagrams_of_word_are_text(text_of):
    def drawn(inside):
        return f"<w:p><w:r><w:drawing>{inside}</w:drawing></w:r></w:p>"

    dgm = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
    relations = (
        f'<Relationship Id="r11" Type="{RELATION}/chart" Target="charts/chart1.xml"/>'
        f'<Relationship Id="r12" Type="{RELATION}/diagramData" Target="diagrams/data1.xml"/>'
    )
    point = '<c:pt idx="{}"><c:v>{}</c:v></c:pt>'
    series = (
        f"<c:ser><c:tx><c:strRef><c:strCache>{point.format(0, 'Boats')}"
        "</c:strCache></c:strRef></c:tx>"
        f"<c:cat><c:strRef><c:strCache>{point.format(0, 'May')}{point.format(1, 'June')}"
        "</c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache>"
        f"<c:formatCode>0%</c:formatCode>{point.format(1, 0.5)}"
        "</c:numCache></c:numRef></c:val></c:ser>"
    )
    plot = f"<c:plotArea><c:barChart>{series}</c:barChart></c:plotArea>"
    chart = f"<c:chartSpace><c:chart>{plot}</c:chart></c:chartSpace>"
    shapes = "".join(
        f"<dgm:pt><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>"
        for text in ("Plan", "Build")
    )
    text = text_of(
        *[drawn('<c:chart r:id="r11"/>')] * 2,
        drawn(f'<dgm:relIds xmlns:dgm="{dgm}" r:dm="r12"/>'),
        relations=relations,
        parts={
            "charts/chart1.xml": chart,
            "diagrams/data1.xml": f'<dgm:dataModel xmlns:dgm="{dgm}">{shapes}</dgm:dataModel>',
        },
    )
    assert text == (
        "Chart\n\n|  | Boats |\n| --- | --- |\n| May |  |\n| June | 50% |\n\nPlan\n\nBuild"
    )


def test_strict_files_are_read(read_one):
    data = word(paragraph("Rent", "Heading1"), item("Due."), parts=LEGAL)
    strict = {}
    with ZipFile(BytesIO(data)) as archive:
        for name in archive.namelist():
            strict[name] = archive.read(name).replace(
                b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
                b"http://purl.oclc.org/ooxml/wordprocessingml/main",
            )
    assert read_one("a.docx", zipped(strict)).text == "# Rent\n\n1. Due."


def test_many_merged_cells_are_skipped(read_one, monkeypatch):
    monkeypatch.setattr(reader, "MAX_CELLS", 99)
    with pytest.raises(SourceError, match="has more than 99 cells in tables"):
        read_one("a.docx", word(grid(*[[cell("a", 50)]] * 2)))


def test_embedded_documents_are_counted(read_one):
    document = read_one("a.docx", word(paragraph("Rent"), '<w:altChunk r:id="r11"/>'))
    assert document.text == "Rent"
    assert document.metadata[LEFT_OUT] == ["1 embedded document"]
