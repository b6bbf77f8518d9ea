"""Rich Text Format, and files whose suffix does not say what they are."""

import pytest

from hierindex import read_documents
from hierindex.errors import SourceError

BEGIN = r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fnil Arial;}{\f1\fnil\fcharset204 Arial;}}"


@pytest.mark.parametrize(
    ("rtf", "text"),
    [
        (r"Two\par lines\par}", "Two\n\nlines"),
        (r"caf\'e9, 5 \'80 \u8211 ? \u-10179?\u-8704?!}", "café, 5 € – 😀!"),
        (r"\uc2\u233\'c3\'a9t\u233 ab\uc0\u233 .}", "étéé."),
        (r"\f1 \'cf\'f0\'e8\'e2\'e5\'f2\f0  caf\'e9}", "Привет café"),
        (r"a\ldblquote b\rdblquote\~c\_d\-e \{x\} \\}", "a“b”\xa0c-de {x} \\"),
        (r"{\stylesheet{\s1 Title;}}{\*\generator X;}{\info{\operator Me}}Body}", "Body"),
        (r"See{\field{\*\fldinst HYPERLINK 'u'}{\fldrslt  here}}.}", "See here."),
        (r"Kept{\*\footnote \pard A note.\par}.}", "Kept [A note.]."),
        (r"{\listtext\tab 14.\tab}Clause\par{\pntext 2.\tab}Next}", "14.\tClause\n\n2.\tNext"),
        (r"10{\super 6} m}", "10^6 m"),
        (r"{\pict\bin4 }}}}x}y}", "y"),
        (r"a\u0 ?b\'00c}", "abc"),
        (r"{\shp{\*\shpinst{\sp{\sn a}{\sv b}}{\shptxt In a box}}{\shprslt c}}}", "In a box"),
        ("One line\nfolded\\\nand next", "One linefolded\n\nand next"),
        (r"}}}}{{{{\u \f \uc x \'zz", "x zz"),
        ("{" * 20_000 + "deep", "deep"),
    ],
)
def test_text_of_rtf(read_one, rtf, text):
    assert read_one("a.rtf", BEGIN + rtf).text == text


def test_headings_tables_and_properties(read_one):
    rows = r"\trowd\intbl Who\cell Fare\cell\row\intbl Adult\cell {40}\par each\cell\row\pard "
    head = r"{\info{\title The f\'e9rry}{\author Ada}}"
    rtf = (
        head + r"\outlinelevel0 One\par\pard Text\par" + rows + r"\outlinelevel1 Two\par\pard End}"
    )
    document = read_one("a.rtf", BEGIN + rtf)
    assert document.text == "One\n\nText\n\nWho | Fare\nAdult | 40 each\n\nTwo\n\nEnd"
    assert document.metadata["title"] == "The férry"
    assert document.metadata["author"] == "Ada"
    found = [(level, document.text[at:][:3]) for level, _, at, _ in document.metadata["headings"]]
    assert found == [(1, "One"), (2, "Two")]


def test_rows_of_a_long_table_carry_their_header(read_one):
    rows = r"\intbl the old one\cell 12345\cell\row" * 80
    text = read_one("a.rtf", rf"{BEGIN}\intbl Way\cell Seconds\cell\row{rows}}}").text
    assert text.count("Way: the old one; Seconds: 12345") == 80


def test_what_is_not_read_is_said(read_one):
    rtf = r"{\header H}{\footer F}{\pict ff}{\strike 40}{\v no}50{\*\annotation C}{\pict 00}}"
    document = read_one("a.rtf", BEGIN + rtf)
    assert document.text == "50"
    assert document.metadata["left_out"] == [
        *("1 page header", "1 page footer", "2 pictures", "1 comment"),
        *("1 word struck out", "1 word not displayed"),
    ]


@pytest.mark.parametrize(
    "rtf",
    [
        r"{\*\shppict{\pict ff}}",
        r"{\*\shppict{\pict ff}}{\nonshppict{\pict ff}}",
        r"{\shp{\*\shpinst{\sp{\sn pib}{\sv{\pict ff}}}}}{\pict ff}",
    ],
)
def test_a_picture_in_two_formats_is_counted_once(read_one, rtf):
    document = read_one("a.rtf", BEGIN + rtf + "Text}")
    assert document.text == "Text"
    assert document.metadata["left_out"] == ["1 picture"]


@pytest.mark.parametrize("said", [r"\u-10179?\u-8704?", r"\u0?\u-10179?\u-8704?\u173?"])
def test_headings_are_true_after_characters_of_two_parts(read_one, said):
    rtf = rf"{{\info{{\title Of {said}}}}}{said}\par\outlinelevel0 Two {said}\par\pard Text}}"
    document = read_one("a.rtf", BEGIN + rtf)
    assert document.text == "😀\n\nTwo 😀\n\nText"
    assert document.metadata["title"] == "Of 😀"
    assert document.metadata["headings"] == [[1, "Two 😀", 3, ""]]


@pytest.mark.parametrize(
    ("rtf", "text", "left_out"),
    [
        (r"Pay {\strike forty pounds}50{\strike  or} more.", "Pay 50 more.", "3 words struck out"),
        (r"Tea{\deleted  caf\u233?\'e9{\b s}}.", "Tea.", "1 word struck out"),
        (r"A{\striked1 B}\par {\strike C\par D}E", "A\n\nE", "3 words struck out"),
        (r"Seen{\v\strike0  not seen}.", "Seen.", "2 words not displayed"),
    ],
)
def test_words_struck_out_and_hidden_are_counted(read_one, rtf, text, left_out):
    document = read_one("a.rtf", f"{BEGIN}{rtf}}}")
    assert document.text == text
    assert document.metadata["left_out"] == [left_out]


@pytest.mark.parametrize("name", ["a.txt", "a.doc", "a.unknown", "a"])
def test_rtf_is_known_by_its_content(read_one, name):
    assert read_one(name, BEGIN + r"\b Bold\b0\par}").text == "Bold"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("%!PS-Adobe-3.0\n/x 1 def\n", "is PostScript, which is not read; convert it to PDF"),
        ("<?xml version='1.0'?>\n<!-- a --><rss><p>x</p></rss>", r"is XML \(rss\), which is not"),
        ("<?xml version='1.0'?><!DOCTYPE svg><svg:svg/>", r"is XML \(svg:svg\), which is not read"),
        ("<?xml-stylesheet href='a'?>\n<!DOCTYPE a [<!ENTITY b 'c'>]>\n<a/>", r"is XML \(a\)"),
        ("<svg xmlns='x'><path d='M0 0'/></svg>", r"is XML \(svg\), which is not read; convert it"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.xyz"])
def test_other_markup_is_refused_by_name(written, data, reason, name):
    with pytest.raises(SourceError, match=reason):
        read_documents(written({name: data}))


@pytest.mark.parametrize(
    "text",
    [
        "\\section{Aims}\nWe \\emph{show} that $\\alpha < 2$ holds, as in \\cite{a}.\n",
        "C:\\Users\\me\\notes is where the notes are kept.\n",
        "No markup.\n",
    ],
)
def test_text_with_some_commands_is_text(read_one, text):
    assert read_one("a.txt", text).text == text
