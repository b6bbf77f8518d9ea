"""Blocks of a text: paragraphs, headings, list items, table rows, code; no sentence crosses two."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# What a line is by itself; the first that fits. Of Markdown, reStructuredText and tables by tabs.
KINDS = re.compile(
    r"""
      (?P<blank>   \s*$ )
    | (?P<fence>   [ ]{0,3} (?: `{3,} [^`]*[^`\s] | ~{3,} [^~]*[^~\s] ) \s*$ )
    | (?P<bare>    [ ]{0,3} (?: `{3,} | ~{3,} ) \s*$ )
    | (?P<heading> [ ]{0,3} \#{1,6} (?: \s | $ ) )
    | (?P<rule>    [ ]{0,3} (?P<mark> [=\-~^*_+"] ) (?P=mark){2,} \s*$ )
    | (?P<item>    \s* (?: [-*+•‣◦▪] | \(? (?: \d{1,3} | [a-z] ) [.)] ) \s+ \S
                 | \s* \d{1,3} [\u3001\uff0e]
                 | [A-Z][\w.]* (?: [ ][A-Z][\w.]* ){,3} : \s )  # or what a speaker says
    | (?P<row>     \s* (?: \| | \+[-=] ) | \s* \S [^\t]* \t \s* \S )
    """,
    re.VERBOSE,
)
OPENS = frozenset({"blank", "fence", "bare", "heading", "item", "row"})
CLOSES = frozenset({"bare", "end", "heading", "rule", "row"})
VERBATIM = frozenset({"fence", "code", "end", "row"})
INDENTS = "    ", "\t"  # of code
CODE = re.compile(r"[={}]|\w\(|[:;]$", re.MULTILINE)  # what hardly any prose has


class Block(NamedTuple):
    """A stretch `text[at:to]`; `prose` is False of code and of table rows."""

    at: int
    to: int
    prose: bool


class Line(NamedTuple):
    """A line of a text, without its end."""

    at: int
    text: str
    kind: str


def split_blocks(text: str) -> Iterator[Block]:
    r"""Blocks of a text in order; what is between them is blank.

    >>> text = "# Title\nIt begins. It\ngoes on.\n| a | b |"
    >>> [text[block.at : block.to] for block in split_blocks(text)]
    ['# Title', 'It begins. It\ngoes on.', '| a | b |']
    """
    lines: list[Line] = []
    for line in _lines(text):
        if lines and _is_apart(line, lines[-1]):
            yield _block(text, lines)
            lines = []
        if line.kind != "blank":
            lines.append(line)
    if lines:
        yield _block(text, lines)


def _lines(text: str) -> Iterator[Line]:
    """Lines with their kinds: those that they have by themselves, `code`, its `end`, `prose`.

    Only a fence that names a language is sure to open code: a bare one may as well end code
    of which a chunk has but the rest.
    """
    at, in_code = 0, False
    for line in text.split("\n"):
        found = KINDS.match(line)
        kind = (found and found.lastgroup) or "prose"
        if kind == "fence":
            in_code = True
        elif in_code and kind == "bare":
            kind, in_code = "end", False
        elif in_code and kind != "blank":
            kind = "code"
        yield Line(at, line, kind)
        at += len(line) + 1


def _is_apart(line: Line, before: Line) -> bool:
    if line.kind in OPENS or before.kind in CLOSES:
        return True
    return line.kind == before.kind == "prose" and _is_title(before.text.strip(), line.text.strip())


def _is_title(line: str, after: str) -> bool:
    """Whether a line is too short to be wrapped before the next, which begins anew."""
    return 2 * len(line) < len(after) and not after[0].islower()


def _block(text: str, lines: Sequence[Line]) -> Block:
    at, to = lines[0].at, lines[-1].at + len(lines[-1].text)
    is_code = CODE.search(text, at, to) and all(line.text.startswith(INDENTS) for line in lines)
    return Block(at, to, not is_code and lines[0].kind not in VERBATIM)
