"""What the elements of an HTML page are: its main content, or what is around it."""

from collections.abc import Mapping

BLOCK, HEADING, CELL, ROW, TABLE, PRE, LINK, DOCUMENT_TITLE = (1 << i for i in range(8))
HIDDEN, CHROME, MAIN, ARTICLE, SECTION, ASIDE, CONTENTS = (1 << i for i in range(8, 15))
"""Kinds of elements and lines, as bits.

`CHROME` is everything around the content, like navigation; `CONTENTS` is a line of links to
places of the same page.
"""


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
