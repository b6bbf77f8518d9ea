"""Markdown files: their headings."""

from collections.abc import Iterator
from itertools import accumulate, pairwise

from hierindex.record import Heading

MAX_TITLE = 1000  # characters


def markdown_headings(text: str) -> list[Heading]:
    r"""Return the headings of a Markdown text, but none that stand in code fences.

    >>> markdown_headings("# One\n\nText.\n\nTwo\n---\n")
    [Heading(level=1, title='One', start=0), Heading(level=2, title='Two', start=14)]
    """
    return list(_headings(text))


def _headings(text: str) -> Iterator[Heading]:
    from markdown_it import MarkdownIt

    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    tokens = MarkdownIt("commonmark").disable("inline").parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.map and (title := inline.content.split()):
            start = starts[token.map[0]]
            start += len(text[start:]) - len(text[start:].lstrip(" "))
            yield Heading(int(token.tag[1]), " ".join(title)[:MAX_TITLE], start)
