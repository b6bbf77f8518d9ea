"""HTML files: the text and headings of their main content."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import zip_longest
from operator import and_, or_
from typing import Any, BinaryIO, NamedTuple

from hierindex.node import FURNITURE, TITLE, Heading
from hierindex.read import html_elements as kinds
from hierindex.read.html_elements import Line
from hierindex.read.marks import NUMBERS, RunKind, formula, item_marks, subscript, superscript
from hierindex.read.tables import MAX_SPANNED, HtmlRow, table_lines
from hierindex.read.text import (
    MAX_TITLE,
    Reading,
    UnreadableError,
    first_day,
    read_text,
    reading_as,
    without_embedded,
)

NO_PROSE = kinds.PRE | kinds.CELL
ENDS = ":;, "  # of a term
LABELS = frozenset("note tip important caution warning".split())
"""Headings of boxes, as in DocBook's pages, that head no section."""
ITEM = re.compile(r"(?:-?\d+|[a-z]{1,2}|[ivxlc]+|[A-Z]{1,2}|[IVXLC]+)\. ")  # the number of an item
NO_CONTENT = kinds.CHROME | kinds.CONTENTS | kinds.OUTER | kinds.UNSEEN
AROUND = f"word(s) {FURNITURE}"
MAX_LEVELS = 200  # of elements; the text of deeper ones is that of the element around them
PREFIXED = re.compile(r".*:[a-z][\w-]*", re.ASCII)  # tag
INLINE = frozenset("a b code em i span strong".split())
NAVIGATION_LINKS = frozenset("contents help home index next prev previous search start up".split())
SIGNS = frozenset("¶#§◆🔗⚓↩^↑\ufe0e\ufe0f\u200b\xa0 \n")  # of links to the place where they are
UNTITLED = frozenset(["", "document", "home", "index", "new page 1", "untitled"])
UNTITLED |= {"untitled document", "untitled page"}
PICTURE_FILE = re.compile(r"\.(?:avif|gif|jpe?g|png|svg|tiff?|webp)(?:\?|$)", re.I)
HANDLE = re.compile(r"@|https?://")
INTRODUCTION = 500  # characters; a heading after longer text is that of a section
ABOUT = {"title": "title", "author": "author", "creator": "author"}
ABOUT |= dict.fromkeys(
    "date datepublished issued pubdate publish-date published_time".split(), "date"
)
"""Ends of the names of `meta` elements, such as `dc.date`, and what they say."""


def read_html(file: BinaryIO) -> Reading:
    """Return the text and headings of the main content; title, author and date are metadata.

    Navigation, tables of contents and hidden elements are left out, and so are headers, footers and
    asides without text of their own; see `main_content`. Pictures in the content are counted. Each
    block has lines of its own; the term of a definition list is in the line that explains it. A
    table row is one line with cells separated by ``|``, or a record with the headers if the table
    is long. `pre` is kept unchanged.
    """
    html, metadata, _ = read_text(file)
    return html_reading(html, metadata)


@reading_as("HTML")
def html_reading(html: str, metadata: dict[str, Any]) -> Reading:
    """Return the text and headings of decoded HTML, see `read_html`; extend its metadata."""
    root = _tree(html)
    page = _Page(root)
    lines = kinds.main_content(page.lines, len([*root.iter("article")]))
    text, _, headings = Reading.joined(_explained(lines), between="\n")
    kept = {id(line) for line in lines}
    for line in page.lines:
        if id(line) not in kept:
            why = RunKind.UNSEEN if line.inside & kinds.UNSEEN else AROUND
            page.left_out[why] += len(line.text.split())
    left_out = {**page.left_out, "picture": len(page.pictures)}
    reading = Reading(text, metadata, headings).leaving_out(left_out)
    metadata |= {key: value for key, value in _about(root, headings).items() if value}
    return reading


def _explained(lines: Sequence[Line]) -> Iterator[Reading]:
    """Yield the readings of lines; the terms of a definition list stand before what explains them.

    They are in the same line, unless an item, a table, code or a heading explains them. A blank
    line is before each definition, and after the last one.
    """
    terms, last, above = list[str](), 0, ""
    for line in lines:
        here = line.inside & (kinds.TERM | kinds.DEFINITION)
        is_prose = not (line.level or line.inside & NO_PROSE or ITEM.match(line.text))
        is_term = is_prose and here & kinds.TERM and not line.text.endswith(kinds.SENTENCE_ENDS)
        blank = above * bool(terms or (last and not here))
        if is_term and terms and here == last:
            terms.append(line.text.rstrip(ENDS))
            continue
        said = f"{blank}{', '.join(terms)}"
        if terms and is_prose and here == kinds.DEFINITION:
            said += ": "
        elif terms:
            yield Reading.block(said)
            said, above = "", "\n"
        terms, last = [line.text.rstrip(ENDS)] if is_term else [], here
        if not is_term:
            heads = line.level and line.text.lower() not in LABELS
            heading = Heading(line.level, line.text[:MAX_TITLE], len(said), line.anchor)
            yield Reading(f"{said}{line.text}", {}, [heading] if heads else [])
            above = "\n"
    if terms:
        yield Reading.block(f"{above}{', '.join(terms)}")


@reading_as("HTML")
def html_lines(html: str) -> list[str]:
    """Return the lines of a piece of HTML, such as a table."""
    return [line.text for line in _Page(_tree(html)).lines]


def _about(root: Any, headings: Sequence[Heading]) -> dict[str, Any]:
    """Return the title, the authors and the date of a page, or "" for missing ones."""
    said: dict[str, list[str]] = {"title": [], "author": [], "date": []}
    said["title"] += ["".join(title.itertext()).strip() for title in root.iter("title")][:1]
    for meta in root.iter("meta"):
        for key in ("name", "property", "itemprop"):
            names = re.split("[.:]", meta.get(key, "").lower())
            if names[-1] in ABOUT and names[0] != "twitter":
                said[ABOUT[names[-1]]].append(" ".join(meta.get("content", "").split()))
    said["date"] += [
        time.get("datetime", "").strip()
        for around in (root, *root.iter("header"))
        for time in around.iter("time")
        if around is not root or "pubdate" in time.attrib or time.get("itemprop") == "datePublished"
    ]
    title = next((title for title in said["title"] if title.lower() not in UNTITLED), "")
    top = min((heading.level for heading in headings), default=0)
    heads = [heading for heading in headings if heading.level == top]
    is_first = len(heads) == 1 and heads[0].start <= (INTRODUCTION if top == 1 else 0)
    if is_first and (not title or _with_site(title, heads[0].title)):
        title = heads[0].title
    authors = [name for name in dict.fromkeys(said["author"]) if name and not HANDLE.match(name)]
    author, date = ", ".join(authors)[:MAX_TITLE], first_day(said["date"])
    return {TITLE: title[:MAX_TITLE], "author": author, "date": date}


def _with_site(title: str, heading: str) -> bool:
    """Return whether a title is a heading followed by the name of the site."""
    return re.match(rf"{re.escape(heading)}\s+[|\u00b7\u2013\u2014:\u00bb-]", title) is not None


def _tree(html: str) -> Any:
    """Return an element with all of a page, also what follows the end of its root.

    Tags have no prefixes.
    """
    from lxml import etree

    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    root = etree.fromstring(b"<html>" + html.encode("utf-8", "replace"), parser)
    if parser.error_log.filter_from_fatals():
        raise UnreadableError("has elements nested too deep, or is damaged")
    page = etree.Element("html")
    page.extend([root, *root.itersiblings()])
    for element in page.iter():
        if PREFIXED.fullmatch(element.tag):
            element.tag = element.tag.rpartition(":")[2]
    return page


class _Around(NamedTuple):
    """The context of an element: the kinds, the outer part of the page, a link, and the depth."""

    inside: int = 0
    region: Any = None
    link: int = 0
    depth: int = 0


class _Page:
    """Collects the lines of a page."""

    def __init__(self, root: Any) -> None:
        self.lines: list[Line] = []
        self.left_out = Counter({AROUND: 0, RunKind.UNSEEN: 0, RunKind.STRUCK: 0})
        self.pictures = set[tuple[str, str]]()  # of the content
        shown_by_buttons = [button.get("aria-controls", "") for button in root.iter("button")]
        self._unfolded = {*" ".join(shown_by_buttons).split()}  # ids
        self._parts: list[tuple[str, int]] = []  # of the line so far: texts and links
        self._level = 0  # of the open heading
        self._anchor = self._last_anchor = ""  # the nearest, and that of the last heading
        self._marks: dict[Any, str] = {}  # numbers of list items
        self._mark = ""  # the numbers of the list items that the next line begins
        self._rows: list[HtmlRow] = []  # of the open table
        self._row = HtmlRow(0, 0)
        self._room = MAX_SPANNED
        self._read(root, _Around())
        self._end_line(_Around())

    def _read(self, element: Any, around: _Around) -> None:
        if around.depth == MAX_LEVELS:
            self._parts.append(("".join(element.itertext()), around.link))
            return
        tag, attributes = element.tag, element.attrib
        kind = kinds.kind_of(tag, attributes, around.inside)
        if kind & kinds.UNSEEN and attributes.get("id") in self._unfolded:
            kind ^= kinds.UNSEEN
        if kind & kinds.BLOCK:
            self._end_line(around, tag)
        if why := _why_not(element, kind, around.inside):
            self.left_out[why] += len(" ".join(element.itertext()).split())
        if why or kind & kinds.HIDDEN:
            return
        if tag == "math":
            self._parts.append((formula(element), around.link))
            return
        if kinds.is_picture(tag, attributes) and not (
            around.link or (kind | around.inside) & NO_CONTENT
        ):
            self.pictures.add((attributes.get("src", ""), attributes["alt"]))
        self._note(element, kind)
        region = element if kind & kinds.OUTER else around.region
        around = _Around(around.inside | kind, region, around.link, around.depth + 1)
        _READ.get(tag, _Page._inside)(self, element, around)
        if kind & kinds.BLOCK:
            self._end_line(around, tag)
        if kind & kinds.HEADING:
            self._level = 0
        elif tag == "li":
            self._mark = ""

    def _note(self, element: Any, kind: int) -> None:
        """Record an element's anchor, its level if it is a heading, and the numbers of a list."""
        tag = element.tag
        if kind & kinds.HEADING:
            self._level = int(tag[1])
            self._anchor = next(filter(None, map(_anchor_of, element.iter())), self._anchor)
        elif not self._level and (tag != "span" or self._anchor == self._last_anchor):
            self._anchor = _anchor_of(element) or self._anchor
        if kind & (kinds.HEADING | kinds.PRE) or tag == "table":
            self._row.has_blocks = True
        if tag == "ol":
            self._marks.update(item_marks(element))
        elif tag == "li":
            self._mark += self._marks.pop(element, "")

    def _inside(self, element: Any, around: _Around) -> None:
        if element.text:
            self._parts.append((element.text, around.link))
        for child, after in zip_longest(element, element[1:]):
            if child.tag == "p" and after is not None and _explains(after):
                child.tag, after.tag = "dt", "dd"
            self._read(child, around)
            if child.tail:
                self._parts.append((child.tail, around.link))
            elif after is not None and child.tag == after.tag == "a":
                self._parts.append((" ", around.link))

    def _read_link(self, element: Any, around: _Around) -> None:
        """Read a link, unless it is only a sign; a number is read as the mark of a note."""
        href, start = element.get("href", ""), len(self._parts)
        is_here = href.startswith("#")
        link = kinds.CONTENTS if is_here else kinds.LINKED if href else 0
        if PICTURE_FILE.search(href) or (is_here and href[1:] == self._anchor):
            link = 0
        if "accesskey" in element.attrib or element.get("rel") in NAVIGATION_LINKS:
            link |= kinds.CHROME
        self._inside(element, around._replace(link=link))
        text = _text_of(self._parts[start:])
        if is_here and SIGNS.issuperset(text):
            self._parts[start:] = [("", kinds.CONTENTS)]
        elif is_here and NUMBERS.fullmatch(text) and self._before(start).strip():
            self._parts[start:] = [(f"[{text}]", kinds.CONTENTS)]

    def _read_script(self, element: Any, around: _Around) -> None:
        """Read a superscript or subscript so that it does not change the words beside it."""
        start, after = len(self._parts), (element.tail or "")[:1]
        self._inside(element, around)
        if not (text := _text_of(self._parts[start:])).strip():
            return
        before = self._before(start)
        link = reduce(or_, (link for _, link in self._parts[start:]), around.link)
        if element.tag == "sub":
            said = subscript(text, before)
            continues = after.isdigit()
        else:
            said = superscript(text, before, is_linked=link != 0)
            continues = after.isalnum()
        gap = " " * (continues and said[-1:].isalnum())
        if element.tag == "sup" and said.isdigit() and not before and (gap or after.isspace()):
            said = f"[{said}]"
        self._parts[start:] = [(said + gap, link)]

    def _before(self, at: int) -> str:
        """Return the last character before a part of the line; "" if it begins the line."""
        if at < 3 and not _text_of(self._parts[:at]).strip():
            return ""
        parts = (self._parts[i][0] for i in range(at - 1, -1, -1))
        return next((text[-1] for text in parts if text), "")

    def _read_table(self, element: Any, around: _Around) -> None:
        outer = self._rows, self._row
        self._rows, self._row = [], HtmlRow(len(self.lines), len(self.lines))
        self._inside(element, around)
        self._end_line(around)
        if self._rows:
            found, self._room = table_lines(self.lines, self._rows, self._room)
            self.lines[self._rows[0].start :] = found
        self._rows, self._row = outer

    def _read_row(self, element: Any, around: _Around) -> None:
        outer, self._row = self._row, HtmlRow(len(self.lines), len(self.lines))
        self._inside(element, around)
        self._end_line(around)
        self._rows.append(self._row)
        self._row = outer

    def _read_cell(self, element: Any, around: _Around) -> None:
        self._inside(element, around)
        self._end_line(around)
        text = " ".join(line.text for line in self.lines[self._row.end :])
        is_header = element.tag == "th" or around.inside & kinds.TABLE_HEAD != 0
        self._row.add(element, text, is_header=is_header)
        self._row.end = len(self.lines)

    def _end_line(self, around: _Around, tag: str = "") -> None:
        """End the line where a block starts or ends."""
        if self._level and self._parts and tag in ("br", "div"):
            self._parts.append((" ", 0))
            return
        parts, self._parts = self._parts, []
        text = without_embedded(_text_of(parts))[0]
        if not text.strip():
            return
        mark, self._mark = self._mark, ""
        links = [link for text, link in parts if any(map(str.isalnum, text))] or [0]
        of_all, inside = reduce(and_, links), around.inside | reduce(or_, links) & kinds.CHROME
        if self._level:
            text = mark + " ".join(text.split())
            self.lines.append(Line(text, inside, self._level, self._anchor, around.region))
            self._level, self._last_anchor = 0, self._anchor
            return
        is_note = mark or any(link & kinds.CONTENTS for _, link in parts)
        inside |= of_all & (kinds.CONTENTS if is_note else kinds.LINKED)
        as_it_is = [mark.strip(), text.strip("\n")]
        texts = as_it_is if inside & kinds.PRE else [mark + " ".join(text.split())]
        self.lines += [Line(line, inside, region=around.region) for line in texts if line]
        self._anchor = self._last_anchor


_READ = {
    "a": _Page._read_link,
    **dict.fromkeys(("sub", "sup"), _Page._read_script),
    "table": _Page._read_table,
    "tr": _Page._read_row,
    **dict.fromkeys(("td", "th"), _Page._read_cell),
}
"""Readers of elements that are more than the text within."""


def _explains(element: Any) -> bool:
    """Return whether an element explains the paragraph before, as in manual pages by mandoc.

    Else it is an example, which is in a block of its own.
    """
    starts_inline = (element.text or "").strip() or (len(element) and element[0].tag in INLINE)
    return "Bd-indent" in element.get("class", "").split() and bool(starts_inline)


def _anchor_of(element: Any) -> str:
    """Return the target of a link to an element, or "" for a button, which may be hidden."""
    if element.tag == "button":
        return ""
    name = element.get("name", "") if element.tag == "a" else ""
    return element.get("id", name) or name


def _why_not(element: Any, kind: int, inside: int) -> str:
    """Return why the words of an element are not read, or "" if they are read."""
    if kind & kinds.STRUCK:
        return RunKind.STRUCK
    if kind & kinds.UNSEEN and (not kind & kinds.BLOCK or (kind | inside) & kinds.CELL):
        return RunKind.UNSEEN
    return (
        AROUND
        if element.tag == "button" and kind & kinds.BLOCK and kinds.is_action(element)
        else ""
    )


def _text_of(parts: Sequence[tuple[str, int]]) -> str:
    return "".join(text for text, _ in parts)
