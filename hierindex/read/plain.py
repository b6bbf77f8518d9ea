"""Text files read line by line: plain text, reStructuredText, source code and subtitles."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import accumulate, pairwise
from typing import BinaryIO

from hierindex.node import TITLE, Heading
from hierindex.read.html import read_html
from hierindex.read.rtf import read_rtf
from hierindex.read.text import HEAD, MAX_TITLE, OLE, Reading, UnreadableError, read_text
from hierindex.text.display import displayed

COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")  # by gzip, bzip2, xz, zstd
BEGINS_MARKUP = re.compile(  # its declarations and comments, and its root
    rb"(?:\xef\xbb\xbf)?\s*(?P<declared>(?>\s+|<\?[^>]*>|<!--(?>[^-]+|-(?!->))*-->"
    rb"|<!DOCTYPE[^>\[]*(?:\[[^\]]*\]\s*)?>)*)<(?P<root>[A-Za-z_][\w:.-]*)(?P<with>[^>]*)",
    re.IGNORECASE,
)
NUMBERED = re.compile(  # alone between blank lines
    r"(?:\A|\n[ \t]*\n)"
    r"(?P<line>(?:(?:appendix|article|chapter|clause|part|schedule|section)[ ]+)?"
    r"(?P<number>\d{1,3}(?:\.\d{1,3})*)[.:)]?[ \t]+[^\W\d_].{,76}\S)"
    r"(?=[ \t]*\n[ \t]*(?:\n|\Z))",
    re.IGNORECASE,
)
FEWEST = 3  # headings
MAX_SHARE = 0.1  # of the lines that are not blank
WORDS = 12  # of a heading
UNDERLINED = re.compile(
    r"(?:\A|(?<=\n\n))(?P<title>\S.*)\n(?P<rule>(?P<mark>[=~-])(?P=mark)+)[ \t]*$", re.MULTILINE
)
SLACK = 2  # marks more or fewer than the title's characters
TITLED = re.compile(  # a title between two rules, or above one, each a line of one punctuation mark
    r"^(?:(?P<over>([!-/:-@\[-`{-~])\2*)[ \t]*\n[ \t]*)?(?P<title>\S.*)\n"
    r"(?P<under>(?P<mark>[!-/:-@\[-`{-~])(?P=mark)*)[ \t]*$",
    re.MULTILINE,
)
COMMENT = re.compile(  # no directive, target, footnote or substitution, with its indented lines
    r"^\.\.(?:[ \t]+(?![\w:+.-]+::|_|\[|\|)\S.*(?:\n|\Z)|[ \t]*\n(?=[ \t]+\S))"
    r"(?:(?:[ \t]*\n)*[ \t]+\S.*(?:\n|\Z))*",
    re.MULTILINE,
)
SHORT = 4  # marks, which must be as many as the title's characters
SUFFIXES = (
    ".bash .c .cc .cjs .cpp .cs .cxx .go .h .hh .hpp .java .jl .js .jsx .kt .lua .mjs .php .pl .pm "
    ".r .rb .rs .scala .sh .swift .ts .tsx"
).split()
PYTHON = (".py", ".pyi", ".pyw")
MAX_PARSED = 1_000_000  # characters of Python; longer files are data
DEEPEST = 3  # level of a heading
BLANK = re.compile(r"\n(?:[^\S\n]*\n)+(?!\Z)")  # lines, as far as the next one
TIMES = r"^[ \t]*((?:\d{1,3}:)?\d\d:\d\d)[.,]\d{1,3}[ \t]*-->.*\n?"
CUE = re.compile(rf"(?:^[ \t]*\d+[ \t]*\n)?{TIMES}", re.MULTILINE)  # perhaps after its number
WEB_CUE = re.compile(rf"(?:(?<=\n\n).+\n|^\d+\n)?{TIMES}", re.MULTILINE)  # or its name
NOTE = re.compile(r"(?<=\n\n)NOTE(?:[ \t].*)?(?:\n.+)*\n?")
VOICE = re.compile(r"<v(?:\.[^\s<>]{,99})?\s([^<>]{,200})>")
TAG = re.compile(r"<[a-z/\d][^<>]*>|\{\\[^{}]*\}", re.IGNORECASE)
GROWING = re.compile(r"<\d\d:\d\d[^<>]*><c>")  # words as they are recognised; lines come again


def read_unnamed(file: BinaryIO) -> Reading:
    """Return the text of a file with an unknown suffix.

    Raises
    ------
    UnreadableError
        If it is markup that cannot be read as text.
    """
    begin = file.read(HEAD).lstrip()
    file.seek(0)
    if begin.startswith(b"{\\rtf"):
        return read_rtf(file)
    if begin.startswith(OLE):
        raise UnreadableError("is an old Office file; save it as .docx, .pptx or .xlsx")
    if begin.startswith(COMPRESSED):
        raise UnreadableError("is compressed; unpack it")
    if begin.startswith(b"%!PS"):
        raise UnreadableError("is PostScript, which is not read; convert it to PDF")
    if markup := BEGINS_MARKUP.match(begin):
        root = markup["root"].decode()
        if root.lower() == "html" or b"<!DOCTYPE html" in markup["declared"]:
            return read_html(file)
        if b"<?xml" in markup["declared"] or b"xmlns" in markup["with"]:
            raise UnreadableError(f"is XML ({root}), which is not read; convert it to HTML or text")
    return read_text(file)


def read_plain(file: BinaryIO) -> Reading:
    """Return the text of a file and its headings: underlined lines, and numbered ones below."""
    text, metadata, headings = read_unnamed(file)
    if not headings:
        by_start = {heading.start: heading for heading in underlined_headings(text)}
        for heading in plain_headings(text):
            below = heading._replace(level=heading.level + bool(by_start))
            by_start.setdefault(heading.start, below)
        headings = [by_start[start] for start in sorted(by_start)]
    return Reading(text, metadata, headings)


def underlined_headings(text: str) -> Iterator[Heading]:
    r"""Yield the lines of plain text, each after a blank one, with a rule of their length below.

    The rule may differ by two characters. A mark's level is its order of appearance.

    >>> found = underlined_headings("ONE\n===\n\nText.\n\nTwo\n----\n\n12\n--\n")
    >>> [(heading.level, heading.title, heading.start) for heading in found]
    [(1, 'ONE', 0), (2, 'Two', 16)]
    """
    levels = dict[str, int]()
    for found in UNDERLINED.finditer(text):
        title = found["title"].rstrip()
        if abs(len(title) - len(found["rule"])) <= SLACK and any(map(str.isalpha, title)):
            level = levels.setdefault(found["mark"], len(levels) + 1)
            yield Heading(level, " ".join(title.split())[:MAX_TITLE], found.start())


def plain_headings(text: str) -> Sequence[Heading]:
    r"""Return the lines that are numbered like sections, or none if they may be a list.

    They must stand between blank lines and count from 0 or 1 without a gap. If they are few, are
    more than a tenth of all lines, or have no text between them, they are taken for a list.

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
    if not FEWEST <= len(headings) <= MAX_SHARE * n_lines:
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
    """Return the text of a reStructuredText file without comments, and its headings."""
    text, metadata, _ = read_text(file)
    text, n_comments = COMMENT.subn("", text)
    reading = Reading(text, metadata, [*rst_headings(text)])
    return reading.leaving_out({"comment": n_comments})


def rst_headings(text: str) -> Iterator[Heading]:
    r"""Yield the underlined titles; a style's level is its order of appearance.

    >>> found = rst_headings("One\n===\n\nText.\n\nTwo\n---\n")
    >>> [(heading.level, heading.title, heading.start) for heading in found]
    [(1, 'One', 0), (2, 'Two', 16)]

    Notes
    -----
    The rule is the one of docutils, which does not report the positions of titles.
    """
    styles: dict[tuple[str, bool], int] = {}  # levels by mark and whether it is above, too
    end = 0  # of the title before
    for found in TITLED.finditer(text):
        start, over, under = found.start(), found["over"], found["under"]
        title = found["title"].rstrip()
        line = text[text.rfind("\n", 0, start - 1) + 1 : start]  # before it
        may_begin = start == end or line[:1] in (" ", "\t", "\n") or line.startswith("..")
        is_long = len(under) >= min(SHORT, len(title)) and over in (None, under)
        if may_begin and is_long and any(map(str.isalnum, title)):
            level = styles.setdefault((found["mark"], over is not None), len(styles) + 1)
            shown = displayed(title[: 4 * MAX_TITLE])
            yield Heading(level, " ".join(shown.split())[:MAX_TITLE], start)
            end = found.end() + 1


def read_python(file: BinaryIO) -> Reading:
    """Return the text of a file; classes and functions are headings, the docstring is the title."""
    text, metadata, _ = read_text(file)
    try:
        if len(text) > MAX_PARSED:
            raise ValueError(len(text))
        with warnings.catch_warnings(action="ignore"):
            module = ast.parse(text)
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        return Reading(text, metadata, _after_blank_lines(text))
    if said := ast.get_docstring(module):
        metadata[TITLE] = said.partition("\n")[0].strip()[:MAX_TITLE]
    return Reading(text, metadata, list(_of_python(module, text)))


def read_source(file: BinaryIO) -> Reading:
    """Return the text of a source file; its sections begin after blank lines."""
    text, metadata, _ = read_text(file)
    return Reading(text, metadata, _after_blank_lines(text))


def _after_blank_lines(text: str) -> list[Heading]:
    return [Heading(1, "", match.end()) for match in BLANK.finditer(text)]


def _of_python(module: ast.Module, text: str) -> Iterator[Heading]:
    """Yield definitions, and other code after them, from the first comment above them."""
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]

    def headings(body: Sequence[ast.stmt], level: int, end: int) -> Iterator[Heading]:
        follows = False  # a definition
        for node in body:
            is_class = isinstance(node, ast.ClassDef)
            is_definition = is_class or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_definition or (follows and level == 1):
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                comment = lines[first - 1][: node.col_offset] + "#"
                while not lines[end].startswith(comment) and end < first - 1:
                    end += 1
                name = getattr(node, "name", "") if is_definition else ""
                yield Heading(level, f"class {name}" if is_class else name, starts[end])
            if isinstance(node, ast.ClassDef) and level < DEEPEST:
                yield from headings(node.body, level + 1, node.lineno)
            follows, end = is_definition, node.end_lineno or node.lineno

    return headings(module.body, 1, 0)


def read_subtitles(file: BinaryIO) -> Reading:
    """Return a line for each cue of SubRip or WebVTT: time, speaker if named, and words.

    A file without cues is read as text.
    """
    text, metadata, _ = read_text(file)
    is_growing, is_web = GROWING.search(text) is not None, text.startswith("WEBVTT")
    track = re.sub(r"\n[ \t]+(?=\n)", "\n", text)
    track, n_notes = NOTE.subn("", track) if is_web else (track, 0)
    _, *parts = (WEB_CUE if is_web else CUE).split(track)  # first a title and styles
    cues, last = list[str](), ""
    for time, words in zip(parts[::2], parts[1::2], strict=True):
        lines = VOICE.sub(r"\1: ", words).split("\n")
        lines = [" ".join(unescape(TAG.sub("", line)).split()) for line in lines]
        said = [line for line in lines if line and not (is_growing and line == last)]
        if said:
            last = said[-1]
            cues.append(f"{time} {' '.join(said)}")
    return Reading("\n".join(cues) or text, metadata).leaving_out({"note": n_notes})
