"""Prints how many headings of files are found, how many found are headings, and where they stand.

The headings of an HTML page are its h1 to h6 outside navigation, as a tree of lxml has them; those
of `x.pdf` are the list of `[level, title]` in `x.headings.json`.

    python tests/benchmarks/headings.py FOLDER
"""

import json
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path

from lxml import etree

from hierindex import read_documents
from hierindex.errors import SourceError
from hierindex.node import HEADINGS, Heading

Titles = list[str]
NUMBER = re.compile(r"^(?:(?:part|chapter|appendix) )?(?:(?:\d+|[a-z]|[ivx]+)(?:\.\d+)*[.:]? +)+")


def main(folder: Path) -> None:
    """Print a row for each kind of file."""
    totals: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted(path for path in folder.rglob("*") if path.suffix in OWN):
        own = OWN[path.suffix](path)
        if own is None:
            continue
        try:
            (document,), _ = read_documents(path)
        except SourceError as error:
            print(error)
            continue
        headings = [Heading(*values) for values in document.metadata.get(HEADINGS, [])]
        found = [plain(heading.title) for heading in headings]
        common = in_common(own, found)
        total = totals[path.suffix]
        total["files"] += 1
        total["own"] += len(own)
        total["found"] += len(found)
        total["common"] += common
        total["placed"] += sum(document.text.startswith(h.title, h.start) for h in headings)
    print("kind    files    own  found  recall  precision  at their place")
    for kind, n in totals.items():
        recall, precision = (n["common"] / max(1, n[key]) for key in ("own", "found"))
        print(
            f"{kind:6} {n['files']:6} {n['own']:6} {n['found']:6} {recall:7.3f} {precision:10.3f}"
            f"  {n['placed']:,} of {n['found']:,}"
        )


def plain(title: str) -> str:
    """Return a title's letters and digits, in lower case, without its number.

    Outlines often leave the numbers out.
    """
    title = unicodedata.normalize("NFKC", title).strip().casefold()
    letters = "".join(filter(str.isalnum, NUMBER.sub("", title)))
    return letters or "".join(filter(str.isalnum, title))


def in_common(own: Titles, found: Titles) -> int:
    """Count titles in the same order in both."""
    matcher = SequenceMatcher(None, own, found, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks())


def html_headings(path: Path) -> Titles:
    """Return the titles of h1 to h6 in the main content."""
    page = etree.parse(str(path), etree.HTMLParser(encoding="utf-8", huge_tree=True)).getroot()
    mains = page.xpath("//main | //*[@role='main']") or page.xpath("//body")
    titles = mains[0].xpath(f"descendant::*[{HEADING}][not({AROUND})]") if mains else []
    return [title for title in map(plain, map(words, titles)) if title]


def words(title: etree._Element) -> str:
    """Return a heading's text without buttons and links to itself."""
    return "".join(title.xpath("descendant::text()[not(ancestor::button)]"))


def pdf_headings(path: Path) -> Titles | None:
    """Return the titles that are said beside the file."""
    beside = path.with_suffix(".headings.json")
    if not beside.exists():
        return None
    return [plain(title) for _, title in json.loads(beside.read_text())]


HEADING = " or ".join(f"self::h{level}" for level in range(1, 7))
AROUND = " or ".join(
    [
        *(f"ancestor::{tag}" for tag in ("nav", "footer", "template", "noscript", "aside")),
        "ancestor::*[@role='navigation' or @role='banner' or @role='contentinfo']",
        *(
            f"ancestor::*[contains(concat(' ', @class, ' '), ' {name} ')]"
            for name in ("toc", "sphinxsidebar", "related", "toctree-wrapper", "navheader", "topic")
        ),
        "ancestor::*[@id='toc']",
    ]
)
OWN: dict[str, Callable[[Path], Titles | None]] = {
    ".html": html_headings,
    ".htm": html_headings,
    ".pdf": pdf_headings,
}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
