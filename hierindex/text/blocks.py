"""Splitting of a text into blocks: headings, paragraphs, list items, table rows and others."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from hierindex.node import Node, Quote, titles_of

# Of an item of a list. A letter is small, as a line may begin with an initial.
BULLET = r"[-*+\u2022\u2023\u25a0\u25aa\u25cb\u25cf\u25e6\uf0b7]"
ITEM_MARK = rf"(?:{BULLET}|\(?(?:\d{{1,3}}|[a-z]|[ivx]{{1,5}})[.)\uff0e])"

# The kind of a line, first match first: Markdown, reStructuredText and tab-separated tables.
LINES = re.compile(
    r"""
      (?P<blank>   \s*$ )
    | (?P<fence>   [ ]{0,3} (?: `{3,} [^`]*[^`\s] | ~{3,} [^~]*[^~\s] ) \s*$ )
    | (?P<bare>    [ ]{0,3} (?: `{3,} | ~{3,} ) \s*$ )
    | (?P<heading> [ ]{0,3} \#{1,6} (?: \s | $ ) )
    | (?P<rule>    [ ]{0,3} (?P<mark> [=\-~^*_+"] ) (?P=mark){2,} \s*$ )
    | (?P<item>    \s* """
    + ITEM_MARK
    + r""" \s+ \S
                 | \s* \d{1,3} [\u3001\uff0e]
                 | [A-Z][\w.]* (?: [ ][A-Z][\w.]* ){,3} : \s )  # a speaker's turn
    | (?P<row>     \s* (?: \| | \+[-=] ) | \s* \S [^\t]* \t \s* \S )
    """,
    re.VERBOSE,
)
CODE_LINE = re.compile(
    r"""
    (?: >>> | \.\.\. | [$] ) (?: [ ] | $ )  # a prompt
    | [a-zA-Z_]\w* (?: \.\w+ )+ $  # a name
    | (?! [^\W\d_]+ (?: ,?[ ]+ [^\W\d_]+ ){4} )  # prose begins with some words
      (?: .* [{}\\] $
        | [^;=()<>{}*\[\]]* [=()<>{}*\[\]] [^;]* ; $
        | (?: [\w.:]+ [ ] ){,3} [\w.:*]+ (?<! [\u0386-\u03ff] ) ; $
        | (?: from [ ] \S+ [ ] )? import [ ] [\w.]+ (?: [ ]? , .* | [ ] as .* )? $
        | (?: def | class | for | while | if | elif | with | except | else | try ) \b [^:]* : $
        | [\w.\[\]'"]+ (?: [ ] [-+*/|&:]?=[ ] | =\S* $ )
        | (?: [\w*:]+ [ ] ){,3} [\w.*:~]+ \( [^()]* (?: \( [^()]* \) [^()]* )* \) [:,]? $  # a call
      )
    """,
    re.VERBOSE,
)
FRONT_MATTER = re.compile(  # YAML or TOML, or what looks so
    r"""(?P<fence>---|\+{3})[ \t]*\n(?P<entries>(?=[\w"'#\[{])"""
    r"""(?:(?:[\w"'][^\n:=]*[:=].*|[ \t#\[\]{}-].*)?\n)+?)(?:(?P=fence)|\.{3})[ \t]*$""",
    re.M,
)
CITED = re.compile(r">(?!\s*\d)")  # in a reply; no comparison such as "> 5 mm"
PROMPTS = ">>>", "..."
CODE_STARTS = *PROMPTS, "$ ", "import ", "from "
CODE_ENDS = tuple(";{}\\):,")
CODE_WIDTH = 160  # characters of a line of code at most; longer ones are paragraphs
PROSE_LINE = re.compile(
    r"^[ \t]* (?: [^\W\d_]+ (?: [,;]?[ ]+ [^\W\d_]+ ){4} | [\u3040-\u30ff\u3400-\u9fff]{5} )",
    re.VERBOSE | re.MULTILINE,
)
OPENS = frozenset({"blank", "fence", "bare", "heading", "item", "row"})
CLOSES = frozenset({"bare", "end", "front", "heading", "rule", "row"})
VERBATIM = {"fence": "code", "code": "code", "end": "code", "row": "row", "front": "front matter"}
INDENTS = "    ", "\t"  # of code
CODE = re.compile(r"[={}]|\w\(|[:;]$", re.MULTILINE)  # rare in prose
NO_PROSE = frozenset({"code", "row", "front matter"})
LEADERS = re.compile(
    r"(?<![.\s])[ \t]*(?:\.{4,}|(?:[ \t]\.){4,}|\u2026\u2026+)[ \t]*\w+[ \t]*$", re.M
)
KINDS = re.compile(  # of a block, first match first
    r"""
      (?P<heading>   [ ]{0,3} \#{1,6} (?: \s | $ )
                   | .+ \n [ ]{0,3} (?P<mark> [=\-~^*_+"] ) (?P=mark){2,} \s* $ )
    | (?P<furniture> [^\w\n]* $ | (?i: page | seite ) \s \d+ (?: \s (?: of | von | / ) \s \d+ )? $ )
    | (?P<quotation> [ ]{0,3} > .* (?: \n [ ]{0,3} > .* )* $ )
    | (?P<footnote>  \[\^ [^\]\n]+ \] )
    | (?P<caption>   [*_]{0,3} (?: Fig(?: ure | ura | uur | \. ) | Abb(?: ildung | \. ) | Listing
                     | Tab(?: le | elle | leau | la | ela | \. ) ) [ ] (?: [A-Z]\.? )? \d+
                     (?: [.-] \d+ )* [*_]{0,3} [ ]? [.:|\u2013\u2014] )
    | (?P<record>    [^\W\d_a-z][^:;\n]{,60}:\s[^;\n]+ (?: ;\s[^\W\d_a-z][^:;\n]{,60}:\s[^;\n]+ )+
                   | [^\W\d_]\w*:\s[^;\n]+ (?: ;\s[^\W\d_]\w*:\s[^;\n]+ )+ )  # of one word each
    | (?P<item>      \s* (?: """
    + ITEM_MARK
    + r""" \s+ \S | \d{1,3} [\u3001\uff0e] ) )
    """,
    re.VERBOSE,
)
REFERENCES = (  # titles of lists of what is cited
    "bibliografia bibliografía bibliographie bibliography literatur literaturverzeichnis "
    "literature literatuur referencias references referências riferimenti références"
).split()
CONTENTS = "contents", "indice", "inhalt", "inhaltsverzeichnis", "inhoud", "sommaire", "índice"
BELOW = "paragraph", "item"  # which a title may change
TITLED = {**dict.fromkeys(REFERENCES, "reference"), **dict.fromkeys(CONTENTS, "contents")}
NUMBER = re.compile(r"[\W\d]*")  # before the words of a title


class Block(NamedTuple):
    """The part `text[start:end]` of a text.

    `kind` is one of these: "paragraph", "heading", "item" (of a list), "row" (of a table), "record"
    (a row with the header, as in "Name: Ash; Age: 40"), "code", "quotation", "caption", "footnote",
    "reference", "contents", "front matter", or "furniture" (rules and page numbers).
    """

    start: int
    end: int
    kind: str

    @property
    def prose(self) -> bool:
        """Whether it consists of sentences, and not of code, rows or front matter."""
        return self.kind not in NO_PROSE


class Line(NamedTuple):
    """A line of a text, without its line break."""

    at: int
    text: str
    kind: str


def split_blocks(text: str) -> Iterator[Block]:
    r"""Yield the blocks of a text in order; only white space is between them.

    >>> text = "# Title\nIt begins. It\ngoes on.\n| a | b |"
    >>> [text[block.start : block.end] for block in split_blocks(text)]
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


def blocks_of(node: Node) -> list[Block]:
    """Return the blocks of a node's text, each within one of its quotes.

    The titles of sections are headings even if they are not marked. Text below "References" or
    "Contents" has these kinds.
    """
    if not node.quotes:
        return [*split_blocks(node.text)]
    return [block for quote in node.quotes for block in quoted_blocks(node.text, quote)]


def quoted_blocks(text: str, quote: Quote) -> Iterator[Block]:
    """Yield the blocks of a part of a text; the part lies within one section."""
    titles = [*map(_words, titles_of(quote.source.section))] if quote.source else []
    below = [
        title for title in titles[:-1] if title in REFERENCES
    ]  # all else may be the document's
    kind = next((TITLED[title] for title in below + titles[-1:] if title in TITLED), "")
    part, is_first = text[quote.at : quote.to], True
    for block in split_blocks(part):
        at, to = quote.at + block.start, quote.at + block.end
        lines = part[block.start : block.end].split("\n") if is_first else []
        for line in takewhile(lambda line: _words(line) in titles, lines):
            yield Block(at, at + len(line), "heading")
            at = to if block.kind == "heading" else at + len(line) + 1
        if at < to:
            yield Block(at, to, kind if kind and block.kind in BELOW else block.kind)
            is_first = False


def _words(title: str) -> str:
    """Return a title without its number and marks, in small letters."""
    return NUMBER.sub("", title.strip(), count=1).rstrip("#*_: ").casefold()


def _lines(text: str) -> Iterator[Line]:
    """Yield lines with their kinds: one of `LINES`, `front`, `code`, `end` of code or `prose`."""
    # A bare fence does not open code, as it may end code that began in an earlier chunk.
    at, in_code, last = 0, False, Line(0, "", "blank")
    if front := FRONT_MATTER.match(text):
        last = Line(0, front[0], "front")
        yield last
        at = front.end() + 1
    for line in text[at:].split("\n"):
        match = LINES.match(line)
        kind = (match and match.lastgroup) or "prose"
        if kind == "fence":
            in_code = True
        elif in_code and kind == "bare":
            kind, in_code = "end", False
        elif in_code or (kind == "prose" and (is_code(line) or _is_in_code(line, last))):
            kind = kind if kind == "blank" else "code"
        last = Line(at, line, kind)
        yield last
        at += len(line) + 1


def is_code(line: str) -> bool:
    """Return whether a line is code; some sign of code is required.

    >>> is_code("x = f(1)"), is_code("It is called with 1, as in f(1).")
    (True, False)
    """
    code = line.strip()
    signs = (
        "=" in code or " " not in code or code.endswith(CODE_ENDS) or code.startswith(CODE_STARTS)
    )
    return signs and len(code) <= CODE_WIDTH and CODE_LINE.match(code) is not None


def _is_in_code(line: str, last: Line) -> bool:
    """Return whether a line continues the code before it, or is its output."""
    goes_on = line.startswith(INDENTS) or last.text.lstrip().startswith(PROMPTS)
    return last.kind == "code" and goes_on and PROSE_LINE.match(line) is None


def _is_apart(line: Line, last: Line) -> bool:
    if line.kind in OPENS or last.kind in CLOSES:
        return True
    before, after = last.text.strip(), line.text.strip()
    match last.kind, line.kind:
        case "prose", "prose":
            was, is_cited = (CITED.match(each) is not None for each in (before, after))
            is_other = is_cited != was and not (was and after[0].islower())
            return is_other or _is_title(before, after) or _is_term(last.text, line.text)
        case "prose" | "item", "code":  # which may be the end of a sentence
            return not (before[-1].isalnum() or before[-1] == ",") or _is_title(before, after)
        case "code", "prose":
            return not after[0].islower()
    return False


def _is_title(line: str, after: str) -> bool:
    """Return whether a line is too short to be a wrapped line of the same paragraph."""
    return 5 * len(line) < 3 * len(after) and not after[0].islower()


def _is_term(line: str, after: str) -> bool:
    """Return whether the indented line after a line explains it, as in manual pages."""
    words, explanation = line.lstrip(), after.lstrip()
    indents = len(line) - len(words), len(after) - len(explanation)
    goes_on = explanation[0].islower() and not words.isupper()  # "--quiet", "prints nothing."
    return indents[0] + 1 < indents[1] and 3 * len(words) < 2 * len(explanation) and not goes_on


def _block(text: str, lines: Sequence[Line]) -> Block:
    at, to = lines[0].at, lines[-1].at + len(lines[-1].text)
    if all(line.kind in VERBATIM for line in lines):
        return Block(at, to, VERBATIM[lines[0].kind])
    is_code = (
        all(line.text.startswith(INDENTS) for line in lines)
        and CODE.search(text, at, to) is not None
        and PROSE_LINE.search(text, at, to) is None
    )
    if is_code:
        return Block(at, to, "code")
    if 2 * len(LEADERS.findall(text, at, to)) > len(lines):
        return Block(at, to, "contents")
    found = KINDS.match(text, at, to)
    return Block(at, to, (found and found.lastgroup) or "paragraph")
