"""Kinds of HTML elements: what they are for, as far as tag, role, classes and style tell."""

import re
from collections.abc import Mapping
from xml.etree.ElementTree import Element

BLOCK, HEADING, PRE, MAIN, ARTICLE, SECTION, HEADER, TERM, CELL = (1 << i for i in range(9))
HIDDEN, UNSEEN, STRUCK, CHROME, OUTER, CONTENTS, LINKED, TABLE_HEAD = (1 << i for i in range(9, 17))
"""Kinds of elements and lines, as bits.

`TERM` has the question that its neighbour answers. `HIDDEN` is no text, `UNSEEN` is not displayed.
`CHROME` is navigation and the like. `OUTER` are page headers, footers and asides, which may have
content. Of lines and their parts, `CONTENTS` links to places of the same page, `LINKED` to others.
"""


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
    if tag == "button" and inside & (HEADING | TERM):  # it unfolds what this heads
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
    """Return the kinds that classes and id tell."""
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
    if kind & BLOCK and NOTES.search(f"{name} {names}"):
        return MAIN | ARTICLE  # as good as inside of them
    if "footer" in classes:
        return OUTER
    if tag in ("a", "dt", "span") or inside & HEADING:  # an anchor of its text
        return 0
    return CHROME if name in CHROME_IDS else OUTER if name == "footer" else 0


def _shown_as(tag: str, attributes: Mapping[str, str], kind: int) -> int:
    """Return whether an element is not displayed, or struck."""
    if not is_displayed(tag, attributes):
        return UNSEEN
    if attributes.get("aria-hidden") == "true" and not kind & BLOCK:
        return HIDDEN  # the same for the eye, as of formulas
    return STRUCK if "line-through" in attributes.get("style", "") else 0


def is_displayed(tag: str, attributes: Mapping[str, str]) -> bool:
    """Return whether an element is shown, maybe once it is unfolded like a tab or an answer."""
    if "hidden" not in attributes and not NOT_DISPLAYED.search(attributes.get("style", "")):
        return True
    names = f"{attributes.get('class', '')} {attributes.get('id', '')}"
    unfolds = attributes.get("role") in ("tabpanel", "region") or UNFOLDS.search(names) is not None
    return unfolds or tag == "dd" or attributes.get("hidden") == "until-found"


def is_picture(tag: str, attributes: Mapping[str, str]) -> bool:
    """Return whether an element is a picture that has a description, and no icon.

    >>> is_picture("img", {"alt": "A map"}), is_picture("img", {"alt": "Print", "width": "16px"})
    (True, False)
    """
    if tag != "img" or WORD.search(attributes.get("alt", "")) is None:
        return False
    sides = map(WHOLE.match, (attributes.get("width", ""), attributes.get("height", "")))
    return all(int(side[0]) >= MIN_SIDE for side in sides if side)


def is_action(button: Element) -> bool:
    """Return whether a button does something; others show the answer to what they say."""
    if button.get("type") in ("submit", "reset"):
        return True
    if "aria-controls" in button.attrib or UNFOLDS.search(button.get("class", "")):
        return False
    text = "".join(button.itertext()).strip()
    return not text.endswith(QUESTION_MARKS) and len(text.split()) < 3


QUESTION_MARKS = ("?", "\uff1f", "\u061f")
WORD, WHOLE = re.compile(r"\w{2}"), re.compile(r"\s*\d{1,9}(?![\d%])")
MIN_SIDE = 100  # pixels of a picture; smaller ones are icons, avatars and the like
NOT_DISPLAYED = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
UNFOLDS = re.compile(
    r"accordion|answer|collaps|expand|faq|math|panel|question|\btab(?!le)|toggle", re.I
)
COOKIES = re.compile(r"\b(?:cookie|consent|gdpr)|onetrust|cmplz|cybot|didomi", re.I)
NOTES = re.compile(
    r"(?<![a-z])(?:admonition|alert|attention|callout|caution|danger|endnotes?|footnotes?|hint|"
    r"important|notes?|tip|warning)(?![a-z])",
    re.I,
)
TAGS = dict.fromkeys(
    "address blockquote body br button caption center dd details div dl fieldset figcaption figure "
    "form hgroup hr html legend li menu ol p table tbody tfoot tr ul".split(),
    BLOCK,
)
TAGS |= dict.fromkeys("annotation-xml rp rt rtc script style template title".split(), HIDDEN)
TAGS |= dict.fromkeys("td th".split(), BLOCK | CELL)
TAGS |= dict.fromkeys("h1 h2 h3 h4 h5 h6".split(), BLOCK | HEADING)
TAGS |= dict.fromkeys("header aside".split(), BLOCK | HEADER)
TAGS |= dict.fromkeys("dt summary".split(), BLOCK | TERM)
TAGS |= dict.fromkeys("del s strike".split(), STRUCK)
TAGS |= {
    "article": BLOCK | ARTICLE,
    "footer": BLOCK | OUTER,
    "main": BLOCK | MAIN,
    "nav": BLOCK | CHROME,
    "select": UNSEEN,
    "noscript": BLOCK | UNSEEN,
    "pre": BLOCK | PRE,
    "section": BLOCK | SECTION,
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
    "NAVFOOTER NAVHEADER TOC bottomNav breadcrumb breadcrumbs catlinks d-print-none gutter "
    "headerlink hideme ingroups line-numbers lineno linenodiv linenos menu-bar mw-editsection "
    "mw-jump-link nav nav-panel navbar navbox navfooter navheader navigation navpath no-print "
    "noprint on-this-page out-of-band page-toc pagetoc pagination prev-next-area prev-next-footer "
    "printfooter related rightside rst-versions skip-link skip-nav skip-to-content skiplink "
    "sphinxsidebar spirit-nav subNav table-of-contents toc toctree-wrapper topNav viewcode-back "
    "viewcode-link".split()
)
"""Classes of Sphinx, DocBook, Doxygen, Javadoc, rustdoc, MediaWiki and Bootstrap, and the usual."""
