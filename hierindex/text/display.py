"""Display of stored text without its markup, and of answers as text or HTML."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from hierindex.node import place_of
from hierindex.text.blocks import split_blocks
from hierindex.unsafe import visible

MOST_NAMED = 10  # names in a sentence
# The end of a line that goes on in the next, in a paragraph that has a line of 45 characters and in
# others, but for labels such as "Guest network: ". No pattern is tried at each of many characters
# that it would read again: a text may be a megabyte of one sign.
WIDE = re.compile(r"^.{45,}\n", re.MULTILINE)
WRAPPED = re.compile(r"\n(?=[*_`]{,2}[^\W\d_])")
CONTINUED = re.compile(r"\n(?=[*_`]{,2}[^\W\d_A-Z])")
LABEL = re.compile(r"[^\n:]{1,40}: ")
HEADING = re.compile(
    r"\A[ ]{0,3}#{1,6}(?:[ \t]+|$)|(?<![ \t])[ \t]+#+[ \t]*$"
    r"|\n[ ]{0,3}([=\-~^*_+\"])\1{2,}[ \t]*$"
)
FENCE = re.compile(r"\A[ ]{0,3}(?:`{3,}|~{3,})[^\n]*\n|\n[ ]{0,3}(?:`{3,}|~{3,})[ \t]*\Z")
DIRECTIVE = re.compile(r"^[ \t]*\.\. [\w:-]+::[^\n]*\n?", re.MULTILINE)
QUOTED = re.compile(r"\n[ ]{0,3}(?:>[ ]?)+(?=[^\s>])")  # before a further line of a quotation
ROWS = re.compile(r"(?:[^|\n]+ \|[^\n]*(?:\n|$)){2,}")  # of a table whose cells " | " divides
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

BETWEEN = "\n\n"
NOTHING = "The answer is empty."
PLACES = ("section", "page", "page_label"), ("section",)  # a passage may share with the one above
MAX_REASONS = 3  # to show
QUIET = "opacity:0.7;font-size:90%"

Json = Mapping[str, Any]
Format = Callable[[str], str]


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

    The marks of Markdown and reStructuredText are hidden, but not the first ">" of a quotation;
    links and roles show their words, and the lines of a paragraph are joined. Code and table rows
    are unchanged. Several empty lines, as between records, are shown as one.
    """
    marks, end = list[Mark](), 0
    for block in split_blocks(text):
        if text.count("\n", end, block.start) > 2:
            marks.append(Mark(end, block.start, BETWEEN))
        start, end = block.start, block.end
        part = text[start:end]
        if not block.prose or ROWS.fullmatch(part):
            marks += [Mark(start, end, style="block"), *_hidden(FENCE, part, start)]
        elif block.kind == "heading":
            hidden = _hidden(HEADING, part, start)
            marks += [Mark(start, end, style="heading"), *hidden, *_inline(part, start)]
        else:
            quoted, is_wide = block.kind == "quotation", WIDE.search(part)
            wrapped = (QUOTED if quoted else WRAPPED) if is_wide else CONTINUED
            joined = (
                Mark(start + m.start(), start + m.end(), " ")
                for m in wrapped.finditer(part)
                if not _is_label(part, m.end())
            )
            directive = DIRECTIVE if part.lstrip().startswith(".. ") else REFERENCE
            hidden = _hidden(directive, part, start)
            marks += [*hidden, *joined, *_inline(part, start)]
    return sorted(marks, key=lambda mark: (mark.start, -mark.end))


def displayed(
    text: str, start: int = 0, end: int | None = None, marks: Sequence[Mark] | None = None
) -> str:
    r"""Return `text[start:end]` as it is displayed, given the `marks_of` the text.

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


class Part(NamedTuple):
    """A part of an answer, the position to show above it, and its best-matching words."""

    text: str
    place: str = ""
    best: str = ""


def answer_text(answer: Json, strong: Format = str) -> str:
    """Format an answer as text.

    Parameters
    ----------
    answer : mapping
        As `Answer.to_json` returns it.
    strong : callable
        Formats the words that match best.
    """
    parts = [
        "\n".join(filter(None, (place, _marked(text, best, str, strong))))
        for text, place, best in parts_of(answer)
    ]
    return BETWEEN.join([*parts, *notes_of(answer)])


def answer_html(answer: Json) -> str:
    """Format an answer as HTML."""
    shown = "".join(passage_html(part.text, part.place, part.best) for part in parts_of(answer))
    return f"<div>{shown}{''.join(_block(note, QUIET) for note in notes_of(answer))}</div>"


def passage_html(text: str, head: str = "", best: str = "") -> str:
    """Format a text as HTML, with a line above it and some of its words in bold type."""
    marked = _marked(text, best, inert, lambda words: f"<b>{inert(words)}</b>")
    quoted = f'<div dir="auto" style="white-space:pre-wrap;margin-bottom:0.7em">{marked}</div>'
    return f"{_block(head, QUIET) if head else ''}{quoted}"


def overview_html(overview: Json, note: Callable[[Json], str] | None = None) -> str:
    """Format the quotes of an overview as HTML, each with its position or the result of `note`.

    It contains no styles.
    """
    show = note or (lambda quote: f"<br>{inert(place_of(quote, quote['title'] or None))}")
    rows = [
        f'<tr><td>{percent(quote["share"])}</td><td dir="auto"><b>{inert(quote["name"])}</b><br>'
        f"{inert(quote['text'])} {show(quote)}</td></tr>"
        for quote in overview["quotes"]
    ]
    left = overview["parts"] - len(rows)
    rest = percent(1 - sum(quote["share"] for quote in overview["quotes"]))
    more = f"<p>and {counted(left, 'more part')} ({rest})</p>" if left else ""
    return f"<table><tbody>{''.join(rows)}</tbody></table>{more}" if rows else ""


def facts_of(overview: Json, time: str | None) -> str:
    """Return one line with the size of an index and the date of its generation."""
    sizes = [counted(overview[f"{noun}s"], noun) for noun in ("document", "token")]
    return " · ".join([*sizes, *filter(None, [(time or "")[:10]])])


def percent(share: float) -> str:
    """Format a share as a percentage.

    >>> percent(0.234), percent(0.002)
    ('23%', 'less than 1%')
    """
    return f"{share:.0%}" if share >= 0.005 else "less than 1%"


def parts_of(answer: Json) -> list[Part]:
    """Split an answer into parts: its passages, and the text before, between and after them."""
    text, parts = answer["answer"], list[Part]()
    shown: Format = str
    if answer["refused"]:
        first, *listing = text.partition(BETWEEN)
        text = "".join([" ".join(filter(None, [first, unknown_of(answer)])), *listing])
    else:
        parts.append(Part(unknown_of(answer)))
        shown = _shown if answer["answer_kind"] == "extractive" else str
    if quoted := _quoted(answer):
        before, _, text = text.partition(BETWEEN.join(quoted))
        best = (shown(passage["best"]) for passage in answer["passages"])
        texts = (_labelled(shown(_text(each)), n) for n, each in enumerate(answer["passages"], 1))
        parts += Part(shown(before)), *map(Part, texts, _once(answer), best)
    parts.append(Part(shown(text), best="" if quoted else shown(answer.get("best") or "")))
    return [part for part in parts if part.text] or [Part(NOTHING)]


def notes_of(answer: Json) -> list[str]:
    """Return notes to show after the text: other positions and missing words."""
    notes = list[str]()
    if answer.get("cut_off"):
        notes.append("The answer is cut off at the model's limit of tokens.")
    if not _quoted(answer):
        cited = [_cited(citation, title) for citation, title in _citations(answer)]
        lines, n = list[str](), 0
        for place, same in groupby(cited):
            first, n = n + 1, n + len([*same])
            lines.append(f"[{first}]{f' to [{n}]' if n > first else ''} {place}")
        notes.append("\n".join(lines))
    if unsupported := answer.get("unsupported"):
        notes.append(f"[?] No passage supports: {' '.join(unsupported)}")
    if missing := answer.get("missing"):
        of_summaries = any(source["level"] for source in answer["sources"])
        where = "summaries" if of_summaries else "passages"
        notes.append(f"Not in the {where} found: {', '.join(missing)}")
    return [*filter(None, notes)]


def unknown_of(answer: Json) -> str:
    """Return sentences on documents named by a question that are not in the index."""
    said = list[str]()
    for name, similar in (answer.get("unknown") or {}).items():
        near = f"; similar ids are {', '.join(map(repr, similar))}" if similar else ""
        said.append(f"The index holds no document {name!r}{near}.")
    return " ".join(said)


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one; "(s)" stands for a plural s.

    >>> counted(1, "chunk"), counted(1200, "summary"), counted(2, "word(s) struck out")
    ('1 chunk', '1,200 summaries', '2 words struck out')
    """
    if "(s)" in noun:
        noun = noun.replace("(s)", "s" * (n != 1))
    elif n != 1:
        noun = re.sub("(?<=[^aeiou])y$", "ie", noun) + "s"
    return f"{n:,} {noun}"


def shortened(names: Sequence[str]) -> str:
    """Return the first ten names, and the number of the others.

    >>> shortened([*"abcdefghijkl"])
    'a, b, c, d, e, f, g, h, i, j and 2 more'
    """
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _quoted(answer: Json) -> list[str]:
    """Return the passages as they occur in an answer; none for an overview."""
    quoted = [_labelled(_text(each), n) for n, each in enumerate(answer.get("passages", ()), 1)]
    return quoted if BETWEEN.join(quoted) in answer["answer"] else []


def _text(passage: Json) -> str:
    return "\n".join(filter(None, (passage["lead"], passage["text"])))


def _labelled(text: str, n: int) -> str:
    return f"{text} [{n}]"


def _citations(answer: Json) -> list[tuple[Json, str | None]]:
    """Return each citation with its document's title, or None if unknown."""
    if passages := answer.get("passages"):
        return [(passage["citation"], passage["title"]) for passage in passages]
    return [(each, each.get("title")) for each in answer["citations"]]


def _once(answer: Json) -> Iterator[str]:
    """Yield the position of each passage, without the part it shares with the previous one."""
    above: Json = {}
    for citation, title in _citations(answer):
        if "document" not in citation:
            yield title or ""
        elif citation["document"] != above.get("document"):
            yield _cited(citation, title)
        else:
            shared = (keys for keys in PLACES if all(citation.get(k) == above.get(k) for k in keys))
            common = next(shared, ())
            rest = {key: value for key, value in citation.items() if key not in common}
            yield _cited(rest, title).removeprefix(title or "").strip(" ,;")
        above = citation


def _cited(citation: Json, title: str | None) -> str:
    """Return the position of a citation, its copies, and whether it is unsupported or added."""
    if "document" not in citation:
        return "unknown location"
    first, *more = citation.get("also", ()) or [None]
    also = f"; also in {place_of(first)}" if first else ""
    others = f" and {len(more)} more" if more else ""
    differs = "" if citation.get("supported", True) else ", differs from its passage"
    found = ", found by hierindex" if "node" in citation and citation["by"] != "model" else ""
    return f"{place_of(citation, title)}{also}{others}{differs}{found}"


def _marked(text: str, best: str, plain: Format, strong: Format) -> str:
    """Format a text; the first occurrence of the words `best` is formatted by `strong`."""
    words = r"\s+".join(map(re.escape, best.split()))
    if not words or (found := re.search(words, text)) is None:
        return plain(text)
    return f"{plain(text[: found.start()])}{strong(found[0])}{plain(text[found.end() :])}"


def _shown(text: str) -> str:
    return displayed(text).strip("\n")


def inert(text: str) -> str:
    """Escape a text for HTML."""
    return escape(visible(text, lines=True))


def _block(text: str, style: str) -> str:
    return f'<div dir="auto" style="white-space:pre-line;{style}">{inert(text)}</div>'


def grounding_text(grounding: Json | None) -> str:
    """Describe the check of the sentences that a model wrote; empty without such sentences.

    >>> grounding_text(dict(supported=9, dropped=1, faults=["names not in the sources: Bonn"]))
    '10 sentences by the model: 9 supported, 1 dropped (names not in the sources: Bonn)'
    """
    if grounding is None:
        return ""
    counts = {outcome: n for outcome, n in grounding.items() if outcome != "faults" and n}
    faults = grounding["faults"]
    start = "for example " if len(faults) > MAX_REASONS else ""
    reasons = f" ({start}{'; '.join(faults[:MAX_REASONS])})" if faults else ""
    each = ", ".join(f"{n:,} {outcome}" for outcome, n in counts.items())
    return each and f"{counted(sum(counts.values()), 'sentence')} by the model: {each}{reasons}"
