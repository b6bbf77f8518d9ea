"""Word files as Markdown."""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO, NamedTuple
from zipfile import ZipFile

from hierindex.read.marks import MATH, RunKind, equation, joined_runs, label, whole
from hierindex.read.office import DRAWINGS, Block, R, as_reading, drawn, parsed, unpacked
from hierindex.read.tables import MAX_ROW, Merged, repeated, table_blocks
from hierindex.read.text import Reading, UnreadableError

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
VAL = f"{W}val"
UNREAD = {f"{W}{name}" for name in "del moveFrom pPr rPr rt sdtPr".split()}
CHARACTERS = {f"{W}tab": "\t", f"{W}ptab": "\t", f"{W}cr": "\n", f"{W}noBreakHyphen": "\u2011"}
SCRIPTS = {"superscript": RunKind.SUPER, "subscript": RunKind.SUB}
MARKS = {f"{W}{name}" for name in "dstrike strike vanish vertAlign".split()}
OFF = {"", "0", "false", "off", "none"}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
GREEK = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ"
SYMBOL = dict(zip(f"{LETTERS}\xa3\xb3\xb4\xb0\xb1\xb7\xae\xb9", f"{GREEK}≤≥\xd7°±•→≠", strict=True))
WINGDINGS = dict(zip("\xfc\xfb\xfe\xfd\xa8\x6f\xe0\xa7", "✓✗☑☒☐☐→▪", strict=True))
"""Unicode characters for symbol fonts."""
HEADING = re.compile(r"title|heading ?([1-9])?", re.IGNORECASE)  # the name of a style
DEEPEST = 6  # level of a heading of Markdown
FOLIO = set("page p seite s página pagina of von de sur di van".split())
"""Words of a header or footer that has only the number of the page."""
LONGEST_HEADING = 250  # characters; a longer paragraph in the style of headings is a clause
MAX_BASES = 20  # styles on which a style is based
MAX_SPAN = 63  # columns, as in Word
BULLET = "-"
SHAPES = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}
LEVELS = 9  # of a list
MAX_TEXT = 100  # characters around a number
MAX_CELLS = 1_000_000  # of tables, as small files can have many merged ones

Marks = dict[str, str]  # what runs and styles say of how text is shown, by names of properties
Levels = dict[int, Any]  # elements
Run = tuple[RunKind, str]


class Style(NamedTuple):
    """The properties that a style and its base styles set for paragraphs and runs."""

    level: int  # of headings
    is_title: bool
    num: str  # id of a list
    place: str  # in the list
    marks: Marks


def read_word(file: BinaryIO) -> Reading:
    """Return a Word file as Markdown.

    Numbers of headings and lists, merged cells, notes, equations, charts, text boxes, page headers
    and footers are read; hidden, struck and deleted text, pictures and comments are not.
    """
    with unpacked(file, "Word") as parts:
        word = _Word(parts)
        body = word.body
        first = body[0].text if body and body[0].level else ""
        blocks = [*word.page_edges(), *body, *word.read_notes()]
        return as_reading(parts, blocks, word.unread, title=word.title or first)


class _Word:
    """Reads the parts of a Word file."""

    def __init__(self, parts: ZipFile) -> None:
        self.title = ""
        self.unread = Counter[str]()
        self._parts = parts
        self._names = {*parts.namelist()}
        (main,) = (name for kind, name in self._relations("").values() if kind == "officeDocument")
        self._links = self._relations(main)
        self._root = self._xml(main)
        self._styles = _Styles(self._part("styles"))
        self._numbering = _Numbering(self._part("numbering"))
        self._notes: dict[tuple[str, str], int] = {}
        self._n_cells = 0
        self.body = [*self._blocks(self._root)]

    def page_edges(self) -> Iterator[Block]:
        """Yield each page header and footer once."""
        said = dict[str, None]()
        for kind in ("header", "footer"):
            references = (each.get(f"{R}id") for each in self._root.iter(f"{W}{kind}Reference"))
            for part in chain.from_iterable(map(self._linked, references)):
                blocks = chain.from_iterable(map(self._paragraph, part.iter(f"{W}p")))
                text = " | ".join(dict.fromkeys(block.text for block in blocks))
                words = re.findall(r"[^\W\d_]+", text.lower())
                if any(word not in FOLIO and word.strip("ivxlc") for word in words):
                    said[f"Page {kind}: {' '.join(text.split())}"] = None
        yield from map(Block, said)

    def read_notes(self) -> Iterator[Block]:
        """Yield the footnotes and endnotes in the order of their marks."""
        notes = {
            (kind, note.get(f"{W}id", "")): note
            for kind in ("footnote", "endnote")
            for note in self._part(f"{kind}s")
        }
        for key, number in [*self._notes.items()]:
            if key in notes:
                text = " ".join(block.text for block in self._blocks(notes[key]))
                yield Block(f"[{number}] {text}")

    def _blocks(self, container: Any) -> Iterator[Block]:
        for child in container:
            if child.tag == f"{W}p":
                yield from self._paragraph(child)
            elif child.tag == f"{W}tbl":
                yield from self._table(child)
            elif child.tag == f"{W}altChunk":
                self.unread["embedded document"] += 1
            elif child.tag not in UNREAD:
                yield from self._blocks(child)

    def _paragraph(self, paragraph: Any) -> Iterator[Block]:
        name = value(paragraph, f"{W}pPr/{W}pStyle")
        style = self._styles[name]
        pieces = [*self._inline(paragraph, style.marks)]
        text = joined_runs((each for each in pieces if not isinstance(each, Block)), self.unread)
        if text or paragraph.find(f"{W}pPr/{W}rPr/{W}del") is None:
            num = value(paragraph, f"{W}pPr/{W}numPr/{W}numId") or style.num
            place = value(paragraph, f"{W}pPr/{W}numPr/{W}ilvl") or style.place
            number, depth = self._numbering.next(num, place, name)
        own = _level(paragraph)
        level = style.level if own is None else own
        if text and level and len(text) <= LONGEST_HEADING:
            title = " ".join(f"{number} {text}".removeprefix(BULLET).split())
            if style.is_title:
                self.title = self.title or title
            yield Block(title, level)
        elif text:
            yield Block(f"{number} {text}", depth=depth) if number else Block(text)
        yield from (each for each in pieces if isinstance(each, Block))

    def _inline(self, element: Any, marks: Marks) -> Iterator[Run | Block]:
        kind = _kind(marks)
        for child in element:
            tag = child.tag
            if tag == f"{W}r":
                style = self._styles[value(child, f"{W}rPr/{W}rStyle")]
                yield from self._inline(child, marks | style.marks | _marks(child))
            elif tag == f"{W}t":
                yield kind, child.text or ""
            elif tag in CHARACTERS:
                yield RunKind.PLAIN, CHARACTERS[tag]
            elif tag == f"{W}br":
                yield RunKind.PLAIN, "" if child.get(f"{W}type") in ("page", "column") else "\n"
            elif tag == f"{W}sym":
                yield kind, _symbol(child)
            elif tag in (f"{W}footnoteReference", f"{W}endnoteReference"):
                key = tag.removeprefix(W).removesuffix("Reference"), child.get(f"{W}id", "")
                yield RunKind.PLAIN, f"[{self._notes.setdefault(key, len(self._notes) + 1)}]"
            elif tag.startswith(MATH):
                yield RunKind.PLAIN, equation(child)
            elif tag == f"{W}txbxContent":
                yield from self._blocks(child)
            elif tag in DRAWINGS:
                for part in self._linked(child.get(DRAWINGS[tag])):
                    yield from map(Block, drawn(part))
            elif tag not in UNREAD:
                yield from self._inline(child, marks)

    def _table(self, table: Any) -> Iterator[Block]:
        """Yield a table, or the blocks of its cells if it is used for layout."""
        rows, inside, n_heads = list[list[str]](), list[Block](), 0
        is_layout = table.find(f".//{W}tbl") is not None
        for row in _within(table, f"{W}tr"):
            if row.find(f"{W}trPr/{W}del") is not None:
                continue
            cells, blocks = self._row(row, rows[-1] if rows else [])
            is_head = row.find(f"{W}trPr/{W}tblHeader") is not None
            n_heads += is_head and n_heads == len(rows)
            is_layout |= sum(len(block.text) for block in blocks) > MAX_ROW
            rows.append(cells)
            inside += blocks
        if is_layout or max(map(len, rows), default=0) < 2:
            yield from inside
        else:
            yield from map(Block, table_blocks(rows, n_heads))

    def _row(self, row: Any, above: Sequence[str]) -> tuple[list[str], list[Block]]:
        """Return the text of each column of a row, and the blocks of its cells."""
        cells, inside = [""] * _span(row, f"{W}trPr/{W}gridBefore", 0), list[Block]()
        for cell in _within(row, f"{W}tc"):
            blocks = [*self._blocks(cell)]
            inside += blocks
            width = _span(cell, f"{W}tcPr/{W}gridSpan", 1)
            merge = cell.find(f"{W}tcPr/{W}vMerge")
            is_merged = merge is not None or width > 1
            between = " / " if is_merged else " "
            text = " ".join(between.join(block.text for block in blocks).split())
            is_below = merge is not None and merge.get(VAL) != "restart"
            if is_below and not text and len(cells) < len(above):
                text = repeated(above[len(cells)])
            elif is_merged:
                text = Merged(text)
            cells += [text, *[repeated(text)] * (width - 1)]
        self._n_cells += len(cells)
        if self._n_cells > MAX_CELLS:
            raise UnreadableError(f"has more than {MAX_CELLS:,} cells in tables")
        return cells, inside

    def _linked(self, link: str | None) -> Iterator[Any]:
        """Yield the root of the part to which an id refers, unless it was read before."""
        _, name = self._links.get(link or "", ("", ""))
        if name in self._names:
            self._names.remove(name)
            yield self._xml(name)

    def _part(self, kind: str) -> Any:
        """Return the root of a part of a given kind, or an empty element if there is none."""
        names = (name for of, name in self._links.values() if of == kind and name in self._names)
        return self._xml(name) if (name := next(names, "")) else parsed(b"<none/>")

    def _relations(self, name: str) -> dict[str, tuple[str, str]]:
        """Return the kinds and names of the parts to which a part refers, by their ids."""
        folder, base = posixpath.split(name)
        path = posixpath.join(folder, "_rels", f"{base}.rels")
        links = self._xml(path) if path in self._names else ()
        return {
            each.get("Id", ""): (
                posixpath.basename(each.get("Type", "")),
                posixpath.normpath(posixpath.join("/", folder, each.get("Target", "")))[1:],
            )
            for each in links
            if each.get("TargetMode") != "External"
        }

    def _xml(self, name: str) -> Any:
        return parsed(self._parts.read(name))


class _Styles(dict[str, Style]):
    """The styles of a Word file by their ids."""

    def __init__(self, root: Any) -> None:
        super().__init__()
        self._elements = {style.get(f"{W}styleId"): style for style in root}

    def __missing__(self, name: str) -> Style:
        found, base = list[Any](), name  # the style and those that it is based on
        while base in self._elements and len(found) < MAX_BASES:
            found.append(self._elements[base])
            base = value(found[-1], f"{W}basedOn")
        levels = (level for level in map(_level, found) if level is not None)
        marks = dict(chain.from_iterable(_marks(style).items() for style in reversed(found)))
        is_title = bool(found) and value(found[0], f"{W}name").lower() == "title"
        num, place = (
            next(filter(None, (value(style, f"{W}pPr/{W}numPr/{W}{of}") for style in found)), "")
            for of in ("numId", "ilvl")
        )
        self[name] = Style(next(levels, 0), is_title, num, place, marks)
        return self[name]


def _level(element: Any) -> int | None:
    """Return the heading level of a style or paragraph, 0 for text, or None if unspecified."""
    if outline := value(element, f"{W}pPr/{W}outlineLvl"):
        return min(int(outline) + 1, DEEPEST) if outline in [*"012345678"] else 0
    match = HEADING.fullmatch(value(element, f"{W}name"))
    return match and min(int(match[1] or 1), DEEPEST)


def _marks(element: Any) -> Marks:
    found = (each for each in element.iterfind(f"{W}rPr/*") if each.tag in MARKS)
    return {each.tag: each.get(VAL, "on") for each in found}


def _kind(marks: Marks) -> RunKind:
    """Return the kind of a run of text."""
    if marks.get(f"{W}vanish", "") not in OFF:
        return RunKind.UNSEEN
    if any(marks.get(f"{W}{name}", "") not in OFF for name in ("strike", "dstrike")):
        return RunKind.STRUCK
    return SCRIPTS.get(marks.get(f"{W}vertAlign", ""), RunKind.PLAIN)


def _span(element: Any, path: str, default: int) -> int:
    return min(whole(value(element, path), default), MAX_SPAN)


def _symbol(element: Any) -> str:
    """Return a character of a symbol font, if it is known."""
    code = int(element.get(f"{W}char", "0"), 16)
    if not 0xF000 <= code <= 0xF0FF:
        return chr(code) if 0x20 <= code < 0xD800 else ""
    signs = SYMBOL if element.get(f"{W}font", "").startswith("Symbol") else WINGDINGS
    return signs.get(chr(code - 0xF000), "")


def _within(element: Any, tag: str) -> Iterator[Any]:
    """Yield the rows of a table, or cells of a row, including those in controls and insertions."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag not in UNREAD:
            yield from _within(child, tag)


def value(element: Any, path: str) -> str:
    """Return the value of the first element at a path, or ""."""
    found = element.find(path)
    return "" if found is None else found.get(VAL) or ""


class _Numbering:
    """Counts the numbered paragraphs of a document, in order.

    Parameters
    ----------
    root : element
        Root element of the part `numbering.xml`.
    """

    def __init__(self, root: Any) -> None:
        self._lists = dict[str, tuple[str, Levels, dict[int, int]]]()  # levels, and their starts
        self._counts = defaultdict[str, dict[int, int]](dict)  # of abstract lists, by level
        self._begun = set[str]()
        abstract = {
            each.get(f"{W}abstractNumId"): each for each in root.iterfind(f"{W}abstractNum")
        }
        of_style = {value(each, f"{W}styleLink"): name for name, each in abstract.items()}
        for num in root.iterfind(f"{W}num"):
            name = value(num, f"{W}abstractNumId")
            if name in abstract and (style := value(abstract[name], f"{W}numStyleLink")):
                name = of_style.get(style, name)
            own = abstract[name].iterfind(f"{W}lvl") if name in abstract else ()
            starts = {
                whole(each.get(f"{W}ilvl")): whole(start)
                for each in num.iterfind(f"{W}lvlOverride")
                if (start := value(each, f"{W}startOverride"))
            }
            levels = {whole(level.get(f"{W}ilvl")): level for level in own}
            self._lists[num.get(f"{W}numId", "")] = name, levels, starts

    def next(self, num: str, level: str, style: str) -> tuple[str, int]:
        """Count a paragraph; return its number, or "" if it has none, and its level.

        Parameters
        ----------
        num : str
            Id of the list.
        level : str
            Level in the list; if "", the level to which the style belongs.
        style : str
            Id of the paragraph's style.
        """
        name, levels, starts = self._lists.get(num, ("", {}, {}))
        belongs = (at for at, each in levels.items() if value(each, f"{W}pStyle") == style != "")
        depth = whole(level) if level else next(belongs, 0)
        if depth not in levels:
            return "", depth
        counts, own = self._counts[name], levels[depth]
        if num not in self._begun:
            self._begun.add(num)
            for at in starts:
                counts.pop(at, None)

        def count(at: int) -> int:
            first = whole(value(levels.get(at, own), f"{W}start"), 1)
            return counts.get(at, starts.get(at, first))

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            kind = value(levels.get(at, own), f"{W}numFmt")
            return _formatted(count(at), kind if own.find(f"{W}isLgl") is None else "")

        counts[depth] = count(depth) + (depth in counts)
        for deeper in range(depth + 1, LEVELS):
            counts.pop(deeper, None)
        if value(own, f"{W}numFmt") == "bullet":
            return BULLET, depth
        return re.sub(r"%([1-9])", shown, value(own, f"{W}lvlText")[:MAX_TEXT]).strip(), depth


def _formatted(n: int, kind: str) -> str:
    """Format a number as Word does; in Arabic digits if the format is unknown.

    >>> [_formatted(28, kind) for kind in ("lowerLetter", "upperRoman", "hebrew1")]
    ['bb', 'XXVIII', '28']
    """
    if kind == "none":
        return ""
    if kind == "decimalZero":
        return f"{n:02}"
    return label(n, SHAPES.get(kind, "1"))
