"""Word files: their Markdown."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO, NamedTuple
from zipfile import ZipFile

from hierindex.node import TITLE
from hierindex.read.charts import DIAGRAM, C, chart_blocks, diagram_lines
from hierindex.read.equations import MATH, equation
from hierindex.read.markdown import markdown_headings
from hierindex.read.numbering import BULLET, VAL, Numbering, W
from hierindex.read.office import left_out, parsed, properties, unpacked
from hierindex.read.runs import HIDDEN, PLAIN, STRUCK, SUB, SUPER, joined_runs
from hierindex.read.tables import MAX_CELLS, merged, repeated, table_blocks
from hierindex.read.text import MAX_TITLE, Reading, UnreadableError

R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
ALTERNATE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
PICTURES = {
    "{http://schemas.openxmlformats.org/drawingml/2006/picture}pic",
    "{urn:schemas-microsoft-com:vml}imagedata",
}
STRICT = {  # namespaces of ISO's strict form, and those of the usual one
    b"http://purl.oclc.org/ooxml/wordprocessingml/main": W,
    b"http://purl.oclc.org/ooxml/officeDocument/relationships": R,
    b"http://purl.oclc.org/ooxml/officeDocument/math": MATH,
    b"http://purl.oclc.org/ooxml/drawingml/chart": C,
    b"http://purl.oclc.org/ooxml/drawingml/diagram": DIAGRAM,
}
DELETED = {f"{W}del", f"{W}moveFrom"}
UNREAD = DELETED | {f"{W}{name}" for name in "pPr rPr sdtPr sdtEndPr tblPr tblGrid rt".split()}
CHARACTERS = {
    f"{W}tab": "\t",
    f"{W}ptab": "\t",
    f"{W}cr": "\n",
    f"{W}noBreakHyphen": "\u2011",
}
SYMBOL = dict(
    zip(
        map(chr, [*range(0x41, 0x5B), *range(0x61, 0x7B)]),
        "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ",
        strict=True,
    )
)
SYMBOL |= {"\xa3": "≤", "\xb3": "≥", "\xb4": "\xd7", "\xb0": "°", "\xb1": "±", "\xb7": "•"}
SYMBOL |= {"\xa5": "∞", "\xae": "→", "\xb8": "÷", "\xb9": "≠", "\xbb": "≈", "\xe5": "∑"}
WINGDINGS = dict(zip("\xfc\xfb\xfe\xfd\xa8\x6f\xe0\xa7", "✓✗☑☒☐☐→▪", strict=True))
"""Characters of fonts with signs in place of letters."""

HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)  # the name of a style
DEEPEST = 6  # level of a heading of Markdown
FOLIO = re.compile(  # a header or footer that has only the number of the page
    r"[\W\d_]*((page|seite|p\xe1gina|pagina|p|s)\b)?[\W\d_]*([ivxlc]+\b)?[\W\d_]*"
    r"((of|von|de|sur|di|van)\b)?[\W\d_]*",
    re.IGNORECASE,
)
LONGEST_HEADING = 250  # characters; a longer paragraph in the style of headings is a clause
MAX_ROW = 4000  # characters; cells of a longer row are text side by side, not data
MAX_BASES = 20  # styles on which a style is based
MAX_SPAN = 63  # columns, as in Word
OFF = {"0", "false", "off", "none"}


class Block(NamedTuple):
    """A paragraph, a table or the like; its level if it is a heading, its depth if in a list."""

    text: str
    level: int = 0
    depth: int | None = None
    is_title: bool = False


class Marks(NamedTuple):
    """How text is shown; None where a style says nothing."""

    is_hidden: bool | None = None
    is_struck: bool | None = None
    script: str | None = None

    def over(self, other: "Marks") -> "Marks":
        """Return these marks, and the other ones where these say nothing."""
        return Marks(
            other.is_hidden if self.is_hidden is None else self.is_hidden,
            other.is_struck if self.is_struck is None else self.is_struck,
            other.script if self.script is None else self.script,
        )


def read_word(file: BinaryIO) -> Reading:
    """Return the Markdown of a Word file.

    Numbers of headings and lists, merged cells, notes, equations, charts, text boxes, page headers
    and footers are read; hidden, struck and deleted text, pictures and comments are not.
    """
    with unpacked(file, "Word") as parts:
        word = _Word(parts)
        blocks = [*word.read()]
        metadata = properties(parts)
        title = next((block.text for block in blocks if block.is_title), "")
        if not title and blocks and blocks[0].level:
            title = blocks[0].text
        if title:
            metadata.setdefault(TITLE, title[:MAX_TITLE])
        blocks = [*word.page_edges(), *blocks, *word.read_notes()]
        text = "".join(_joined(blocks)).lstrip("\n")
        return Reading(text, metadata | left_out(word.unread), [*markdown_headings(text)])


def _joined(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the Markdown of blocks; the items of a list follow each other without blank lines."""
    base: int | None = None  # depth of the first item
    for block in blocks:
        if block.depth is None:
            yield "\n\n"
        else:
            yield "\n\n" if base is None else "\n"
        base = None if block.depth is None else block.depth if base is None else base
        indent = "  " * max(0, (block.depth or 0) - (base or 0))
        yield f"{'#' * block.level} {block.text}" if block.level else indent + block.text


class _Word:
    """Reads the parts of a Word file."""

    def __init__(self, parts: ZipFile) -> None:
        self.unread: Counter[str] = Counter()
        self._parts = parts
        self._names = {*parts.namelist()}
        main = next(self._related("", "officeDocument"), "word/document.xml")
        self._main = main
        self._links = self._relations(main)
        self._styles = _Styles(self._part("styles"))
        self._numbering = Numbering(self._part("numbering"))
        self._notes: dict[tuple[str, str], int] = {}
        self._carried = list[tuple[str, str] | Block]()  # of paragraphs that flow into the next
        self._n_cells = 0
        self._in_edge = False  # of a page
        self._drawn_parts = set[str]()

    def read(self) -> Iterator[Block]:
        """Yield the blocks of the body."""
        self._root = self._xml(self._main)
        body = self._root.find(f"{W}body")
        if body is None:
            raise ValueError
        yield from self._blocks(body)
        if (comments := self._part("comments")) is not None:
            self.unread["comment"] += len(comments.findall(f"{W}comment"))

    def page_edges(self) -> Iterator[Block]:
        """Yield each page header and footer once."""
        said = dict[str, None]()
        for kind in ("header", "footer"):
            ids = (each.get(f"{R}id", "") for each in self._root.iter(f"{W}{kind}Reference"))
            for name in dict.fromkeys(self._links.get(each, ("", ""))[1] for each in ids):
                if name not in self._names:
                    continue
                outside, self._links, self._in_edge = self._links, self._relations(name), True
                blocks = [*self._blocks(self._xml(name))]
                self._links, self._in_edge = outside, False
                text = " ".join(" | ".join(block.text for block in blocks).split())
                if not FOLIO.fullmatch(text):
                    said[f"Page {kind}: {text}"] = None
        yield from map(Block, said)

    def read_notes(self) -> Iterator[Block]:
        """Yield the footnotes and endnotes in the order of their marks."""
        texts = dict[tuple[str, str], str]()
        for kind in ("footnote", "endnote"):
            root = self._part(f"{kind}s")
            for note in () if root is None else root.iterfind(f"{W}{kind}"):
                key = kind, note.get(f"{W}id", "")
                if key in self._notes:
                    texts[key] = " ".join(block.text for block in self._blocks(note))
        for key, number in [*self._notes.items()]:
            if key in texts:
                yield Block(f"[{number}] {texts[key]}")

    def _blocks(self, container: Any) -> Iterator[Block]:
        for child in container:
            tag = child.tag
            if tag == f"{W}p":
                yield from self._paragraph(child)
            elif tag == f"{W}tbl":
                yield from self._table(child)
            elif tag == f"{W}altChunk":
                self.unread["embedded document"] += 1
            elif tag == ALTERNATE:
                yield from self._blocks(_chosen(child))
            elif isinstance(tag, str) and tag not in UNREAD:
                yield from self._blocks(child)

    def _paragraph(self, paragraph: Any) -> Iterator[Block]:
        style = _value(paragraph, f"{W}pPr/{W}pStyle") or self._styles.default
        pieces, self._carried = self._carried, []
        pieces += self._inline(paragraph, self._styles.marks(style))
        if paragraph.find(f"{W}pPr/{W}rPr/{W}del") is not None:
            self._carried = pieces
            return
        number, depth = self._number(paragraph, style)
        runs = (piece for piece in pieces if not isinstance(piece, Block))
        text = joined_runs(runs, self.unread)
        outline = paragraph.find(f"{W}pPr/{W}outlineLvl")
        level = self._styles.level(style) if outline is None else _level(outline)
        if text and level and len(text) <= LONGEST_HEADING:
            title = " ".join(f"{number or ''} {text}".removeprefix(BULLET).split())
            yield Block(title, level, is_title=self._styles.is_title(style))
        elif text:
            yield Block(f"{number} {text}" if number else text, depth=depth if number else None)
        yield from (piece for piece in pieces if isinstance(piece, Block))

    def _number(self, paragraph: Any, style: str) -> tuple[str | None, int]:
        """Return the number of a paragraph, if it has one, and its depth in a list."""
        given = paragraph.find(f"{W}pPr/{W}numPr")
        num, level = self._styles.numbering(style)
        if not level and num:
            level = str(self._numbering.level_of(num, style))
        if given is not None:
            num = _value(given, f"{W}numId") or num
            level = _value(given, f"{W}ilvl") or level
        depth = int(level) if level.isdecimal() and len(level) < 3 else 0
        return self._numbering.next(num, depth) if num else None, depth

    def _inline(self, element: Any, style: Marks) -> Iterator[tuple[str, str] | Block]:
        for child in element:
            tag = child.tag
            if tag == f"{W}r":
                yield from self._run(child, style)
            elif tag == ALTERNATE:
                yield from self._inline(_chosen(child), style)
            elif isinstance(tag, str) and tag.startswith(MATH):
                yield PLAIN, equation(child)
            elif isinstance(tag, str) and tag not in UNREAD:
                yield from self._inline(child, style)

    def _run(self, run: Any, style: Marks) -> Iterator[tuple[str, str] | Block]:
        own = run.find(f"{W}rPr")
        if own is not None:
            style = _marks(own).over(self._styles.marks(_value(own, f"{W}rStyle"))).over(style)
        if style.is_hidden or style.is_struck:
            said = (text.text or "" for text in run.iterfind(f"{W}t"))
            yield HIDDEN if style.is_hidden else STRUCK, "".join(said)
            return
        script = style.script or PLAIN
        for child in run:
            tag = child.tag
            if tag == f"{W}t":
                yield script, child.text or ""
            elif tag in CHARACTERS:
                yield PLAIN, CHARACTERS[tag]
            elif tag == f"{W}br":
                yield PLAIN, "" if child.get(f"{W}type") in ("page", "column") else "\n"
            elif tag == f"{W}sym":
                yield script, _symbol(child)
            elif tag in (f"{W}footnoteReference", f"{W}endnoteReference"):
                key = tag.removeprefix(W).removesuffix("Reference"), child.get(f"{W}id", "")
                yield PLAIN, f"[{self._notes.setdefault(key, len(self._notes) + 1)}]"
            elif tag == f"{W}ruby":
                yield from self._inline(child, style)
            elif tag != f"{W}rPr" and len(child):
                yield from self._drawn(child)

    def _drawn(self, element: Any) -> Iterator[Block]:
        """Yield the text boxes, charts and diagrams of a drawing."""
        tag = element.tag
        if tag == ALTERNATE:
            yield from self._drawn(_chosen(element))
        elif tag == f"{W}txbxContent":
            yield from self._blocks(element)
        elif tag in PICTURES:
            self.unread["picture"] += 1
        elif tag in (f"{C}chart", f"{DIAGRAM}relIds"):
            name = self._links.get(element.get(f"{R}id") or element.get(f"{R}dm", ""), ("", ""))[1]
            if name in self._names - self._drawn_parts:
                self._drawn_parts.add(name)
                of = chart_blocks if tag == f"{C}chart" else diagram_lines
                yield from map(Block, of(self._xml(name)))
        else:
            for child in element:
                yield from self._drawn(child)

    def _table(self, table: Any) -> Iterator[Block]:
        """Yield a table, or the blocks of its cells if they are no data."""
        rows, inside, n_heads = list[list[str]](), list[list[Block]](), 0
        for row in _within(table, f"{W}tr"):
            if row.find(f"{W}trPr/{W}del") is not None:
                continue
            above = rows[-1] if rows else []
            cells = [""] * _span(row, f"{W}trPr/{W}gridBefore", 0)
            inside.append([])
            for cell in _within(row, f"{W}tc"):
                blocks = [*self._blocks(cell)]
                inside[-1] += blocks
                merge = cell.find(f"{W}tcPr/{W}vMerge")
                width = _span(cell, f"{W}tcPr/{W}gridSpan", 1)
                between = " " if merge is None and width < 2 else " / "
                text = " ".join(between.join(block.text for block in blocks).split())
                is_below = merge is not None and merge.get(VAL) != "restart"
                if is_below and not text and len(cells) < len(above):
                    text = repeated(above[len(cells)])
                cells += merged(text, width, is_below=is_below)
            self._n_cells += len(cells)
            if self._n_cells > MAX_CELLS:
                raise UnreadableError(f"has more than {MAX_CELLS:,} cells in tables")
            is_head = row.find(f"{W}trPr/{W}tblHeader") is not None
            n_heads += is_head and n_heads == len(rows)
            rows.append(cells)
        is_nested = table.find(f".//{W}tbl") is not None
        if self._in_edge or is_nested or max(map(len, rows), default=0) < 2 or _is_layout(inside):
            yield from chain.from_iterable(inside)
        else:
            yield from map(Block, table_blocks(rows, n_heads))

    def _part(self, kind: str) -> Any:
        """Return the root of a part of the document, or None if it has none."""
        name = next(self._related(self._main, kind), f"{posixpath.dirname(self._main)}/{kind}.xml")
        return self._xml(name) if name in self._names else None

    def _related(self, name: str, kind: str) -> Iterator[str]:
        found = self._relations(name).values()
        return (target for of, target in found if of.endswith(f"/{kind}"))

    def _relations(self, name: str) -> dict[str, tuple[str, str]]:
        """Return the kinds and names of the parts to which a part refers, by their ids."""
        folder, base = posixpath.split(name)
        path = posixpath.join(folder, "_rels", f"{base}.rels")
        if path not in self._names:
            return {}
        return {
            each.get("Id", ""): (
                each.get("Type", ""),
                posixpath.normpath(posixpath.join("/", folder, each.get("Target", "")))[1:],
            )
            for each in self._xml(path)
            if isinstance(each.tag, str) and each.get("TargetMode") != "External"
        }

    def _xml(self, name: str) -> Any:
        data = self._parts.read(name)
        if b"purl.oclc.org" in data[:5000]:
            for strict, usual in STRICT.items():
                data = data.replace(strict, usual.strip("{}").encode())
        return parsed(data)


class _Styles:
    """What the styles of a Word file say of their paragraphs and runs."""

    def __init__(self, root: Any) -> None:
        self._styles = dict[str, Any]()
        self._marks = dict[str, Marks]()
        self.default = ""
        for style in () if root is None else root.iterfind(f"{W}style"):
            name = style.get(f"{W}styleId", "")
            self._styles[name] = style
            if style.get(f"{W}type") == "paragraph" and style.get(f"{W}default") not in {
                None,
                *OFF,
            }:
                self.default = name

    def _chain(self, name: str) -> list[tuple[str, Any]]:
        """Return a style and those that it is based on."""
        found = dict[str, Any]()
        while name in self._styles and name not in found and len(found) < MAX_BASES:
            found[name] = self._styles[name]
            name = _value(self._styles[name], f"{W}basedOn")
        return [*found.items()]

    def level(self, name: str) -> int:
        """Return the level of headings in a style, or 0 if they are none."""
        if self._name(name) in ("title", "heading"):  # the latter of Apple's Pages
            return 1
        for style_id, style in self._chain(name):
            outline = style.find(f"{W}pPr/{W}outlineLvl")
            if outline is not None:
                return _level(outline)
            if match := HEADING.fullmatch(_value(style, f"{W}name") or style_id):
                return min(int(match[1]), DEEPEST)
        return 0

    def is_title(self, name: str) -> bool:
        return self._name(name) == "title"

    def _name(self, name: str) -> str:
        return _value(self._styles[name], f"{W}name").lower() if name in self._styles else ""

    def numbering(self, name: str) -> tuple[str, str]:
        """Return the list of a style and the level in it; empty strings if it says neither."""
        num = level = ""
        for _, style in self._chain(name):
            num = num or _value(style, f"{W}pPr/{W}numPr/{W}numId")
            level = level or _value(style, f"{W}pPr/{W}numPr/{W}ilvl")
        return num, level

    def marks(self, name: str) -> Marks:
        if name not in self._marks:
            marks = Marks()
            for _, style in self._chain(name):
                own = style.find(f"{W}rPr")
                marks = marks if own is None else marks.over(_marks(own))
            self._marks[name] = marks
        return self._marks[name]


def _marks(properties: Any) -> Marks:
    script = _value(properties, f"{W}vertAlign")
    struck = (_is_on(properties, f"{W}{name}") for name in ("strike", "dstrike"))
    scripts = {"superscript": SUPER, "subscript": SUB, "baseline": PLAIN}
    return Marks(
        _is_on(properties, f"{W}vanish"),
        next((each for each in struck if each is not None), None),
        scripts.get(script),
    )


def _is_on(properties: Any, name: str) -> bool | None:
    found = properties.find(name)
    return None if found is None else found.get(VAL) not in OFF


def _value(element: Any, path: str) -> str:
    found = element.find(path)
    return "" if found is None else found.get(VAL) or ""


def _level(outline: Any) -> int:
    """Return the level of a heading by its level in the outline, of which 9 is that of text."""
    value = outline.get(VAL, "")
    return min(int(value) + 1, DEEPEST) if value in [*"012345678"] else 0


def _span(element: Any, path: str, default: int) -> int:
    value = _value(element, path)
    return min(int(value), MAX_SPAN) if value.isdecimal() and len(value) < 10 else default


def _symbol(element: Any) -> str:
    """Return a character of a font, as far as it is known."""
    try:
        code = int(element.get(f"{W}char", ""), 16)
    except ValueError:
        return ""
    if not 0xF000 <= code <= 0xF0FF:
        return chr(code) if 0x20 <= code < 0xD800 else ""
    signs = SYMBOL if element.get(f"{W}font", "").startswith("Symbol") else WINGDINGS
    return signs.get(chr(code - 0xF000), "")


def _chosen(alternatives: Any) -> Any:
    """Return one of the forms of the same content."""
    return next((each for each in alternatives if isinstance(each.tag, str)), ())


def _within(element: Any, tag: str) -> Iterator[Any]:
    """Yield the rows of a table, or the cells of a row, also those in controls and insertions."""
    for child in element:
        if child.tag == tag:
            yield child
        elif isinstance(child.tag, str) and child.tag not in UNREAD:
            yield from _within(child, tag)


def _is_layout(rows: list[list[Block]]) -> bool:
    return any(sum(len(block.text) for block in row) > MAX_ROW for row in rows)
