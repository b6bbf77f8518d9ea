"""Splitting of a text into paragraphs, headings, list items, table rows and code."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# The kind of a line, first match first: Markdown, reStructuredText and tab-separated tables.
KINDS = re.compile(
    r"""
      (?P<blank>   \s*$ )
    | (?P<fence>   [ ]{0,3} (?: `{3,} [^`]*[^`\s] | ~{3,} [^~]*[^~\s] ) \s*$ )
    | (?P<bare>    [ ]{0,3} (?: `{3,} | ~{3,} ) \s*$ )
    | (?P<heading> [ ]{0,3} \#{1,6} (?: \s | $ ) )
    | (?P<rule>    [ ]{0,3} (?P<mark> [=\-~^*_+"] ) (?P=mark){2,} \s*$ )
    | (?P<item>    \s* (?: [-*+•‣◦▪] | \(? (?: \d{1,3} | [a-z] ) [.)] ) \s+ \S
                 | \s* \d{1,3} [\u3001\uff0e]
                 | [A-Z][\w.]* (?: [ ][A-Z][\w.]* ){,3} : \s )  # a speaker's turn
    | (?P<row>     \s* (?: \| | \+[-=] ) | \s* \S [^\t]* \t \s* \S )
    """,
    re.VERBOSE,
)
CODE_LINE = re.compile(
    r"""
    ^[ \t]* (?: (?: >>> | \.\.\. | [$] ) [ \t]  # a prompt
      | (?! [^\W\d_]+ (?: ,?[ ]+ [^\W\d_]+ ){4} )  # prose begins with some words
        (?: .* (?: [{}\\] | (?<! [\u0386-\u03ff] ) ; ) [ \t]* $
          | (?: from [ ] \S+ [ ] )? import [ ] [\w.]+ (?: [ ]? , .* | [ ] as .* )? $
          | (?: def | class | for | while | if | elif | with | except | else | try ) \b .* : $
          | [\w.\[\]'"]+ (?: [ ] [-+*/|&:]?=[ ] | =\S* $ )
          | (?: [\w*:]+ [ ] ){,3} [\w.*:~]+ \( [^()\n]* (?: \( [^()\n]* \) [^()\n]* )* \)
            (?: [ ] -> [^.\n]* )? [:,]? $  # a call or a signature
        )
    )
    """,
    re.VERBOSE | re.MULTILINE,
)
OPENS = frozenset({"blank", "fence", "bare", "heading", "item", "row"})
CLOSES = frozenset({"bare", "end", "heading", "rule", "row"})
VERBATIM = frozenset({"fence", "code", "end", "row"})
INDENTS = "    ", "\t"  # of code
CODE = re.compile(r"[={}]|\w\(|[:;]$", re.MULTILINE)  # rare in prose


class Block(NamedTuple):
    """The part `text[at:to]`; `prose` is False for code and table rows."""

    at: int
    to: int
    prose: bool


class Line(NamedTuple):
    """A line of a text, without its line break."""

    at: int
    text: str
    kind: str


def split_blocks(text: str) -> Iterator[Block]:
    r"""Yield the blocks of a text in order; only blank text lies between them.

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
    """Yield lines with their kinds: a name from `KINDS`, `code`, `end` of code or `prose`."""
    # A bare fence does not open code, as it may end code that began in an earlier chunk.
    at, in_code = 0, False
    for line in text.split("\n"):
        match = KINDS.match(line)
        kind = (match and match.lastgroup) or "prose"
        if kind == "fence":
            in_code = True
        elif in_code and kind == "bare":
            kind, in_code = "end", False
        elif in_code and kind != "blank":
            kind = "code"
        yield Line(at, line, kind)
        at += len(line) + 1


def _is_apart(line: Line, last: Line) -> bool:
    if line.kind in OPENS or last.kind in CLOSES:
        return True
    return line.kind == last.kind == "prose" and _is_title(last.text.strip(), line.text.strip())


def _is_title(line: str, after: str) -> bool:
    """Return whether a line is too short to be a wrapped line of the same paragraph."""
    return 2 * len(line) < len(after) and not after[0].islower()


def _block(text: str, lines: Sequence[Line]) -> Block:
    at, to = lines[0].at, lines[-1].at + len(lines[-1].text)
    is_code = CODE.search(text, at, to) and all(line.text.startswith(INDENTS) for line in lines)
    return Block(at, to, not is_code and lines[0].kind not in VERBATIM)
