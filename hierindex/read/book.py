"""EPUB files: their Markdown."""

import posixpath
import re
from collections import Counter
from typing import Any, BinaryIO
from urllib.parse import unquote

from hierindex.node import TITLE
from hierindex.read.markdown import markdown_headings
from hierindex.read.office import unpacked
from hierindex.read.records import BETWEEN, records_of_table
from hierindex.read.runs import subscript, superscript
from hierindex.read.tables import repeated
from hierindex.read.text import MAX_TITLE, Reading, UnreadableError

LOCKS = "META-INF/encryption.xml"  # names the parts of a book that are encrypted
EDGE = "\0"  # of records: a line end, which markdownify would drop
INLINE = "b code em i img strong u".split()  # only their text is read
NOTE = re.compile(r"\d{1,3}|[*†‡§]+")  # the text of a link to it
BACK = {"↩", "↩\ufe0e", "↑", ""}  # links from a note to its mark
MAX_GROWTH = 20  # times; a table whose merged cells take more places is left as it is


def read_epub(file: BinaryIO) -> Reading:
    """Return the Markdown of a book's chapters in their order, and its title and authors."""
    with unpacked(file, "EPUB") as parts:
        from lxml import etree

        def root(name: str) -> Any:
            return etree.fromstring(parts.read(name), etree.XMLParser(resolve_entities=False))

        path = root("META-INF/container.xml").find(".//{*}rootfile").get("full-path")
        package, folder = root(path), posixpath.dirname(path)
        items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
        names, chapters = set(parts.namelist()), []
        locks = parts.read(LOCKS) if LOCKS in names else b""
        for reference in package.iterfind(".//{*}itemref"):
            item = items.pop(reference.get("idref"), {})
            name = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
            if name not in names or "nav" in item.get("properties", "").split():
                continue
            if name.encode() in locks:
                raise UnreadableError("is an encrypted book")
            chapters.append(_markdown(parts.read(name)))
        authors = ", ".join(name.text or "" for name in package.iterfind(".//{*}creator"))
        about = {TITLE: package.findtext(".//{*}title") or "", "author": authors}
        metadata = {key: value.strip()[:MAX_TITLE] for key, value in about.items() if value.strip()}
        text = "\n\n".join(filter(None, chapters))
        return Reading(text, metadata, [*markdown_headings(text)])


def _markdown(html: bytes) -> str:
    """Return the Markdown of HTML, without links, pictures and emphasis.

    Long tables become records if they have headers.
    """
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    class Converter(MarkdownConverter):
        """Numbers the items of a list in linear time, and writes long tables as records."""

        def convert_li(self, el: Any, text: str, parent_tags: object) -> str:
            mark = "- "
            if el.parent is not None and el.parent.name == "ol":
                numbers[id(el.parent)] += 1
                mark = f"{numbers[id(el.parent)]}. "
            return f"{mark}{text.strip()}".replace("\n", "\n" + " " * len(mark)) + "\n"

        def convert_table(self, el: Any, text: str, parent_tags: object) -> str:
            rows = [row.find_all(["td", "th"]) for row in el.find_all("tr")]
            named = bool(rows) and all(cell.name == "th" for cell in rows[0])
            is_plain = el.select_one("table, [data-merged]") is None
            if is_plain and named:
                cells = [[" ".join(cell.get_text(" ").split()) for cell in row] for row in rows]
                if records := records_of_table(cells, named=True):
                    text = f"{EDGE}{BETWEEN.join(records)}{EDGE}"
            return f"\n\n{text.strip()}\n\n"

        def convert_a(self, el: Any, text: str, parent_tags: object) -> str:
            """Return the text of a link, and the mark of a note in brackets."""
            if "#" not in el.get("href", ""):
                return text
            mark = text.strip().strip("[]()^")
            if NOTE.fullmatch(mark):
                return f"[{mark}]"
            return "" if mark in BACK else text

        def convert_sup(self, el: Any, text: str, parent_tags: object) -> str:
            return text if el.a else superscript(text)

        def convert_sub(self, el: Any, text: str, parent_tags: object) -> str:
            before = el.previous_sibling
            return subscript(text, before if isinstance(before, str) else "")

        def convert_del(self, el: Any, text: str, parent_tags: object) -> str:
            return ""

        convert_s = convert_strike = convert_del

    numbers: Counter[int] = Counter()
    soup = BeautifulSoup(html, "lxml")
    for table in soup.find_all("table"):
        if table.select_one("[colspan], [rowspan]"):
            _expand(table, soup)
    text: str = Converter(
        heading_style="ATX",
        table_infer_header=True,
        escape_asterisks=False,
        escape_underscores=False,
        strip=INLINE,
    ).convert_soup(soup.body or soup)
    return text.strip().replace(EDGE, "\n")


def _expand(table: Any, soup: Any) -> None:
    """Give each place of merged cells a cell of its own."""
    rows = [row for row in table.find_all("tr") if row.find_parent("table") is table]
    cells = [row.find_all(["td", "th"], recursive=False) for row in rows]
    spans = [
        [(_span(cell, "colspan"), min(_span(cell, "rowspan"), len(rows) - i)) for cell in row]
        for i, row in enumerate(cells)
    ]
    n_places = sum(width * height for row in spans for width, height in row)
    if n_places > MAX_GROWTH * sum(map(len, spans)):
        rows[0]["data-merged"] = ""
        return
    below = dict[int, tuple[int, str]]()  # rows left and text, by column
    for row, inside, sizes in zip(rows, cells, spans, strict=True):
        at = 0
        for cell, (width, height) in zip([*inside, None], [*sizes, (0, 0)], strict=True):
            while at in below:
                n_left, text = below.pop(at)
                if n_left > 1:
                    below[at] = n_left - 1, text
                added = _copy(soup, "td", text)
                row.append(added) if cell is None else cell.insert_before(added)
                at += 1
            if cell is not None:
                text = repeated(" ".join(cell.get_text(" ").split()))
                below |= dict.fromkeys(range(at, at + width * (height > 1)), (height - 1, text))
                for _ in range(width - 1):
                    cell.insert_after(_copy(soup, cell.name, text))
                at += width


def _copy(soup: Any, name: str, text: str) -> Any:
    cell = soup.new_tag(name, attrs={"data-merged": ""})
    cell.string = text
    return cell


def _span(cell: Any, name: str) -> int:
    value = cell.attrs.pop(name, "1").strip()
    return max(int(value), 1) if value.isdecimal() and len(value) < 6 else 1
