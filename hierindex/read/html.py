"""HTML files: the text and the headings of their main content."""

from collections.abc import Mapping
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from typing import BinaryIO, NamedTuple

from hierindex.node import TITLE, Heading
from hierindex.read.records import records_of_table
from hierindex.read.text import HEAD, MAX_TITLE, Reading, UnreadableError, read_text

BLOCK, HEADING, CELL, ROW, TABLE, PRE, LINK, DOCUMENT_TITLE = (1 << i for i in range(8))
HIDDEN, CHROME, MAIN, ARTICLE, SECTION, ASIDE, CONTENTS = (1 << i for i in range(8, 15))
"""Kinds of elements and lines, as bits.

`CHROME` is everything around the content, like navigation; `CONTENTS` is a line of links to
places of the same page.
"""
MAX_DEPTH = 2048  # of HTML elements; lxml looks through all open ones at an end tag without start
MAX_ROW = 4000  # characters; cells of a longer table row are text side by side, not data
ENOUGH = 0.05  # of a page's text outside navigation, below which `main` is not the main content
NAVIGATION_LINKS = frozenset("contents help home index next prev previous search start up".split())
SIGNS = frozenset("¶#§◆🔗⚓↩\ufe0e\ufe0f\u200b\xa0 \n")  # of links to the place where they are


def kind_of(tag: str, attributes: Mapping[str, str], inside: int) -> int:
    """Return what an element is, by its tag, role, id and classes.

    Parameters
    ----------
    tag : str
    attributes : Mapping[str, str]
    inside : int
        Kinds of the elements around it.

    Returns
    -------
    int
        Bits of this module. What is around the content within a line is also hidden.
    """
    kind = TAGS.get(tag, 0)
    if tag == "button" and inside & HEADING and attributes.get("id") not in CHROME_IDS:
        return 0  # it unfolds what the heading is of
    if kind & ASIDE and not inside & (MAIN | ARTICLE | SECTION):
        kind |= CHROME
    if attributes and not kind & HEADING:
        if role := attributes.get("role"):
            kind |= ROLES.get(role, 0)
        if tag not in PAGE:
            classes = attributes.get("class", "").split()
            of_docutils = "contents" in classes and "topic" in classes
            if of_docutils or not CHROME_CLASSES.isdisjoint(classes):
                kind |= CHROME
            elif "fragment" in classes:  # code of Doxygen
                kind |= PRE
            named = tag in ("a", "dt", "span") or inside & HEADING  # an anchor of its text
            if attributes.get("id") in CHROME_IDS and not named and not kind & (SECTION | ARTICLE):
                kind |= 0 if "section" in classes else CHROME  # Sphinx makes ids from titles
        if kind & CHROME and not kind & BLOCK:
            kind |= HIDDEN
    return kind


PAGE = frozenset(["html", "body", "main"])
TAGS = dict.fromkeys(
    "address blockquote body br caption center dd details div dl dt fieldset figcaption figure "
    "form hgroup hr html legend li menu ol p summary ul".split(),
    BLOCK,
)
TAGS |= dict.fromkeys("script style template noscript button select".split(), HIDDEN)
TAGS |= dict.fromkeys("h1 h2 h3 h4 h5 h6".split(), BLOCK | HEADING)
TAGS |= dict.fromkeys("header aside".split(), BLOCK | ASIDE)
TAGS |= dict.fromkeys("nav footer".split(), BLOCK | CHROME)
TAGS |= dict.fromkeys("td th".split(), BLOCK | CELL)
TAGS |= {
    "a": LINK,
    "article": BLOCK | ARTICLE,
    "main": BLOCK | MAIN,
    "pre": BLOCK | PRE,
    "section": BLOCK | SECTION,
    "table": BLOCK | TABLE,
    "title": DOCUMENT_TITLE,
    "tr": BLOCK | ROW,
}
ROLES = dict.fromkeys(
    "banner complementary contentinfo dialog directory doc-pagelist doc-toc menu menubar "
    "navigation search toolbar".split(),
    CHROME,
)
ROLES["main"] = MAIN
CHROME_IDS = frozenset(
    "breadcrumb breadcrumbs copy-path footer nav navbar navigation side-nav table-of-contents "
    "_table_of_contents titlearea toc".split()
)
CHROME_CLASSES = frozenset(
    "NAVFOOTER NAVHEADER TOC bottomNav breadcrumb breadcrumbs catlinks d-print-none gutter "
    "headerlink hideme ingroups line-numbers lineno linenodiv linenos menu-bar mw-editsection "
    "mw-jump-link nav nav-panel navbar navbox navfooter navheader navigation navpath no-print "
    "noprint on-this-page out-of-band page-toc pagetoc pagination prev-next-area prev-next-footer "
    "printfooter related rightside rst-versions skip-link skip-nav skip-to-content skiplink "
    "sphinxsidebar spirit-nav subNav table-of-contents toc toctree-wrapper topNav viewcode-back "
    "viewcode-link".split()
)
"""Classes of Sphinx, DocBook, Doxygen, Javadoc, rustdoc, MediaWiki and Bootstrap, and the usual."""


def read_html(file: BinaryIO) -> Reading:
    """Return the text of the main content with its headings, and the title.

    The main content is in `main` or, without it, in `article` elements, or else the whole page;
    navigation, tables of contents, headers and footers are left out. Each block has lines of
    its own, each table row one line with its cells separated by ``|``, or with their headers if
    the table is long; `pre` is kept as it is.
    """
    from lxml import etree

    html, metadata, _ = read_text(file)
    found = _HtmlText()
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, target=found)
    data = html.encode("utf-8", "replace")
    for at in range(0, len(data) or 1, HEAD):  # an error of `found` surfaces after a part
        parser.feed(data[at : at + HEAD])
    parser.close()
    if found.title:
        metadata[TITLE] = found.title
    lines = main_content(found.lines)
    headings, start = [], 0
    for text, _, level, anchor in lines:
        if level:
            headings.append(Heading(level, text[:MAX_TITLE], start, anchor))
        start += len(text) + 1
    return Reading("\n".join(line.text for line in lines), metadata, headings)


class Line(NamedTuple):
    """A block of text, the kinds of its elements, and its level and anchor if it is a heading."""

    text: str
    inside: int
    level: int = 0
    anchor: str = ""


def main_content(lines: list[Line]) -> list[Line]:
    """Return the lines of the main content; all lines if there are no others than navigation."""
    content = [line for line in lines if not line.inside & (CHROME | CONTENTS)]
    enough = ENOUGH * sum(len(line.text) for line in content)
    for landmark in (MAIN, ARTICLE):
        inside = [line for line in content if line.inside & landmark]
        if inside and sum(len(line.text) for line in inside) >= enough:
            return inside
    return content or lines


class _Row:
    """A table row: the index of its first line, and of the end of each cell."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.ends: list[int] = []
        self.has_blocks = False  # headings, code or tables
        self.is_header = True  # all cells are `th`
        self.has_spans = False  # cells of several columns or rows

    def joined(self, lines: list[Line]) -> tuple[list[Line], list[str]]:
        """Return the row as one line with its cells, or its lines if it arranges more than words.

        It then has no cells.
        """
        bounds = [0, *(end - self.start for end in self.ends)]
        cells = [" ".join(line.text for line in lines[i:j]) for i, j in pairwise(bounds)]
        while cells and not cells[-1]:
            cells.pop()
        if self.has_blocks or sum(map(bool, cells)) < 2 or sum(map(len, cells)) > MAX_ROW:
            return lines, []
        kinds = [line.inside for line in lines]
        inside = reduce(or_, kinds) & ~CONTENTS | reduce(and_, kinds)
        return [Line(" | ".join(cells).strip(), inside)], cells


class _Table:
    """A table: the cells of its rows, and whether each row is a line and the first a header."""

    def __init__(self) -> None:
        self.start = 0  # index of the line of the first row
        self.rows: list[list[str]] = []
        self.is_plain = True

    def add(self, row: _Row, cells: list[str]) -> None:
        """Add a row that has ended, with its cells if it is a line."""
        if not self.rows:
            self.start, self.is_plain = row.start, row.is_header
        self.is_plain &= bool(cells) and not row.has_spans
        self.rows.append(cells)

    def records(self, end: int) -> list[str]:
        """Return the rows as records if the table is long and its last line is before `end`."""
        if not self.is_plain or end - self.start != len(self.rows):
            return []
        records = records_of_table(self.rows, named=True)
        return records if len(records) == len(self.rows) - 1 else []


class _HtmlText:
    """Collects lines while lxml parses.

    A tree of lxml would take quadratic time for an element's attributes.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.title = ""
        self._title: list[str] = []
        self._inside = [0]  # kinds of each open element and those around it
        self._inline: list[str] = []  # the text of the line so far
        self._navigates = False  # whether the line links to the next page or the like
        self._linked = 0  # letters and digits of the line in links to other places of the page
        self._link: int | None = None  # index in `_inline` of an open link to a place of the page
        self._links_here = False  # whether it links to the place where it is
        self._level = 0  # of the open heading
        self._anchor = self._last_anchor = ""  # the nearest, and that of the last heading
        self._anchored = False  # whether the open heading has an anchor of its own
        self._rows: list[_Row] = []
        self._tables: list[_Table] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        inside = self._inside[-1]
        kind = kind_of(tag, attributes, inside)
        if kind & BLOCK:
            self._break(tag)
            if self._rows and kind & (HEADING | PRE | TABLE):
                self._rows[-1].has_blocks = True
            if kind & ROW:
                self._rows.append(_Row(len(self.lines)))
            if kind & TABLE:
                self._tables.append(_Table())
            if kind & CELL and self._rows:
                self._rows[-1].is_header &= tag == "th"
                self._rows[-1].has_spans |= "colspan" in attributes or "rowspan" in attributes
        if attributes and not kind & HIDDEN:
            self._note_anchor(tag, attributes)
        if kind & HEADING:
            self._level, self._anchored = int(tag[1]), "id" in attributes
        self._inside.append(inside | kind)
        if len(self._inside) > MAX_DEPTH + 1:
            raise UnreadableError(f"has elements nested more than {MAX_DEPTH:,} deep")

    def data(self, text: str) -> None:
        inside = self._inside[-1]
        if inside & DOCUMENT_TITLE:
            self._title.append(text)
        elif not inside & HIDDEN:
            self._inline.append(text)

    def end(self, tag: str) -> None:
        kind = TAGS.get(tag, 0)
        if kind & BLOCK:
            self._break(tag)
        self._inside.pop()
        if kind & LINK:
            self._end_link()
        elif kind & HEADING:
            self._level = 0
        elif kind & CELL and self._rows:
            self._rows[-1].ends.append(len(self.lines))
        elif kind & ROW:
            row = self._rows.pop()
            self.lines[row.start :], cells = row.joined(self.lines[row.start :])
            if self._tables:
                self._tables[-1].add(row, cells)
        elif kind & TABLE:
            table = self._tables.pop()
            if records := table.records(len(self.lines)):
                records[-1] += "\n\n"  # blank lines as between records
                kinds = [line.inside for line in self.lines[table.start + 1 :]]
                texts = (f"\n\n{record}" for record in records)
                self.lines[table.start :] = map(Line, texts, kinds)
        elif kind & DOCUMENT_TITLE:
            self.title = self.title or "".join(self._title).strip()[:MAX_TITLE]
            self._title.clear()

    def close(self) -> None:
        """Do nothing; `html` has ended."""

    def _note_anchor(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Note an element's anchor, and whether it links to another page or place."""
        anchor = attributes.get("id", "")
        if tag == "a":
            anchor = anchor or attributes.get("name", "")
            href = attributes.get("href", "")
            if href.startswith("#"):
                self._link, self._links_here = len(self._inline), href[1:] == self._anchor
            if "accesskey" in attributes or attributes.get("rel") in NAVIGATION_LINKS:
                self._navigates = True
        if not anchor or (self._level and self._anchored):
            return
        if self._level or tag != "span" or self._anchor == self._last_anchor:
            self._anchor, self._anchored = anchor, True

    def _end_link(self) -> None:
        """Drop a link that is only a sign; note how much of the line links to the page itself."""
        if self._link is not None:
            text = "".join(self._inline[self._link :])
            if SIGNS.issuperset(text):
                del self._inline[self._link :]
            elif not self._links_here:
                self._linked += _n_alphanumeric(text)
        self._link = None
        if not self._inline:  # a picture links; the text that follows does not
            self._navigates = False

    def _break(self, tag: str) -> None:
        """End the line where a block starts or ends."""
        if not self._inline:
            return
        if self._level and tag in ("br", "div"):
            self._inline.append(" ")
            return
        text = "".join(self._inline)
        self._inline.clear()
        if text and not text.isspace():
            self._add(text)
        self._navigates, self._link, self._linked = False, None, 0

    def _add(self, text: str) -> None:
        inside = self._inside[-1]
        if self._navigates:
            inside |= CHROME
        if self._level:
            text = " ".join(text.split())
            self.lines.append(Line(text, inside, self._level, self._anchor))
            self._level, self._last_anchor = 0, self._anchor
            return
        if self._linked and self._linked == _n_alphanumeric(text):
            inside |= CONTENTS
        if inside & PRE:
            self.lines.append(Line(text.strip("\n"), inside))
        else:
            flowing = (" ".join(line.split()) for line in text.splitlines())
            self.lines += [Line(line, inside) for line in flowing if line]
        self._anchor = self._last_anchor


def _n_alphanumeric(text: str) -> int:
    return sum(map(str.isalnum, text))
