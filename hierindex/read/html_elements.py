"""HTML elements: their roles, and which lines of a page are its main content."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

BLOCK, HEADING, PRE, MAIN, ARTICLE, SECTION, HEADER, CELL = (1 << i for i in range(8))
TERM, DEFINITION, SUMMARY = (1 << i for i in range(8, 11))
HIDDEN, UNSEEN, STRUCK, CHROME, OUTER, CONTENTS, LINKED, TABLE_HEAD = (
    1 << i for i in range(11, 19)
)
"""Kinds of elements and lines, as bits.

`TERM` is explained by a `DEFINITION`; `SUMMARY` has the question that its neighbour answers.
`HIDDEN` is no text, `UNSEEN` is not displayed. `CHROME` is
navigation and the like. `OUTER` are page headers, footers and asides, which may have content. Of
lines and their parts, `CONTENTS` links to places of the same page, `LINKED` to others.
"""
QUESTION_MARKS = ("?", "\uff1f", "\u061f")
WORD = re.compile(r"\w{2}")
NOT_DISPLAYED = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
UNFOLDS = re.compile(
    r"accordion|answer|collaps|expand|faq|math|panel|question|\btab(?!le)|toggle", re.I
)
COOKIES = re.compile(r"\b(?:cookie|consent|gdpr)|onetrust|cmplz|cybot|didomi", re.I)
TAGS = dict.fromkeys(
    "address blockquote body br button caption center details div dl fieldset figcaption figure "
    "form hgroup hr html legend li menu ol p table tbody tfoot tr ul".split(),
    BLOCK,
)
TAGS |= dict.fromkeys("annotation-xml rp rt rtc script style template title".split(), HIDDEN)
TAGS |= dict.fromkeys("td th".split(), BLOCK | CELL)
TAGS |= dict.fromkeys("h1 h2 h3 h4 h5 h6".split(), BLOCK | HEADING)
TAGS |= dict.fromkeys("header aside".split(), BLOCK | HEADER)
TAGS |= dict.fromkeys("del s strike".split(), STRUCK)
TAGS |= {
    "article": BLOCK | ARTICLE,
    "dd": BLOCK | DEFINITION,
    "dt": BLOCK | TERM,
    "footer": BLOCK | OUTER,
    "main": BLOCK | MAIN,
    "nav": BLOCK | CHROME,
    **dict.fromkeys(("listing", "textarea", "xmp"), BLOCK),
    "select": UNSEEN,
    "noscript": BLOCK | UNSEEN,
    "pre": BLOCK | PRE,
    "section": BLOCK | SECTION,
    "summary": BLOCK | SUMMARY,
    "thead": BLOCK | TABLE_HEAD,
}
ROLES = dict.fromkeys(
    "dialog directory doc-pagelist doc-toc menu menubar navigation search toolbar".split(),
    CHROME,
)
ROLES |= dict.fromkeys("banner complementary contentinfo".split(), OUTER)
ROLES |= dict.fromkeys("alert doc-endnotes doc-footnote doc-tip note".split(), MAIN | ARTICLE)
ROLES["main"] = MAIN
CHROME_IDS = frozenset(
    "breadcrumb breadcrumbs copy-path mdbook-help-container nav navbar navigation side-nav "
    "table-of-contents _table_of_contents titlearea toc".split()
)
CHROME_CLASSES = frozenset(
    "NAVFOOTER NAVHEADER TOC bottomNav breadcrumb breadcrumbs catlinks d-print-none docnav gutter "
    "headerlink hideme ingroups line-numbers lineno linenodiv linenos menu-bar mw-editsection "
    "mw-jump-link nav nav-panel navbar navbox navfooter navheader navigation navpath no-print "
    "noprint on-this-page out-of-band page-toc pagetoc pagination prev-next-area prev-next-footer "
    "printfooter related rightside rst-versions skip-link skip-nav skip-to-content skiplink "
    "sphinxsidebar spirit-nav subNav table-of-contents toc toctree-wrapper topNav viewcode-back "
    "viewcode-link".split()
)
"""Classes of Sphinx, DocBook, Doxygen, Javadoc, rustdoc, MediaWiki and Bootstrap, and the usual."""
NOTICES = re.compile(
    r"\W*(?:©|\(c\) (?:copyright )?\d{4}|copyright ?(?:©|\(c\)|\d{4}|$)|all rights reserved|"
    r"(?:powered|built|created|generated|hosted|theme|design(?:ed)?) (?:by|using|with|on)\b|"
    r"(?:back to )?top$|(?:skip|jump) to |[^.]{,90}\blicen[sc]ed under\b|see (?:\w+ ){,3}license\b|"
    r"edit this page|(?:found|report) an? (?:bug|issue|problem)\b[^?!.]{,40}\W*$"
    r"|(?:.{,90} )?please donate\W*$)",
    re.I,
)
"""Lines of headers and footers that are not content."""
SENTENCE_ENDS = tuple(".!?\u2026\u3002\uff01\uff1f")
MARKED = re.compile(r"\[?\(?\w{1,3}[\]).] |[*†‡§]")  # as notes are
PROSE = 40  # characters; navigation has shorter lines, or links
LABEL = 12  # bytes; a shorter word is a label


def kind_of(tag: str, attributes: Mapping[str, str], inside: int) -> int:
    """Return the kinds of an element, from its tag, role, id, classes and style.

    Parameters
    ----------
    tag : str
    attributes : Mapping[str, str]
    inside : int
        Kinds of the enclosing elements.

    Returns
    -------
    int
        Combined bit flags of this module. Inline elements that are not content are marked as
        hidden.
    """
    kind = TAGS.get(tag, 0)
    if tag == "button" and inside & (HEADING | TERM | SUMMARY):  # it unfolds what this heads
        return HIDDEN if attributes.get("id") in CHROME_IDS else 0
    if kind & HEADER and not inside & (MAIN | ARTICLE | SECTION):
        kind |= OUTER
    if not attributes or tag in ("html", "body"):
        return kind
    kind |= _shown_as(tag, attributes, kind)
    if kind & HEADING:
        return kind
    kind |= ROLES.get(attributes.get("role", ""), 0)
    if tag != "main":
        kind |= _named(tag, attributes, kind, inside)
    if kind & (CHROME | OUTER) and not kind & BLOCK:
        kind |= HIDDEN
    return kind


def _named(tag: str, attributes: Mapping[str, str], kind: int, inside: int) -> int:
    """Return the kinds that follow from classes and id."""
    names, name = attributes.get("class", ""), attributes.get("id", "")
    classes = names.split()
    if ("contents" in classes and "topic" in classes) or not CHROME_CLASSES.isdisjoint(classes):
        return CHROME
    if "fragment" in classes:  # code of Doxygen
        return PRE
    if kind & (SECTION | ARTICLE) or "section" in classes:  # Sphinx makes ids from titles
        return 0
    if kind & BLOCK and COOKIES.search(f"{name} {names}"):
        return CHROME | CONTENTS  # however long
    if "footer" in classes:
        return OUTER
    if tag in ("a", "dt", "span") or inside & HEADING:  # an anchor of its text
        return 0
    return CHROME if name in CHROME_IDS else OUTER if name in ("banner", "footer") else 0


def _shown_as(tag: str, attributes: Mapping[str, str], kind: int) -> int:
    """Return whether an element is not displayed, or struck."""
    if not is_displayed(tag, attributes):
        return UNSEEN
    if attributes.get("aria-hidden") == "true" and not kind & BLOCK:
        return HIDDEN  # the same for the eye, as of formulas
    return STRUCK * ("line-through" in attributes.get("style", ""))


def is_displayed(tag: str, attributes: Mapping[str, str]) -> bool:
    """Return whether an element is displayed, perhaps only after a click, as in a tab."""
    if "hidden" not in attributes and not NOT_DISPLAYED.search(attributes.get("style", "")):
        return True
    names = f"{attributes.get('class', '')} {attributes.get('id', '')}"
    unfolds = attributes.get("role") in ("tabpanel", "region") or UNFOLDS.search(names) is not None
    return unfolds or tag == "dd" or attributes.get("hidden") == "until-found"


def is_picture(tag: str, attributes: Mapping[str, str]) -> bool:
    """Return whether an element is a picture with a description."""
    return tag == "img" and WORD.search(attributes.get("alt", "")) is not None


def is_action(button: Any) -> bool:
    """Return whether a button triggers an action; other buttons unfold an answer to their label."""
    if button.get("type") in ("submit", "reset"):
        return True
    if "aria-controls" in button.attrib or UNFOLDS.search(button.get("class", "")):
        return False
    text = "".join(button.itertext()).strip()
    return not text.endswith(QUESTION_MARKS) and len(text.split()) < 3


class Line(NamedTuple):
    """A block of text, the kinds of its elements, and if it is a heading its level and anchor.

    `region` is the page header, footer or aside that contains the line, or None.
    """

    text: str
    inside: int
    level: int = 0
    anchor: str = ""
    region: Any = None


def main_content(lines: list[Line], n_articles: int = 0) -> list[Line]:
    """Return the lines of the main content, or all lines if everything is navigation.

    Lines are content unless they are known to be navigation. Two kinds of regions are checked
    further: headers, footers and asides, and text outside of `main` (or outside of `article`
    elements that have most of the text). Lines of links to other pages and notices are removed from
    them. If only single words remain, or more than two thirds are notices, the whole region is
    removed.
    """
    around = CHROME | CONTENTS | UNSEEN
    content = [line for line in lines if not line.inside & around]
    for kind in (UNSEEN, CHROME):  # most is not there, unless by script or mistake
        prose = [x.text for x in lines if x.inside & (around | LINKED) == kind]
        if sum(len(x) for x in prose if len(x) > PROSE) > sum(len(x.text) for x in content):
            around = around & ~kind | LINKED
            content = [x for x in lines if not x.inside & around]
    landmark, is_sure = _landmark(content, n_articles)
    top = min((line.level for line in content if line.level), default=0)
    kept = []
    for (region, inside), group in groupby(content, lambda x: (x.region, x.inside & landmark)):
        part = [*group]
        if region is not None or inside != landmark:
            unlinked = [x for x in part if not x.inside & LINKED]
            part = [x for x in unlinked if not NOTICES.match(x.text)]
            says = any(x.level or len(x.text) > PROSE for x in part)
            are_notices = 3 * len(part) < len(unlinked) and not says
            if are_notices or not any(_says(line, top) for line in part):
                continue
            if inside != landmark and is_sure:
                part = [x for x in part if x.level == top or _is_sentence(x.text)]
        kept += part
    return kept or content or lines


def _landmark(content: Sequence[Line], n_articles: int) -> tuple[int, bool]:
    """Return MAIN or ARTICLE if such elements have most of the text, and whether all is there."""
    lengths = [(line.inside, len(line.text)) for line in content if not line.inside & LINKED]
    n = sum(length for _, length in lengths)
    for kind in (MAIN, ARTICLE):
        within = sum(length for inside, length in lengths if inside & kind)
        if 2 * within >= max(n, 1):
            return kind, kind == MAIN or n_articles == 1
    return 0, False


def _is_sentence(text: str) -> bool:
    is_note = MARKED.match(text) is not None
    return is_note or len(text) > PROSE or text.endswith(SENTENCE_ENDS)


def _says(line: Line, top: int) -> bool:
    """Return whether a line beside the main content has text, or is a heading of the page."""
    if line.level:
        return line.level == top
    is_long = len(line.text.encode("utf-8", "replace")) >= LABEL
    return is_long or len(line.text.split()) > 1 or line.text.endswith("!")
