"""HTML files: the text of their elements."""

from collections import Counter
from collections.abc import Mapping
from typing import BinaryIO

from hierindex.read.text import HEAD, Reading, UnreadableError, read_text
from hierindex.record import TITLE

MAX_DEPTH = 2048  # of HTML elements; lxml looks through all open ones at an end tag without start
MAX_TITLE = 1000  # characters; each chunk stores the title


def read_html(file: BinaryIO) -> Reading:
    """Return the text of the elements, with each block on separate lines, and the title."""
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
    return Reading("\n".join(line for line in found.lines if line.strip()), metadata)


class _HtmlText:
    """Collects text while lxml parses.

    A tree of lxml would take quadratic time for an element's attributes.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.title = ""
        self._inline: list[str] = []
        self._title: list[str] = []
        self._open: Counter[str] = Counter()
        self._depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._end_line(tag)
        self._open[tag] += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError(f"has elements nested more than {MAX_DEPTH:,} deep")

    def data(self, text: str) -> None:
        if self._open["title"]:
            self._title.append(text)
        elif not any(self._open[tag] for tag in ("script", "style", "template")):
            self._inline.append(text)

    def end(self, tag: str) -> None:
        self._end_line(tag)
        self._open[tag] -= 1
        self._depth -= 1
        if tag == "title":
            self.title = self.title or "".join(self._title).strip()[:MAX_TITLE]
            self._title.clear()

    def close(self) -> None:
        """Do nothing; `html` has ended."""

    def _end_line(self, tag: str) -> None:
        if tag in BLOCKS:
            text = "".join(self._inline)
            self._inline.clear()
            flowing = (" ".join(line.split()) for line in text.splitlines())
            self.lines += [text.strip("\n")] if self._open["pre"] else flowing


BLOCKS = frozenset(
    "address article aside blockquote br caption dd div dl dt figcaption footer form h1 h2 h3 h4 "
    "h5 h6 header hr html li main nav ol p pre section summary table td th tr ul".split()
)
