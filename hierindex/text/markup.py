"""Display of stored text: without markup, with joined lines, by character offsets."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hierindex.text.blocks import split_blocks

# The end of a line that goes on in the next, in a paragraph that has a line of 45 characters and in
# others, but for labels such as "Guest network: ". No pattern is tried at each of many characters
# that it would read again: a text may be a megabyte of one sign.
WIDE = re.compile(r"^.{45,}\n", re.MULTILINE)
WRAPPED = re.compile(r"\n(?=(?:> ?)*[*_`]{,2}[^\W\d_])")
CONTINUED = re.compile(r"\n(?=(?:> ?)*[*_`]{,2}[^\W\d_A-Z])")
LABEL = re.compile(r"[^\n:]{1,40}: ")
HEADING = re.compile(
    r"\A[ ]{0,3}#{1,6}(?:[ \t]+|$)|(?<![ \t])[ \t]+#+[ \t]*$"
    r"|\n[ ]{0,3}([=\-~^*_+\"])\1{2,}[ \t]*$"
)
FENCE = re.compile(r"\A[ ]{0,3}(?:`{3,}|~{3,})[^\n]*\n|\n[ ]{0,3}(?:`{3,}|~{3,})[ \t]*\Z")
DIRECTIVE = re.compile(r"^[ \t]*\.\. [\w:-]+::[^\n]*\n?", re.MULTILINE)
QUOTATION = re.compile(r"^[ ]{0,3}(?:>[ ]?)+", re.MULTILINE)
# Where a link leads: an address, or a file.
REFERENCE = re.compile(
    r"^[ ]{0,3}\[[^\[\]\n]+\]: ?(?:<[^>\n]+>|\w+://\S+|[\w.-]*[./#][^\W\d]\S*)$", re.MULTILINE
)
# What stands inside a line, first match first. The group that matches is what is shown of it; its
# name is the style.
INLINE = re.compile(
    r"""
      :(?:cite|label)[a-z]*:`[^`\n]*`
    | (?<!\w):[a-z]+(?::[a-z]+){,3}:`[~!]?(?:(?:\w+\.){1,9}(?=\w+`))?
        (?P<role>[^`<\n]*[^`<\s])\s{,40}(?:<[^`<\n]*>)?`
    | \[t:\](?P<cited>[\w.]+)`
    | (?P<tick>`{1,2})(?!`)(?: (?P<link>[^`<\n]*[^`<\s])\s{1,40}<[^`<>\n]*>`__?
                              | (?P<code>[^`\n]+)(?P=tick)(?!`)_? )
    | !?\[(?P<label>[^\[\]\n]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:\s"[^"\n]*")?\)
    | (?<![\w\]])\[(?P<named>[^\[\]\n]+)\]\[[^\[\]\n]*[^\W\d][^\[\]\n]*\](?!\[)
    | (?<![\w*\\])\*\*(?=[^\s*])(?P<strong>[^*\n]*[^\s*])\*\*(?![\w*])
    | (?<![\w*\\])\*(?=[^\s*])(?P<emphasis>[^*\n]*[^\s*])\*(?![\w*])
    | (?<![\w_\\])_(?=[^\W_])(?P<slanted>[^_\n]*[^\W_][.,;:!?]?)_(?![\w_])
    | \[\d+\]_(?!\w)
    """,
    re.VERBOSE,
)
STYLES = {"code": "code", "strong": "strong", "emphasis": "emphasis", "slanted": "emphasis"}


class Mark(NamedTuple):
    """How `text[start:end]` is displayed: as the text `shown`, or unchanged if that is None.

    `style` is "heading", "code", "block" (of code, or of rows), "strong", "emphasis" or "".
    """

    start: int
    end: int
    shown: str | None = None
    style: str = ""


def marks_of(text: str) -> list[Mark]:
    """Return the parts that are not displayed as stored, in order; styles come before nested parts.

    The marks of Markdown and reStructuredText are hidden, links and roles show their words, and the
    lines of a paragraph are joined. Code and table rows are unchanged.
    """
    marks = list[Mark]()
    for block in split_blocks(text):
        start, end = block.start, block.end
        part = text[start:end]
        if not block.prose:
            marks += [Mark(start, end, style="block"), *_hidden(FENCE, part, start)]
        elif block.kind == "heading":
            hidden = _hidden(HEADING, part, start)
            marks += [Mark(start, end, style="heading"), *hidden, *_inline(part, start)]
        else:
            wrapped = WRAPPED if WIDE.search(part) else CONTINUED
            joined = (
                Mark(start + m.start(), start + m.end(), " ")
                for m in wrapped.finditer(part)
                if not _is_label(part, m.end())
            )
            directive = DIRECTIVE if part.lstrip().startswith(".. ") else REFERENCE
            pattern = QUOTATION if block.kind == "quotation" else directive
            hidden = _hidden(pattern, part, start)
            marks += [*hidden, *joined, *_inline(part, start)]
    return sorted(marks, key=lambda mark: (mark.start, -mark.end))


def displayed(
    text: str, start: int = 0, end: int | None = None, marks: Sequence[Mark] | None = None
) -> str:
    r"""Return `text[start:end]` as it is displayed, using the `marks_of` the text.

    >>> displayed("## On *mills*\n\nSee :class:`~wind.Mill` and the `key`.")
    'On mills\n\nSee Mill and the key.'
    """
    end = len(text) if end is None else end
    parts, at = list[str](), start
    for mark in marks_of(text) if marks is None else marks:
        if mark.shown is None or mark.end <= at or mark.start >= end:
            continue
        parts += [text[at : max(at, mark.start)], mark.shown if mark.start >= at else ""]
        at = min(end, mark.end)
    return "".join([*parts, text[at:end]])


def _is_label(part: str, at: int) -> bool:
    """Return whether a line begins with a label: one in a list of labels, or with a capital."""
    before = part.rfind("\n", 0, at - 1) + 1
    return bool(LABEL.match(part, at) and (part[at].isupper() or LABEL.match(part, before)))


def _hidden(pattern: re.Pattern[str], part: str, start: int) -> list[Mark]:
    return [Mark(start + m.start(), start + m.end(), "") for m in pattern.finditer(part)]


def _inline(part: str, start: int) -> Iterator[Mark]:
    """Yield the marks in a line: its signs are hidden, and the text between them has a style."""
    for found in INLINE.finditer(part):
        at, to = found.span()
        if (name := found.lastgroup) is None:
            yield Mark(start + at, start + to, "")
            continue
        inner, outer = found.span(name)
        if style := STYLES.get(name):
            yield Mark(start + inner, start + outer, style=style)
        yield Mark(start + at, start + inner, "")
        yield Mark(start + outer, start + to, "")
