"""reStructuredText files: their headings."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from hierindex.headings import Heading
from hierindex.read.text import MAX_TITLE, Reading, read_text

RULE = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*$")  # a line of one punctuation mark
SHORT = 4  # marks, which must be as many as the title's characters
ROLE = re.compile(r"(?::[\w.:+-]+:)?`+([^`<]+?)(?:\s*<[^`>]*>)?`+_{,2}")
EMPHASIS = re.compile(r"(?<!\w)(\*{1,2})(\S[^*]*)\1")


def read_rst(file: BinaryIO) -> Reading:
    """Return the text of a file and its headings."""
    text, metadata, _ = read_text(file)
    return Reading(text, metadata, list(rst_headings(text)))


def rst_headings(text: str) -> Iterator[Heading]:
    r"""Yield the underlined titles, whose levels follow from the order of their styles.

    >>> found = rst_headings("One\n===\n\nText.\n\nTwo\n---\n")
    >>> [(heading.level, heading.title, heading.start) for heading in found]
    [(1, 'One', 0), (2, 'Two', 16)]

    Notes
    -----
    The rule is that of docutils, which does not tell where a title begins.
    """
    lines = text.split("\n")
    styles: dict[tuple[str, bool], int] = {}  # levels by mark and whether it is above, too
    at = i = 0
    may_begin = True  # a paragraph, and so a title
    while i < len(lines):
        above = may_begin and lines[i].strip() != "" and _is_title(lines[i : i + 3])
        below = may_begin and not above and _is_title(["", *lines[i : i + 2]])
        n_lines = 3 if above else 2 if below else 1
        if above or below:
            mark = lines[i + n_lines - 1][0]
            level = styles.setdefault((mark, above), len(styles) + 1)
            yield Heading(level, _plain(lines[i + n_lines - 2][: 4 * MAX_TITLE])[:MAX_TITLE], at)
            may_begin = True
        else:
            may_begin = lines[i][:1] in ("", " ", "\t") or lines[i].startswith("..")
        at += sum(len(line) + 1 for line in lines[i : i + n_lines])
        i += n_lines


def _is_title(lines: list[str]) -> bool:
    """Return whether lines are a title between rules, of which the upper one may be empty."""
    if len(lines) < 3 or not RULE.match(lines[2]):
        return False
    over, title, under = lines[0].rstrip(), lines[1].rstrip(), lines[2].rstrip()
    if not any(map(str.isalnum, title)) or len(under) < min(SHORT, len(title.strip())):
        return False
    return over == under or (not over and not title[0].isspace())


def _plain(title: str) -> str:
    """Return a title without marks of roles and emphasis.

    >>> _plain(":mod:`logging` --- The *whole* ``log``")
    'logging --- The whole log'
    """
    return " ".join(EMPHASIS.sub(r"\2", ROLE.sub(r"\1", title)).split())
