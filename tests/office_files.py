"""Files of office programs, for tests."""

from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import openpyxl

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    f'xmlns:r="{RELATION}" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
)


def zipped(parts):
    data = BytesIO()
    with ZipFile(data, "w", ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return data.getvalue()


def saved(file):
    """The bytes of a workbook or a deck."""
    data = BytesIO()
    file.save(data)
    return data.getvalue()


def paragraph(text, style=""):
    style = style and f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>'
    return f"<w:p>{style}<w:r><w:t xml:space='preserve'>{text}</w:t></w:r></w:p>"


def word(*blocks, doctype="", relations="", styles="", parts=None, core=""):
    """A Word file, of styles `Title`, `Heading1` and so on, and with other parts by their names."""
    names = ["Title", *(f"heading {i}" for i in range(1, 7))]
    styles += "".join(
        f'<w:style w:type="paragraph" w:styleId="{name.title().replace(" ", "")}">'
        f'<w:name w:val="{name}"/></w:style>'
        for name in names
    )
    namespaces, parts = NAMESPACES, parts or {}
    relations += "".join(
        f'<Relationship Id="p{i}" Type="{RELATION}/{name.removesuffix(".xml")}" Target="{name}"/>'
        for i, name in enumerate(parts)
    )
    types = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{kind}"/>'
        for name, kind in {
            "document": WORD,
            "styles": WORD.replace("document.main", "styles"),
        }.items()
    )
    return zipped(
        {
            **{f"word/{name}": namespaced(part) for name, part in parts.items()},
            **({"docProps/core.xml": properties(core)} if core else {}),
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">{types}</Types>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{RELATION}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
            f'<Relationship Id="r1" Type="{RELATION}/styles" Target="styles.xml"/>{relations}'
            "</Relationships>",
            "word/styles.xml": f"<w:styles {namespaces}>{styles}</w:styles>",
            "word/document.xml": f"<?xml version='1.0'?>{doctype}<w:document {namespaces}>"
            f"<w:body>{''.join(blocks)}</w:body></w:document>",
        }
    )


def table(*rows):
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def excel(sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    return saved(book)


def epub(chapters, extra=None):
    """A book of chapters by their file names, beside an unread table of contents."""
    items = "".join(f'<item id="i{i}" href="{name}"/>' for i, name in enumerate(chapters))
    spine = "".join(f'<itemref idref="i{i}"/>' for i in range(len(chapters)))
    return zipped(
        {
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
            'container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": "<package xmlns='http://www.idpf.org/2007/opf' "
            "xmlns:dc='http://purl.org/dc/elements/1.1/'><metadata><dc:title>A book</dc:title>"
            "<dc:creator>Ada</dc:creator><dc:date>1901-02-03T00:00:00Z</dc:date></metadata><manifest>"
            f'<item id="toc" href="toc.html" properties="nav"/>{items}</manifest>'
            f'<spine><itemref idref="toc"/><itemref idref="gone"/>{spine}</spine></package>',
            "OEBPS/toc.html": "<p>Contents</p>",
            **{
                f"OEBPS/{name.replace('%20', ' ')}": text for name, text in chapters.items() if text
            },
            **(extra or {}),
        }
    )


def namespaced(part):
    """A part with the namespaces of Word at its root."""
    end = part.index(">")
    return f"{part[:end]} {NAMESPACES}{part[end:]}"


def properties(core):
    """The properties of a file."""
    return (
        f'<cp:coreProperties xmlns:cp="{PACKAGE}/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
        f"{core}</cp:coreProperties>"
    )


def run(text, *marks):
    """A run of text, with the elements of its properties."""
    return f"<w:r><w:rPr>{''.join(marks)}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def runs(*inside):
    """A paragraph of runs."""
    return f"<w:p>{''.join(inside)}</w:p>"


def item(text, level=0, num=1, style=""):
    """A numbered paragraph."""
    style = style and f'<w:pStyle w:val="{style}"/>'
    number = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{num}"/></w:numPr>'
    return f"<w:p><w:pPr>{style}{number}</w:pPr>{run(text)}</w:p>"


def numbering(*levels, nums="<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num>"):
    """A list with the format, the text and more of each level."""
    each = "".join(
        f'<w:lvl w:ilvl="{i}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
        for i, (kind, text, more) in enumerate(levels)
    )
    abstract = f'<w:abstractNum w:abstractNumId="0">{each}</w:abstractNum>'
    return {"numbering.xml": f"<w:numbering>{abstract}{nums}</w:numbering>"}


def cell(text, span=1, merge=""):
    """A cell of a table; `merge` is "restart" or "continue" where it is merged with others."""
    span = f'<w:gridSpan w:val="{span}"/>' if span > 1 else ""
    merge = merge and f'<w:vMerge w:val="{merge}"/>'
    return f"<w:tc><w:tcPr>{span}{merge}</w:tcPr>{paragraph(text)}</w:tc>"


def grid(*rows):
    """A table of cells."""
    lines = "".join("".join(["<w:tr>", *row, "</w:tr>"]) for row in rows)
    return f"<w:tbl>{lines}</w:tbl>"
