"""HTML files: the text and the headings of their main content."""

from collections.abc import Iterable, Mapping
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any, BinaryIO, NamedTuple

from hierindex.read.text import HEAD, Reading, UnreadableError, read_text
from hierindex.record import TITLE, Heading

MAX_DEPTH = 2048  # of HTML elements; lxml looks through all open ones at an end tag without start
MAX_TITLE = 1000  # characters; each chunk stores the title
MAX_ROW = 4000  # characters; cells of a longer table row are text side by side, not data
ENOUGH = 0.05  # of a page's text outside navigation, below which `main` is not the main content


def read_html(file: BinaryIO) -> Reading:
    """Return the text of the main content with its headings, and the title.

    The main content is in `main` or, without it, in `article` elements, or else the whole page;
    navigation, tables of contents, headers and footers are left out. Each block has lines of
    its own, each table row one line with its cells separated by ``|``; `pre` is kept as it is.
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
    """A block of text, what its elements are, and its level and anchor if it is a heading."""

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

    def joined(self, lines: list[Line]) -> list[Line]:
        """Return the row as one line, or its lines if it arranges more than words."""
        bounds = [0, *(end - self.start for end in self.ends)]
        texts = [line.text for line in lines]
        cells = [" ".join(texts[i:j]) for i, j in pairwise(bounds)]
        while cells and not cells[-1]:
            cells.pop()
        if self.has_blocks or sum(map(bool, cells)) < 2 or sum(map(len, cells)) > MAX_ROW:
            return lines
        inside = reduce(or_, (line.inside for line in lines))
        if not all(line.inside & CONTENTS for line in lines):
            inside &= ~CONTENTS
        return [Line(" | ".join(cells).strip(), inside)]


class _HtmlText:
    """Collects lines while lxml parses.

    A tree of lxml would take quadratic time for an element's attributes.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.title = ""
        self._title: list[str] = []
        self._inside = [0]  # flags of each open element and those around it
        self._inline: list[str] = []
        self._navigates = False  # whether the line links to the next page or the like
        self._link: int | None = None  # index in `_inline` of an open link to an anchor
        self._links_here = False  # whether it links to the place where it is
        self._linked = 0  # letters and digits of the line in links to other places of the page
        self._level = 0  # of the open heading
        self._anchored = False  # whether the open heading has an anchor of its own
        self._anchor = self._last_anchor = ""
        self._rows: list[_Row] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        inside = self._inside[-1]
        if tag in BLOCKS:
            self._break(tag)
        own = TAGS.get(tag, 0)
        if tag in UNLESS_IN_SECTION and not inside & (MAIN | ARTICLE | SECTION):
            own |= CHROME
        if attributes:
            own |= self._read(tag, own, attributes)
        if own & CHROME and tag not in BLOCKS:
            own |= HIDDEN
        if self._rows and (own & PRE or tag in HAS_BLOCKS):
            self._rows[-1].has_blocks = True
        if tag in HEADING_TAGS:
            self._level, self._anchored = int(tag[1]), "id" in attributes
        elif tag == "tr":
            self._rows.append(_Row(len(self.lines)))
        self._inside.append(inside | own)
        if len(self._inside) > MAX_DEPTH + 1:
            raise UnreadableError(f"has elements nested more than {MAX_DEPTH:,} deep")

    def data(self, text: str) -> None:
        inside = self._inside[-1]
        if inside & DOCUMENT_TITLE:
            self._title.append(text)
        elif not inside & HIDDEN:
            self._inline.append(text)

    def end(self, tag: str) -> None:
        if tag in BLOCKS:
            self._break(tag)
        self._inside.pop()
        if tag == "a":
            self._end_link()
        elif tag in HEADING_TAGS:
            self._level = 0
        elif tag in ("td", "th") and self._rows:
            self._rows[-1].ends.append(len(self.lines))
        elif tag == "tr" and self._rows:
            row = self._rows.pop()
            self.lines[row.start :] = row.joined(self.lines[row.start :])
        elif tag == "title":
            self.title = self.title or "".join(self._title).strip()[:MAX_TITLE]
            self._title.clear()

    def close(self) -> None:
        """Do nothing; `html` has ended."""

    def _read(self, tag: str, own: int, attributes: Mapping[str, str]) -> int:
        """Return what an element is by its attributes; note its anchor and where it links."""
        anchor = attributes.get("id", "")
        classes = attributes.get("class", "").split()
        if tag == "a":
            anchor = anchor or attributes.get("name", "")
            if attributes.get("href", "").startswith("#"):
                self._link, self._links_here = (
                    len(self._inline),
                    attributes["href"][1:] == self._anchor,
                )
            if "accesskey" in attributes or attributes.get("rel") in NAVIGATION_LINKS:
                self._navigates = True
        elif anchor in CHROME_IDS and tag not in PAGE_AND_SECTIONS and "section" not in classes:
            own |= CHROME
        known = (
            self._anchored if self._level else tag == "span" and self._anchor != self._last_anchor
        )
        if anchor and not known and not own & HIDDEN:
            self._anchor, self._anchored = anchor, self._level > 0
        if classes and tag not in PAGE_AND_HEADINGS:
            if not CHROME_CLASSES.isdisjoint(classes) or {"contents", "topic"}.issubset(classes):
                own |= CHROME
            elif "fragment" in classes:  # code of Doxygen
                own |= PRE
        if role := attributes.get("role"):
            own |= ROLES.get(role, 0)
        return own

    def _break(self, tag: str) -> None:
        """End the line where a block starts or ends."""
        if self._level and tag in ("br", "div"):
            self._inline.append(" ")
            return
        text = "".join(self._inline)
        self._inline.clear()
        if text and not text.isspace():
            inside = self._inside[-1] | (self._navigates and CHROME)
            if self._linked and self._linked == sum(map(str.isalnum, text)):
                inside |= CONTENTS
            if self._level:
                text = " ".join(text.split())
                self.lines.append(Line(text, inside & ~CONTENTS, self._level, self._anchor))
                self._level, self._last_anchor = 0, self._anchor
            else:
                self.lines += [Line(text, inside) for text in _lines(text, bool(inside & PRE))]
                self._anchor = self._last_anchor
        self._navigates, self._link, self._linked = False, None, 0

    def _end_link(self) -> None:
        """Drop a permalink's sign; note how much of the line links to places of the page."""
        if self._link is not None:
            text = "".join(self._inline[self._link :])
            if SIGNS.issuperset(text):
                del self._inline[self._link :]
            elif not self._links_here:
                self._linked += sum(map(str.isalnum, text))
        self._link = None


def _lines(text: str, pre: bool) -> Iterable[str]:
    if pre:
        return [text.strip("\n")]
    flowing = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in flowing if line]


HIDDEN, CHROME, MAIN, ARTICLE, SECTION, PRE, DOCUMENT_TITLE, CONTENTS = (1 << i for i in range(8))
"""What an element or line is.

`CHROME` is everything around the content, like navigation, `CONTENTS` a line of links to places
of the same page.
"""

BLOCKS = frozenset(
    "address article aside blockquote body br caption center dd details div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu "
    "nav ol p pre section summary table td th tr ul".split()
)
HEADING_TAGS = frozenset("h1 h2 h3 h4 h5 h6".split())
HAS_BLOCKS = HEADING_TAGS | {"pre", "table"}
PAGE_AND_HEADINGS = HEADING_TAGS | {"html", "body", "main"}
PAGE_AND_SECTIONS = PAGE_AND_HEADINGS | {"section", "article"}
UNLESS_IN_SECTION = frozenset(["header", "aside"])  # where they are about more than the section
TAGS: dict[str, Any] = {
    **dict.fromkeys("script style template noscript button select".split(), HIDDEN),
    **dict.fromkeys(["nav", "footer"], CHROME),
    "main": MAIN,
    "article": ARTICLE,
    "section": SECTION,
    "pre": PRE,
    "title": DOCUMENT_TITLE,
}
ROLES: dict[str, int] = {
    **dict.fromkeys("banner contentinfo dialog menu menubar navigation search".split(), CHROME),
    **dict.fromkeys("complementary directory doc-pagelist doc-toc toolbar".split(), CHROME),
    "main": MAIN,
}
CHROME_IDS = frozenset(
    "breadcrumb breadcrumbs footer nav navbar navigation side-nav table-of-contents "
    "table_of_contents _table_of_contents titlearea toc".split()
)
CHROME_CLASSES = frozenset(
    "bottomNav breadcrumb breadcrumbs catlinks d-print-none gutter headerlink hideme ingroups "
    "line-numbers lineno linenodiv linenos menu-bar mw-editsection mw-jump-link nav nav-panel "
    "navbar navbox navfooter navheader navigation navpath no-print noprint on-this-page out-of- "
    "band page-toc pagetoc pagination prev-next-area prev-next-footer printfooter related "
    "rightside rst-versions skip-link skip-nav skip-to-content skiplink sphinxsidebar spirit-nav "
    "subNav table-of-contents toc toctree-wrapper topNav viewcode-back viewcode-link".split()
)
"""Classes of Sphinx, DocBook, Doxygen, Javadoc, rustdoc, MediaWiki and Bootstrap, and the usual."""

NAVIGATION_LINKS = frozenset("contents help home index next prev previous search start up".split())
SIGNS = frozenset("¶#§◆🔗⚓↩\ufe0e\ufe0f\u200b\xa0 \n")  # of links to the place where they are
