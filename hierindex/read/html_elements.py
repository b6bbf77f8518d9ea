"""Kinds of HTML elements: what they are for, as far as tag, role, classes and style tell."""

import re
from collections.abc import Mapping

BLOCK, HEADING, CELL, ROW, TABLE, PRE, LINK, DOCUMENT_TITLE = (1 << i for i in range(8))
HIDDEN, CHROME, MAIN, ARTICLE, SECTION, HEADER, OUTER = (1 << i for i in range(8, 15))
TERM, BUTTON, OPENS, STRUCK, UNSEEN, TABLE_HEAD, MATH = (1 << i for i in range(15, 22))
CONTENTS, LINKED, FOLDED = (1 << i for i in range(22, 25))
"""Kinds of elements and lines, as bits.

`CHROME` is navigation and the like. `OUTER` are page headers, footers and asides, which may have
content. `TERM` has the question that its neighbour answers. A `BUTTON` that `OPENS` shows text.
`UNSEEN` is not displayed, and `FOLDED` a block that is not. `CONTENTS` is a line of links to
places of the same page, `LINKED` a line of links to others.
"""
SILENT = HIDDEN | STRUCK | UNSEEN


def kind_of(tag: str, attributes: Mapping[str, str], inside: int) -> int:
    """Return what an element is, by its tag, role, id, classes and style.

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
    if tag == "button" and inside & (HEADING | TERM):
        kind = HIDDEN if attributes.get("id") in CHROME_IDS else 0  # it unfolds what this heads
    if kind & HEADER and not inside & (MAIN | ARTICLE | SECTION):
        kind |= OUTER
    if not attributes or tag in ("html", "body"):
        return kind
    kind |= _shown_as(tag, attributes, kind)
    if kind & HEADING:
        return kind
    if role := attributes.get("role"):
        kind |= ROLES.get(role, 0)
    if tag != "main":
        kind |= _named(tag, attributes, kind, inside)
    if kind & (CHROME | OUTER) and not kind & BLOCK:
        kind |= HIDDEN
    return kind


def _named(tag: str, attributes: Mapping[str, str], kind: int, inside: int) -> int:
    """Return the kinds that classes and id tell."""
    names = attributes.get("class", "")
    classes, name = names.split(), attributes.get("id", "")
    if kind & BUTTON:
        if attributes.get("type") in ("submit", "reset"):
            return HIDDEN
        about = f"{names} {name} {attributes.get('aria-controls', '')}"
        opens = "aria-expanded" in attributes or "aria-controls" in attributes
        opens = opens or bool(UNFOLDS.search(names))
        return OPENS if opens and not MENUS.search(about) else 0
    if ("contents" in classes and "topic" in classes) or not CHROME_CLASSES.isdisjoint(classes):
        return CHROME
    if "fragment" in classes:  # code of Doxygen
        return PRE
    if kind & (SECTION | ARTICLE) or "section" in classes:  # Sphinx makes ids from titles
        return 0
    if kind & BLOCK and (COOKIES.search(name) or COOKIES.search(names)):
        return CHROME | CONTENTS  # however long
    if kind & BLOCK and (NOTES.search(names) or NOTES.search(name)):
        return MAIN | ARTICLE  # as good as inside of them
    if "footer" in classes:
        return OUTER
    if tag in ("a", "dt", "span") or inside & HEADING:  # an anchor of its text
        return 0
    return CHROME if name in CHROME_IDS else OUTER if name == "footer" else 0


def _shown_as(tag: str, attributes: Mapping[str, str], kind: int) -> int:
    """Return whether an element is not displayed, or struck.

    A part that unfolds, such as a tab or an answer, is as good as displayed.
    """
    style = attributes.get("style", "").lower()
    if "hidden" in attributes or NOT_DISPLAYED.search(style):
        names = f"{attributes.get('class', '')} {attributes.get('id', '')}"
        unfolds = attributes.get("role") in ("tabpanel", "region") or UNFOLDS.search(names)
        if tag == "dd" or unfolds or attributes.get("hidden") == "until-found":
            return 0
        return UNSEEN
    if attributes.get("aria-hidden") == "true" and not kind & BLOCK:
        return HIDDEN  # the same for the eye, as of formulas
    return STRUCK if "line-through" in style else 0


NOT_DISPLAYED = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden")
UNFOLDS = re.compile(
    r"accordion|answer|collaps|expand|faq|math|panel|question|\btab(?!le)|toggle", re.I
)
MENUS = re.compile(r"copy|drawer|lang|menu|nav|search|share|theme", re.I)
COOKIES = re.compile(
    r"\b_?(?:cookies?|consent|gdpr)[-_]?(?:alert|banner|bar|box|consent|container|dialog|"
    r"disclaimer|info|law|message|modal|notice|notification|overlay|popup|wall)"
    r"|^(?:cc-window|cky-|cmplz|cybot|didomi|onetrust|osano|qc-cmp)",
    re.I,
)
NOTES = re.compile(
    r"(?<![a-z])(?:admonition|alert|attention|callout|caution|danger|endnotes?|footnotes?|hint|"
    r"important|notes?|tip|warning)(?![a-z])",
    re.I,
)
TAGS = dict.fromkeys(
    "address blockquote body br caption center dd details div dl fieldset figcaption figure "
    "form hgroup hr html legend li menu ol p tbody tfoot ul".split(),
    BLOCK,
)
TAGS |= dict.fromkeys("script style template select annotation-xml rp rt rtc".split(), HIDDEN)
TAGS |= dict.fromkeys("h1 h2 h3 h4 h5 h6".split(), BLOCK | HEADING)
TAGS |= dict.fromkeys("header aside".split(), BLOCK | HEADER)
TAGS |= dict.fromkeys("dt summary".split(), BLOCK | TERM)
TAGS |= dict.fromkeys("del s strike".split(), STRUCK)
TAGS |= dict.fromkeys("td th".split(), BLOCK | CELL)
TAGS |= {
    "a": LINK,
    "article": BLOCK | ARTICLE,
    "button": BLOCK | BUTTON,
    "footer": BLOCK | OUTER,
    "main": BLOCK | MAIN,
    "math": MATH,
    "nav": BLOCK | CHROME,
    "noscript": BLOCK | UNSEEN,
    "pre": BLOCK | PRE,
    "section": BLOCK | SECTION,
    "table": BLOCK | TABLE,
    "thead": BLOCK | TABLE_HEAD,
    "title": DOCUMENT_TITLE,
    "tr": BLOCK | ROW,
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
    "NAVFOOTER NAVHEADER TOC bottomNav breadcrumb breadcrumbs catlinks d-print-none gutter "
    "headerlink hideme ingroups line-numbers lineno linenodiv linenos menu-bar mw-editsection "
    "mw-jump-link nav nav-panel navbar navbox navfooter navheader navigation navpath no-print "
    "noprint on-this-page out-of-band page-toc pagetoc pagination prev-next-area prev-next-footer "
    "printfooter related rightside rst-versions skip-link skip-nav skip-to-content skiplink "
    "sphinxsidebar spirit-nav subNav table-of-contents toc toctree-wrapper topNav viewcode-back "
    "viewcode-link".split()
)
"""Classes of Sphinx, DocBook, Doxygen, Javadoc, rustdoc, MediaWiki and Bootstrap, and the usual."""
