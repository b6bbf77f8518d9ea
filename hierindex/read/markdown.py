"""Markdown files: their headings and their front matter."""

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

from hierindex.read.text import MAX_TITLE, Reading, read_text
from hierindex.record import (
    HEADINGS,
    PAGE,
    PAGE_LABEL,
    PAGE_LABELS,
    PAGES,
    RECORD_KEYS,
    SECTION,
    TITLE,
    Heading,
)

if TYPE_CHECKING:
    from markdown_it.token import Token

FRONT_MATTER = re.compile(r"---[ \t]*\n(?P<yaml>.{,20000}?)\n(---|\.\.\.)[ \t]*(\n|$)", re.S)
RESERVED = {*RECORD_KEYS, HEADINGS, SECTION, PAGE, PAGES, PAGE_LABEL, PAGE_LABELS}
PERHAPS = re.compile(r"^ {,3}(#|=+[ \t]*$|-+[ \t]*$)", re.M)  # a heading's mark, or code
ATTRIBUTES = re.compile(r"\s*\{[#.:-][^{}]*\}\s*$")  # of a heading, such as {#anchor}
WORDS = {"text", "text_special", "code_inline"}  # tokens whose content is shown


def read_markdown(file: BinaryIO) -> Reading:
    """Return the text of a file, the entries of its front matter, and its headings."""
    text, metadata, _ = read_text(file)
    entries, end = front_matter(text)
    return Reading(text, {**entries, **metadata}, list(markdown_headings(text, end)))


def front_matter(text: str) -> tuple[dict[str, Any], int]:
    r"""Return the scalars and lists of scalars in a text's front matter, and where it ends.

    Dates become strings. Keys with a meaning of ours, such as "page", are omitted.

    >>> front_matter("---\ntitle: The log\ndate: 1901-02-03\n---\nText.")
    ({'title': 'The log', 'date': '1901-02-03'}, 40)
    """
    import yaml

    if (match := FRONT_MATTER.match(text)) is None:
        return {}, 0
    try:
        entries = yaml.safe_load(match["yaml"])
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, 0
    if not isinstance(entries, dict):
        return {}, 0
    metadata = {}
    for key, value in entries.items():
        values = value if isinstance(value, list) else [value]
        if isinstance(key, str) and key not in RESERVED and all(map(_is_scalar, values)):
            kept = [v.isoformat() if isinstance(v, date) else v for v in values]
            metadata[key] = kept if isinstance(value, list) else kept[0]
    if TITLE in metadata:
        metadata[TITLE] = str(metadata[TITLE])
    return metadata, match.end()


def _is_scalar(value: Any) -> bool:
    short = not isinstance(value, str) or len(value) <= MAX_TITLE
    return isinstance(value, str | int | float | date) and short


def markdown_headings(text: str, start: int = 0) -> Iterator[Heading]:
    r"""Yield the headings of CommonMark after an offset, apart from those in lists and quotes.

    >>> found = markdown_headings("# The *first*\n\nText.\n\nThe second\n---\n")
    >>> [(heading.level, heading.title, heading.start) for heading in found]
    [(1, 'The first', 0), (2, 'The second', 22)]
    """
    from markdown_it import MarkdownIt

    if not PERHAPS.search(text, start):  # parsing takes longer than all other reading
        return
    parser = MarkdownIt("commonmark").disable("inline")  # of all text; that of headings follows
    lines = [start, *(m.end() for m in re.compile("\n").finditer(text, start))]  # offsets
    context: dict[str, Any] = {}
    for opening, inside in pairwise(parser.parse(text[start:], context)):
        if opening.type != "heading_open" or opening.level or opening.map is None:
            continue
        source = ATTRIBUTES.sub("", inside.content[: 4 * MAX_TITLE])
        parts = parser.inline.parse(source, parser, context, [])
        if title := _shown(parts, WORDS) or _shown(parts, {"image"}):  # by its alternative text
            at = lines[opening.map[0]]
            indent = len(text[at : at + 4]) - len(text[at : at + 4].lstrip())
            yield Heading(int(opening.tag[1:]), title, at + indent)


def _shown(parts: "Sequence[Token]", kinds: Collection[str]) -> str:
    """Return the content of parts of these kinds on one line."""
    shown = (part.content if part.type in kinds else " " * ("break" in part.type) for part in parts)
    return " ".join("".join(shown).split())[:MAX_TITLE]
