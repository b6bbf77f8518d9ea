"""PDF files as the tests need them."""

from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    Fit,
    NameObject,
    NumberObject,
    TextStringObject,
)


class Typed(NamedTuple):
    """A line of a page or the rest of it, its height above the lower edge, and its font."""

    text: str
    y: float
    size: float = 10
    bold: bool = False
    x: float = 72


def typed(
    *pages: Sequence[Typed] | str,
    outline=(),
    labels: bool = False,
    stated: str = "",
    **properties: str,
) -> bytes:
    """A PDF of placed lines or drawings; entries of the outline: (title, page, height, parent)."""
    writer, out = PdfWriter(clone_from=PdfReader(BytesIO(_pdf(*map(_typed, pages))))), BytesIO()
    added = []
    for title, page, y, parent in outline:
        fit = Fit.xyz(72, y, None)
        above = None if parent is None else added[parent]
        item = writer.add_outline_item(title=title, page_number=page, parent=above, fit=fit)
        added.append(item)
    if labels:
        writer.set_page_label(0, 1, "/r")
        writer.set_page_label(2, len(pages) - 1, "/D", start=1)
    if properties := {"Title": stated, **properties} if stated else properties:
        writer.add_metadata({f"/{name}": value for name, value in properties.items()})
    writer.write(out)
    return out.getvalue()


def with_annotations(pdf: bytes, *annotations: dict[str, str]) -> bytes:
    """The PDF with annotations on its first page; widgets become the fields of a form."""
    writer, out = PdfWriter(clone_from=PdfReader(BytesIO(pdf))), BytesIO()
    font = writer.pages[0]["/Resources"]["/Font"].raw_get("/F1")
    added = ArrayObject()
    for i, annotation in enumerate(annotations):
        rectangle = ArrayObject(map(NumberObject, (72, 300 - 40 * i, 400, 320 - 40 * i)))
        fields = {
            NameObject(f"/{key}"): NameObject(value) if value[0] == "/" else TextStringObject(value)
            for key, value in annotation.items()
        }
        made = DictionaryObject({NameObject("/Rect"): rectangle, **fields})
        made[NameObject("/DA")] = TextStringObject("/F1 10 Tf 0 g")
        made[NameObject("/F")] = NumberObject(4)
        added.append(writer._add_object(made))
    writer.pages[0][NameObject("/Annots")] = added
    writer.root_object[NameObject("/AcroForm")] = DictionaryObject(
        {
            NameObject("/Fields"): added,
            NameObject("/DA"): TextStringObject("/F1 10 Tf 0 g"),
            NameObject("/DR"): DictionaryObject(
                {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
            ),
        }
    )
    writer.write(out)
    return out.getvalue()


def _typed(lines: Sequence[Typed] | str) -> str:
    if isinstance(lines, str):
        return lines
    shown = (
        f"/F{2 if line.bold else 1} {line.size} Tf 1 0 0 1 {line.x} {line.y} Tm ({line.text}) Tj"
        for line in lines
    )
    return f"BT {' '.join(shown)} ET"


def pdf_of(*pages: str) -> bytes:
    """A PDF with one line of Latin text for each line of a page."""
    lines = (" T* ".join(f"({line}) Tj" for line in page.splitlines()) for page in pages)
    return _pdf(*(f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET" for shown in lines))


def _pdf(*pages: str) -> bytes:
    """A PDF of pages with these contents; F1 is Helvetica, F2 is bold."""
    kids = " ".join(f"{5 + 2 * i} 0 R" for i in range(len(pages)))
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /{} /Encoding /WinAnsiEncoding >>"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        *map(font.format, ("Helvetica", "Helvetica-Bold")),
    ]
    for i, content in enumerate(pages):
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Contents {6 + 2 * i} 0 R >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        ]
    data, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    return (
        f"{data}xref\n0 {size}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    ).encode("latin-1")


def locked(pdf: bytes, version: int) -> bytes:
    """The PDF as if encrypted by a password; of version 5, by AES, which pypdf cannot alone."""
    writer, out = PdfWriter(clone_from=PdfReader(BytesIO(pdf))), BytesIO()
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(out)
    if version < 5:
        return out.getvalue()
    crypt = "/CF << /StdCF << /CFM /AESV3 /Length 32 >> >> /StmF /StdCF /StrF /StdCF"
    hidden = "/O <{0}> /U <{0}> /OE <{1}> /UE <{1}> /Perms <{2}>".format(
        "00" * 48, "00" * 32, "00" * 16
    )
    encrypt = f"/Encrypt << /Filter /Standard /V 5 /R 6 /Length 256 /P -4 {crypt} {hidden} >>"
    return pdf.replace(b"/Root 1 0 R", f"/Root 1 0 R {encrypt} /ID [<00> <00>]".encode())
