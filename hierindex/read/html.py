"""HTML files: the text and the headings of their content."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple

from hierindex.node import LEFT_OUT, TITLE, Heading
from hierindex.read.html_content import main_content
from hierindex.read.html_elements import (
    ARTICLE,
    BLOCK,
    BUTTON,
    CELL,
    CHROME,
    CONTENTS,
    DOCUMENT_TITLE,
    FOLDED,
    HEADER,
    HEADING,
    HIDDEN,
    LINK,
    LINKED,
    MATH,
    OPENS,
    OUTER,
    PRE,
    ROW,
    SILENT,
    STRUCK,
    TABLE,
    TABLE_HEAD,
    UNSEEN,
    kind_of,
)
from hierindex.read.html_marks import (
    MAX_SCRIPT,
    NUMBERS,
    Formula,
    ItemNumbers,
    numbered,
    subscript,
    superscript,
)
from hierindex.read.html_tables import MAX_REPEATED, Line, Row, Table
from hierindex.read.text import (
    HEAD,
    MAX_TITLE,
    Reading,
    UnreadableError,
    read_text,
    without_embedded,
)

MAX_DEPTH = 2048  # of HTML elements; lxml looks through all open ones at an end tag without start
NAVIGATION_LINKS = frozenset("contents help home index next prev previous search start up".split())
SIGNS = frozenset("¶#§◆🔗⚓↩^↑\ufe0e\ufe0f\u200b\xa0 \n")  # of links to the place where they are
HOME = re.compile(r"(?:https?://[^/?#]+)?[./]*(?:index\.\w+)?")  # a link to the front page
UNTITLED = frozenset(["", "document", "home", "index", "new page 1", "untitled"])
UNTITLED |= {"untitled document", "untitled page"}
INTRODUCTION = 500  # characters; a heading after longer text is that of a section
MANY = 200  # lines, in the first of which the date of a page is
QUESTION_MARKS = ("?", "\uff1f", "\u061f")
ACTIONS = re.compile(
    r"\W*(?:accept|add|allow|apply|buy|cancel|change|choose|clear|click|close|copy|delete|download|"
    r"edit|expand|go|hide|learn|load|log|more|next|open|play|previous|print|read|register|reject|"
    r"remove|reply|report|reset|save|search|see|select|send|share|show|sign|skip|sort|start|submit|"
    r"subscribe|switch|toggle|try|view)\b",
    re.I,
)
ELEMENT = re.compile(  # after the number of an isotope
    r"(?:[B-HJ-Z]|A[cglmru]|B[aeir]|C[adflmosu]|Eu|Fe|G[ade]|H[efgo]|Kr|Li|M[gno]|N[abeip]|P[abotu]|"
    r"R[abnu]|S[beimnr]|T[chil]|Xe|Zn|Zr)\b"
)
ABOUT = {
    "og:title": "og_title",
    **dict.fromkeys("author article:author dc.creator dcterms.creator".split(), "author"),
    **dict.fromkeys(
        "article:published_time datepublished date dc.date dcterms.date dc.date.issued "
        "dcterms.issued publish-date pubdate".split(),
        "date",
    ),
}
"""Names of `meta` elements, and what they say."""


BEGINS_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--.{0,2000}?-->\s*)?"
    rb"(?:<!DOCTYPE\s+html\b|<html[\s>])",
    re.I | re.DOTALL,
)


def is_html(file: BinaryIO) -> bool:
    """Return whether a file begins as HTML or XHTML does; reads from there again."""
    data = file.read(4000)
    file.seek(0)
    return BEGINS_HTML.match(data) is not None


def read_html(file: BinaryIO) -> Reading:
    """Return the text of the content with its headings; title, author and date as metadata.

    Navigation, tables of contents and what is not displayed are left out, and of headers,
    footers and asides what says nothing; see `main_content`. Each block has lines of its own,
    each table row one line with its cells separated by ``|``, or with their headers if the table
    is long; `pre` is kept as it is.
    """
    html, metadata, _ = read_text(file)
    found = _parsed(html)
    lines = main_content(found.lines, found.n_articles)
    n_folded = _n_words(found.lines, FOLDED) - _n_words(lines, FOLDED)
    furniture = _n_words(found.lines) - _n_words(lines) - n_folded
    headings, texts, start = [], list[str](), 0
    for line in lines:
        text = numbered(line.text, found.list_lengths)
        if line.level:
            headings.append(Heading(line.level, text[:MAX_TITLE], start, line.anchor))
        start += len(text) + 1
        texts.append(text)
    left_out = {"in menus, headers and footers": furniture + found.n_controls}
    left_out |= {"not displayed": found.n_unseen + n_folded, "struck out": found.n_struck}
    notes = [f"{n:,} word{'s' * (n != 1)} {where}" for where, n in left_out.items() if n]
    about = {**_about(found, headings), LEFT_OUT: [*metadata.get(LEFT_OUT, []), *notes]}
    metadata |= {key: value for key, value in about.items() if value}
    return Reading("\n".join(texts), metadata, headings)


def html_lines(html: str) -> list[str]:
    """Return the lines of a piece of HTML, such as a table."""
    found = _parsed(html)
    return [numbered(line.text, found.list_lengths) for line in found.lines]


def _parsed(html: str) -> "_HtmlText":
    from lxml import etree

    found = _HtmlText()
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, target=found)
    data = html.encode("utf-8", "replace")
    for at in range(0, len(data) or 1, HEAD):  # an error of `found` surfaces after a part
        parser.feed(data[at : at + HEAD])
    parser.close()
    return found


def _n_words(lines: Sequence[Line], kind: int = -1) -> int:
    """Return how many words lines of a kind have together."""
    return sum(len(line.text.split()) for line in lines if kind < 0 or line.inside & kind)


def _about(found: "_HtmlText", headings: Sequence[Heading]) -> dict[str, Any]:
    """Return the title, the authors and the date of a page, or "" for what it does not say."""
    said = found.about
    titles = [found.title, *said.get("og_title", [])]
    title = next((title for title in titles if title.lower() not in UNTITLED), "")
    top = min((heading.level for heading in headings), default=0)
    heads = [heading for heading in headings if heading.level == top]
    if not title and len(heads) == 1 and heads[0].start <= (INTRODUCTION if top == 1 else 0):
        title = heads[0].title
    authors = [name for name in dict.fromkeys(said.get("author", [])) if "://" not in name]
    dates = filter(_is_date, [*said.get("date", []), *said.get("time", [])])
    return {TITLE: title, "author": ", ".join(authors)[:MAX_TITLE], "date": next(dates, "")}


def _is_date(text: str) -> bool:
    """Return whether a text is a date in ISO 8601."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


class _Open(NamedTuple):
    """An open element: its kind, those of it and all around it, and the outer part where it is."""

    kind: int
    inside: int
    region: int


class _HtmlText:
    """Collects lines while lxml parses.

    A tree of lxml would take quadratic time for an element's attributes.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.title = ""
        self.about: dict[str, list[str]] = {}
        self.list_lengths: dict[int, int] = {}
        self.n_unseen = self.n_struck = self.n_controls = 0  # words
        self._title: list[str] = []
        self._open = [_Open(0, 0, 0)]
        self._n_regions = self.n_articles = 0
        self._unfolded: set[str] = set()  # ids of parts that buttons show
        self._inline: list[str] = []  # the text of the line so far
        self._navigates = False  # whether the line links to the next page or the like
        self._linked = self._to_others = self._to_home = 0  # letters and digits in links
        self._links_back = False  # whether the line links to a place of the page
        self._link: int | None = None  # index in `_inline` of an open link
        self._n_links = 0
        self._href = ""  # of the open link
        self._links_here = False  # whether it links to the place where it is
        self._level = 0  # of the open heading
        self._anchor = self._last_anchor = ""  # the nearest, and that of the last heading
        self._anchored = False  # whether the open heading has an anchor of its own
        self._rows: list[Row] = []
        self._tables: list[Table] = []
        self._room = MAX_REPEATED
        self._lists: list[ItemNumbers] = []
        self._mark = ""  # the numbers of the list items that the next line begins
        self._scripts: list[tuple[int, int]] = []  # index in `_inline`, links before it
        self._follows = ""  # tag of the script that has just ended
        self._formula = Formula(self._inline)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        _, inside, region = self._open[-1]
        kind = kind_of(tag, attributes, inside)
        if kind & UNSEEN and attributes.get("id") in self._unfolded:
            kind &= ~UNSEEN
        if tag == "noscript" and self._inline:  # as after a picture
            kind &= ~BLOCK
        if kind & UNSEEN and kind & BLOCK and not self._rows:
            kind ^= UNSEEN | FOLDED
        self.n_articles += tag == "article" and not inside & ARTICLE
        if kind & OUTER:
            self._n_regions += 1
            region = self._n_regions
        if kind & BLOCK:
            self._break(tag)
            self._start_block(tag, kind, attributes)
        if tag in ("sup", "sub"):
            self._scripts.append((len(self._inline), self._n_links))
        elif tag == "meta":
            self._note_meta(attributes)
        elif (kind | inside) & MATH and not inside & SILENT:
            kind |= self._formula.start(tag, attributes)
        if attributes and not kind & SILENT:
            self._note_anchor(tag, attributes)
        if kind & HEADING:
            self._level, self._anchored = int(tag[1]), "id" in attributes
        if tag == "time" and "time" not in self.about and self._is_of_page(attributes):
            self.about["time"] = [attributes.get("datetime", "").strip()]
        self._open.append(_Open(kind, inside | kind, region))
        if len(self._open) > MAX_DEPTH + 1:
            raise UnreadableError(f"has elements nested more than {MAX_DEPTH:,} deep")

    def _start_block(self, tag: str, kind: int, attributes: Mapping[str, str]) -> None:
        inside = self._open[-1].inside
        if self._rows and kind & (HEADING | PRE | TABLE):
            self._rows[-1].has_blocks = True
        if kind & ROW:
            self._rows.append(Row(len(self.lines)))
        if kind & TABLE:
            self._tables.append(Table(self._room))
        if kind & CELL and self._rows:
            self._rows[-1].open_cell(attributes)
        if kind & BUTTON and "aria-controls" in attributes:
            self._unfolded.update(attributes["aria-controls"].split())
        if tag in ("ol", "ul", "menu"):
            self._lists.append(ItemNumbers(len(self.list_lengths), tag, attributes))
            self.list_lengths[self._lists[-1].index] = 0
        elif (
            tag == "li"
            and self._lists
            and not (inside & (SILENT | PRE) or kind & (SILENT | FOLDED))
        ):
            self._mark += self._lists[-1].mark(attributes)

    def data(self, text: str) -> None:
        inside = self._open[-1].inside
        if inside & DOCUMENT_TITLE:
            self._title.append(text)
        elif inside & SILENT:
            self.n_unseen += len(text.split()) if inside & UNSEEN and not inside & HIDDEN else 0
            self.n_struck += len(text.split()) if inside & SILENT == STRUCK else 0
        else:
            if self._follows:
                self._go_on(text)
            self._inline.append(text.strip() if inside & MATH else text)

    def _go_on(self, text: str) -> None:
        """Divide a script from the text that follows it; a number that begins a line is a mark."""
        continues = self._follows == "sup" and text[:1].isalnum() and not ELEMENT.match(text)
        continues |= self._follows == "sub" and text[:1].isdigit()
        *before, number = self._inline
        is_mark = self._follows == "sup" and (continues or text[:1].isspace())
        if is_mark and number.isdigit() and len(before) < 2 and not "".join(before).strip():
            self._inline[-1] = f"[{number}]"
        if continues:
            self._inline.append(" ")
        self._follows = ""

    def end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        kind, inside, _ = self._open[-1]
        if kind & BLOCK:
            self._break(tag)
        self._open.pop()
        if tag in ("sup", "sub"):
            self._end_script(tag)
        elif inside & MATH and not self._open[-1].inside & SILENT:
            self._formula.end(tag)
        if tag == "li":
            self._mark = ""
        elif tag in ("ol", "ul", "menu"):
            items = self._lists.pop()
            self.list_lengths[items.index] = items.n_items
        if kind & LINK:
            self._end_link()
        elif kind & HEADING:
            self._level = 0
        elif kind & CELL and self._rows:
            is_header = tag == "th" or bool(inside & TABLE_HEAD)
            self._rows[-1].close_cell(len(self.lines), is_header=is_header)
        elif kind & ROW:
            row = self._rows.pop()
            table = self._tables[-1] if self._tables else Table(0)
            self.lines[row.start :] = table.lines_of(row, self.lines)
        elif kind & TABLE:
            table = self._tables.pop()
            self._room = min(self._room, table.room)
            if table.rows:
                self.lines[table.rows[0].start :] = table.finished(self.lines)
        elif kind & DOCUMENT_TITLE:
            self.title = self.title or "".join(self._title).strip()[:MAX_TITLE]
            self._title.clear()

    def close(self) -> None:
        """Do nothing; `html` has ended."""

    def _is_of_page(self, attributes: Mapping[str, str]) -> bool:
        """Return whether a time is when the page was published: so marked, or above its text."""
        if "pubdate" in attributes or attributes.get("itemprop") == "datePublished":
            return True
        inside = self._open[-1].inside
        if inside & CHROME or len(self.lines) > MANY:
            return False
        above = [line for line in self.lines if not line.level and not line.inside & CHROME]
        return bool(inside & HEADER) or len(above) < 2

    def _note_meta(self, attributes: Mapping[str, str]) -> None:
        names = (attributes.get(key, "").lower() for key in ("name", "property", "itemprop"))
        value = " ".join(attributes.get("content", "").split())[:MAX_TITLE]
        for name in names:
            if value and name in ABOUT:
                self.about.setdefault(ABOUT[name], []).append(value)

    def _note_anchor(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Note an element's anchor, and whether it links to another page or place."""
        anchor = attributes.get("id", "")
        if tag == "a":
            anchor = anchor or attributes.get("name", "")
            if href := attributes.get("href", ""):
                self._link, self._href = len(self._inline), href
                self._n_links += 1
                self._links_here = href[1:] == self._anchor
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
            n, is_here = _n_alphanumeric(text), self._href.startswith("#")
            self._links_back |= is_here
            if is_here and SIGNS.issuperset(text):
                del self._inline[self._link :]
            elif is_here and NUMBERS.fullmatch(text) and self._before(self._link).strip():
                self._inline[self._link :] = [f"[{text}]"]  # the mark of a note
            elif is_here and not self._links_here:
                self._linked += n
            elif not is_here:
                self._to_others += n
                self._to_home += n if HOME.fullmatch(self._href) else 0
        self._link = None
        if not self._inline:  # a picture links; the text that follows does not
            self._navigates = False

    def _before(self, at: int) -> str:
        """Return the last character before a part of the line, or ""."""
        parts = (self._inline[i] for i in range(at - 1, -1, -1))
        return next((part[-1] for part in parts if part), "")

    def _end_script(self, tag: str) -> None:
        """Write a superscript or subscript so that it does not change the word before it."""
        at, n_links = self._scripts.pop()
        if sum(map(len, self._inline[at:])) > MAX_SCRIPT:
            return
        text = "".join(self._inline[at:])
        if not text.strip():
            return
        begins = at < 3 and not "".join(self._inline[:at]).strip()
        before = "" if begins else self._before(at)
        if tag == "sup":
            is_linked = self._link is not None or self._n_links > n_links
            self._inline[at:] = [superscript(text, before, is_linked=is_linked)]
        else:
            self._inline[at:] = [subscript(text, before)]
        self._follows = tag if self._inline[-1][-1:].isalnum() else ""

    def _break(self, tag: str) -> None:
        """End the line where a block starts or ends."""
        self._follows = ""
        if not self._inline:
            return
        if self._level and tag in ("br", "div"):
            self._inline.append(" ")
            return
        text = without_embedded("".join(self._inline))[0]
        self._inline.clear()
        if text and not text.isspace():
            self._add(text)
        self._navigates = self._links_back = False
        self._link = None
        self._linked = self._to_others = self._to_home = 0

    def _add(self, text: str) -> None:
        _, inside, region = self._open[-1]
        if inside & BUTTON and not self._level and not inside & OPENS and not _asks(text):
            self.n_controls += len(text.split())
            return
        mark, self._mark = self._mark, ""
        if self._navigates:
            inside |= CHROME
        n_linked = self._to_home if self._level else self._to_others
        is_note = mark or self._links_back
        if n_linked and n_linked == _n_alphanumeric(text) and not is_note:
            inside |= LINKED
        if self._level:
            text = mark + " ".join(text.split())
            self.lines.append(Line(text, inside, self._level, self._anchor, region))
            self._level, self._last_anchor = 0, self._anchor
            return
        if self._linked and self._linked == _n_alphanumeric(text):
            inside |= CONTENTS
        if inside & PRE:
            texts = [mark.strip(), text.strip("\n")]
        else:
            first, *more = (" ".join(line.split()) for line in text.splitlines() if line.strip())
            texts = [mark + first, *more]
        self.lines += [Line(line, inside, region=region) for line in texts if line]
        self._anchor = self._last_anchor


def _asks(text: str) -> bool:
    """Return whether a button has a question or a topic, not the name of an action."""
    n = len(text.split())
    return text.rstrip().endswith(QUESTION_MARKS) or n > 3 or (n > 1 and not ACTIONS.match(text))


def _n_alphanumeric(text: str) -> int:
    return sum(map(str.isalnum, text))
