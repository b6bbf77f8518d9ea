"""Plain text and reStructuredText with their headings; what a file is that its name hides."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import BinaryIO

from hierindex.node import Heading
from hierindex.read.html import read_html
from hierindex.read.rtf import read_rtf
from hierindex.read.text import (
    HEAD,
    MAX_TITLE,
    Reading,
    UnreadableError,
    note_left_out,
    read_text,
)

BEGINS_MARKUP = re.compile(  # its declarations and comments, and its root
    rb"(?:\xef\xbb\xbf)?\s*(?P<declared>(?>\s+|<\?[^>]*>|<!--(?>[^-]+|-(?!->))*-->"
    rb"|<!DOCTYPE[^>\[]*(?:\[[^\]]*\]\s*)?>)*)<(?P<root>[A-Za-z_][\w:.-]*)(?P<with>[^>]*)",
    re.IGNORECASE,
)
CONTROL_WORD = re.compile(rb"\\[a-zA-Z]+-?\d*")
NUMBERED = re.compile(  # alone between blank lines
    r"(?:\A|\n[ \t]*\n)"
    r"(?P<line>(?:(?:appendix|article|chapter|clause|part|schedule|section)[ ]+)?"
    r"(?P<number>\d{1,3}(?:\.\d{1,3})*)[.:)]?[ \t]+[^\W\d_].{,76}\S)"
    r"(?=[ \t]*\n[ \t]*(?:\n|\Z))",
    re.IGNORECASE,
)
FEWEST = 3  # headings
MOST = 0.1  # of the lines that are not blank
WORDS = 12  # of a heading
RULE = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*$")  # a line of one punctuation mark
COMMENT = re.compile(  # no directive, target, footnote or substitution, with its indented lines
    r"^\.\.(?:[ \t]+(?![\w:+.-]+::|_|\[|\|)\S.*(?:\n|\Z)|[ \t]*\n(?=[ \t]+\S))"
    r"(?:(?:[ \t]*\n)*[ \t]+\S.*(?:\n|\Z))*",
    re.MULTILINE,
)
SHORT = 4  # marks, which must be as many as the title's characters
ROLE = re.compile(r"(?::[\w.:+-]+:)?`+([^`<]+?)(?:\s*<[^`>]*>)?`+_{,2}")
EMPHASIS = re.compile(r"(?<!\w)(\*{1,2})(\S[^*]*)\1")


def read_unnamed(file: BinaryIO) -> Reading:
    """Return the text of a file whose suffix does not say what it is.

    Raises
    ------
    UnreadableError
        If it is markup that is no text.
    """
    begin = file.read(HEAD).lstrip()
    file.seek(0)
    if begin.startswith(b"{\\rtf"):
        return read_rtf(file)
    if begin.startswith(b"%!PS"):
        raise UnreadableError("is PostScript, which is not read; convert it to PDF")
    if markup := BEGINS_MARKUP.match(begin):
        root = markup["root"].decode()
        if root.lower() == "html" or b"<!DOCTYPE html" in markup["declared"]:
            return read_html(file)
        if b"<?xml" in markup["declared"] or b"xmlns" in markup["with"]:
            raise UnreadableError(f"is XML ({root}), which is not read; convert it to HTML or text")
    if sum(map(len, CONTROL_WORD.findall(begin))) > len(begin) / 2:
        raise UnreadableError("is markup of an unknown format")
    return read_text(file)


def read_plain(file: BinaryIO) -> Reading:
    """Return the text of a file and its headings."""
    text, metadata, headings = read_unnamed(file)
    return Reading(text, metadata, headings or plain_headings(text))


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


def read_rst(file: BinaryIO) -> Reading:
    """Return the text of a file without its comments, and its headings."""
    text, metadata, _ = read_text(file)
    text, n_comments = COMMENT.subn("", text)
    note_left_out(metadata, {"comment": n_comments})
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
