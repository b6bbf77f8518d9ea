"""Plain text files: numbered lines that are most likely headings."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import BinaryIO

from hierindex.headings import Heading
from hierindex.read.text import Reading, read_text

NUMBERED = re.compile(  # alone between blank lines
    r"(?:\A|\n[ \t]*\n)"
    r"(?P<line>(?:(?:chapter|part|section|appendix)[ ]+)?"
    r"(?P<number>\d{1,3}(?:\.\d{1,3})*)[.:)]?[ \t]+[^\W\d_].{,76}\S)"
    r"(?=[ \t]*\n[ \t]*(?:\n|\Z))",
    re.IGNORECASE,
)
FEWEST = 3  # headings
MOST = 0.1  # of the lines that are not blank
WORDS = 12  # of a heading


def read_plain(file: BinaryIO) -> Reading:
    """Return the text of a file and its headings."""
    text, metadata, _ = read_text(file)
    return Reading(text, metadata, plain_headings(text))


def plain_headings(text: str) -> Sequence[Heading]:
    r"""Return the lines that are numbered like sections, or none if they may be something else.

    They must stand alone between blank lines and count from 0 or 1 without a gap. If they are
    few, more than a tenth of all lines, or have no text between them, they may be a list.

    >>> text = "1. Aims\n\nText.\n\n1.1 Scope\n\nText.\n\n2. Means\n\n" + "Text.\n" * 30
    >>> [(heading.level, heading.title) for heading in plain_headings(text)]
    [(1, '1. Aims'), (2, '1.1 Scope'), (1, '2. Means')]
    """
    headings, last = list[Heading](), list[int]()
    for match in NUMBERED.finditer(text):
        number, line = [int(part) for part in match["number"].split(".")], match["line"]
        if _follows(number, last) and len(line.split()) <= WORDS and line[-1] not in ",;:?!":
            headings.append(Heading(len(number), " ".join(line.split()), match.start("line")))
            last = number
    n_lines = sum(not line.isspace() for line in text.splitlines())
    if not FEWEST <= len(headings) <= MOST * n_lines:
        return []
    for heading, after in pairwise(headings):
        below = text[heading.start : after.start].partition("\n")[2]
        if after.level <= heading.level and not below.strip():
            return []
    return headings


def _follows(number: Sequence[int], last: Sequence[int]) -> bool:
    """Return whether a section's number may come after another, the first one's after none.

    >>> [_follows(number, [2, 1]) for number in ([2, 1, 1], [2, 2], [3], [4], [2, 3])]
    [True, True, True, False, False]
    """
    if not last:
        return number in ([0], [1])
    up = [[*last[: i - 1], last[i - 1] + 1] for i in range(1, len(last) + 1)]
    return number in (*up, [*last, 1])
