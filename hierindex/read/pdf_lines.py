"""Lines of PDF files: removal of running heads and page numbers, and of hyphens at line ends."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from hierindex.read.pdf_headings import NO_FONT, Line
from hierindex.read.text import counted

EDGE = 4  # outermost lines of a page that may be running heads or feet
RECURRING = 3  # pages
APART = 1.6  # times the line spacing, the least distance of a running head from the text
MAX_HEAD = 300  # characters
MAX_SIZE = 1.3  # times the size of the text
SHOWN = 80  # characters of a line in a note
NOTES = 10
NUMBER = re.compile(r"(?<![\w.,:])(?:\d{1,6}|[ivxlc]{1,8})(?!\w|[.,:]\d)", re.I)
PAGE_WORD = (
    r"\b(?:pages?|pp?|pg|seite|blatt|p[aá]g(?:ina)?|str(?:ona|ana)?|стр(?:аница)?|sid[ae]|sivu|"
    r"folio)\b"
)
AFTER_PAGE_WORD = re.compile(rf"{PAGE_WORD}[\s.:#№-]*$", re.I)
TOTAL = r"\s*(?:/|of|von|de|sur|di|van|av|af|z|из)\s*\d+\b"
PAGE_NUMBER = re.compile(rf"\0-?\d+\0(?:{TOTAL})?", re.I)  # as it is marked in what recurs
BESIDE_NUMBER = re.compile(rf"{PAGE_WORD}|\0{TOTAL}", re.I)

Edge = Sequence[tuple[Line, Sequence["Furniture"]]]
"""The outermost lines of a page on one side, with their possible recurring properties."""
HYPHEN = "\ufffe"  # how PDFium reads a hyphen with the line end after it
CONTROLS = dict(
    enumerate(
        [*"ff fi".split(), "", *"ffi ffl “ ” „ « » \u2013 —".split(), "", "", "\u0131", "\u0237",
         *"ff fi fl ffi ffl".split()],
        start=0x0B,
    )
)  # fmt: skip
"""Letters of LaTeX's fonts where others have control characters: OT1 to \\x0f, then T1 (Cork)."""
LATIN, CONTROL = r"[0-9A-Za-z\u00c0-\u024f]", r"[\x0b\x0c\x0e-\x1f]+"
BESIDE_LATIN = re.compile(rf"(?<={LATIN}|[.,]){CONTROL}|{CONTROL}(?={LATIN})")
LETTERS = dict(enumerate("ff fi fl ffi ffl st st".split(), start=0xFB00))
LETTERS |= dict.fromkeys(b"\f\r\n", " ") | dict.fromkeys(b"\0\x02", "")
WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
AROUND = 100  # characters beside a hyphen that are looked at
LAST, FIRST = re.compile(r"[^\W_]*$"), re.compile(r"[^\W_]*")
ADDRESS = re.compile(r"[@/\\_]|\w[.:]\w")


class Furniture(NamedTuple):
    """The position and words of a line in a page margin, to compare the margins of pages.

    `side` is 1 for the top. `kind` is "words", or "number" if the line is only the page number, or
    "doubt" if it has other numbers that differ from page to page. A line in doubt is kept as text,
    but is no heading.
    """

    side: int
    y: int
    words: str
    kind: str = "words"


def without_furniture(
    pages: Sequence[list[Line]], labels: Sequence[str]
) -> tuple[list[list[Line]], list[str]]:
    """Remove running heads, running feet and page numbers.

    A line is removed only if it meets four conditions. It is among the outermost lines of most
    pages, or of most odd or most even pages. It has the same height and the same words there. Its
    font is hardly larger than that of the text. And it is at a distance from the text. Page numbers
    may differ. A line with other numbers is kept once, because it may be the number of an account
    or a standard. A page with no other text is kept.

    Returns
    -------
    list[list[Line]]
        The remaining lines of each page.
    list[str]
        Descriptions of the removed lines, for people.
    """
    edges: list[tuple[int, Edge]] = [
        (number, _edge(page, side, number, labels[number]))
        for number, page in enumerate(pages)
        for side in (1, -1)
    ]
    recurring, counting = _recurring(edges)
    for _, edge in edges:
        for line, keys in edge:
            if not counting.isdisjoint(keys):
                line.size, line.bold = NO_FONT
    lines = [[line for line in page if line.text.strip()] for page in pages]
    max_size = MAX_SIZE * _most_common(line.size for page in lines for line in page if line.size)
    steps = (round(above.y - line.y) for page in lines for above, line in pairwise(page))
    min_gap = APART * _most_common(step for step in steps if step > 0)
    found = [(n, _apart(edge, recurring, max_size, min_gap)) for n, edge in edges]
    n_apart = Counter(key for _, run in found for _, key in run)
    kept, stated = list(pages), set[str]()
    dropped: dict[Furniture, list[str]] = defaultdict(list)
    for number, run in found:
        gone = {}
        for line, key in run:
            if 2 * n_apart[key] <= recurring[key]:
                continue
            words = PAGE_NUMBER.sub("", key.words)
            if any(map(str.isdigit, words)) and words not in stated:
                line.size, line.bold = NO_FONT
                stated.add(words)
            else:
                gone[id(line)] = key._replace(y=0), " ".join(line.text.split())
        rest = [line for line in kept[number] if id(line) not in gone]
        if any(line.text.strip() for line in rest):
            kept[number] = rest
            for key, text in gone.values():
                dropped[key].append(text)
    return kept, _notes(dropped, len(pages))


def _edge(page: Sequence[Line], side: int, number: int, label: str) -> Edge:
    """Return the lines of a page from its top (1) or bottom (-1), one more than may be removed."""
    lines = sorted((line for line in page if line.text.strip()), key=lambda line: -side * line.y)
    return [(line, [*_keys(line, side, number, label)]) for line in lines[: EDGE + 1]]


def _recurring(edges: Iterable[tuple[int, Edge]]) -> tuple[dict[Furniture, int], set[Furniture]]:
    """Return the lines on most pages, or on most odd or even ones, with numbers of pages.

    Also return lines on consecutive pages that differ only in numbers; they are no headings.
    """
    pages_of: dict[Furniture, set[int]] = defaultdict(set)
    for number, edge in edges:
        for key in (key for _, keys in edge[:EDGE] for key in keys):
            pages_of[key].add(number)
    every = set().union(*pages_of.values())
    odd = {number for number in every if number % 2}
    recurring, counting = dict[Furniture, int](), set[Furniture]()
    for key, pages in pages_of.items():
        halves = (every, odd, every - odd)
        if any(len(pages & each) >= max(RECURRING, len(each) // 2 + 1) for each in halves):
            recurring[key] = len(pages)
        n_followed = sum(bool(pages & {number + 1, number + 2}) for number in pages)
        if key.kind == "doubt" and n_followed >= RECURRING:
            counting.add(key)
    return recurring, counting


def _apart(
    edge: Edge, recurring: Mapping[Furniture, int], max_size: float, min_gap: float
) -> list[tuple[Line, Furniture]]:
    """Return the outermost lines of a page that recur and are apart from the others."""
    apart: list[tuple[Line, Furniture]] = []
    run: list[tuple[Line, Furniture]] = []
    for i, (line, keys) in enumerate(edge[:EDGE]):
        found = next((key for key in keys if key in recurring), None)
        if found is None or line.size >= max_size:
            break
        if found.kind == "doubt":
            line.size, line.bold = NO_FONT
            break
        run.append((line, found))
        gap = abs(line.y - edge[i + 1][0].y) if i + 1 < len(edge) else 0
        if 0 < min_gap < gap or (found.kind == "number" and i == 0):
            apart, run = apart + run, []
    return apart


def _keys(line: Line, side: int, number: int, label: str) -> Iterator[Furniture]:
    """Yield a line's words unchanged, with the page's number marked, and without numbers."""
    text, y = " ".join(line.text.split()), round(line.y)
    if len(text) > MAX_HEAD:
        return
    yield Furniture(side, y, text)
    for found in NUMBER.finditer(text):
        is_label = found[0].casefold() == label.casefold()
        if not (is_label or found[0].isdecimal()):
            continue
        offset = 0 if is_label else int(found[0]) - number - 1
        before, after = text[: found.start()], text[found.end() :]
        is_alone = not any(map(str.isalnum, BESIDE_NUMBER.sub("", f"{before}\0{after}")))
        is_apart = line.number_apart and not (before and after)
        # Numbers of invoices count as pages do, but beside words, or at the top and from 1001.
        is_pages = ((is_alone or is_apart) and offset <= 0) or (is_alone and side < 0)
        if is_pages or AFTER_PAGE_WORD.search(before):
            kind = "number" if is_alone and offset <= 0 else "words"
            yield Furniture(side, y, f"{before}\0{offset}\0{after}", kind)
        if is_apart and offset == 0:  # often a line of its own
            yield Furniture(side, y, (before + after).strip())
    if (words := re.sub(r"\d+", "\0", text)) != text:
        yield Furniture(side, y, words, "doubt")


def _most_common(values: Iterable[float]) -> float:
    """Return the most frequent value; 0 if there is none."""
    return next((value for value, _ in Counter(values).most_common(1)), 0.0)


def _notes(dropped: Mapping[Furniture, list[str]], n_pages: int) -> list[str]:
    """Return notes on removed lines and their numbers of pages, the most frequent first."""
    notes = []
    for key, lines in sorted(dropped.items(), key=lambda each: -len(each[1])):
        where = f"at the {'top' if key.side > 0 else 'bottom'} of {len(lines)} of {n_pages} pages"
        text = lines[0] if len(lines[0]) <= SHOWN else f"{lines[0][:SHOWN]}..."
        is_number = key.kind == "number"
        notes.append(f"page numbers {where}" if is_number else f"a line {where}: {text!r}")
    more = len(notes) - NOTES
    rest = [counted(more, "more line(s) at the edges of pages")] if more > 0 else []
    return notes[:NOTES] + rest


def with_letters(text: str) -> str:
    """Return a line with letters instead of ligatures, and without control characters."""
    return BESIDE_LATIN.sub(lambda found: found[0].translate(CONTROLS), text).translate(LETTERS)


class Vocabulary:
    """The words of a document that are not divided at line ends."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._counts: Counter[str] = Counter()
        for line in lines:
            for part in line.casefold().split():
                for word in WORD.findall(part) if HYPHEN not in part else ():
                    self._counts.update({word, *re.split(r"[-\u2010]", word)})

    def undivided(self, text: str) -> str:
        """Join the words of a line that line ends divide.

        The hyphen is kept next to digits, in addresses, before capital letters, and if the document
        contains the two parts but not the joined word.
        """
        return re.sub(HYPHEN, lambda found: "-" * self._is_hyphen(text, found.start()), text)

    def _is_hyphen(self, text: str, at: int) -> bool:
        """Return whether a hyphen in a line belongs to the word."""
        before, after = text[max(0, at - AROUND) : at], text[at + 1 : at + AROUND]
        left, right = LAST.findall(before)[0], FIRST.findall(after)[0]
        if not (left and right and (left + right).isalpha()):
            return True
        first, second = left.casefold(), right.casefold()
        n_joined, n_kept = (self._counts[first + between + second] for between in ("", "-"))
        if n_joined or n_kept:
            return n_kept > n_joined
        if right[0].isupper() or (len(left) > 1 and left.isupper()):
            return True
        if ADDRESS.search(before.split()[-1] + after.split()[0]):
            return True
        is_compound = before[: -len(left)].endswith(("-", "\u2010"))
        return first in self._counts and (is_compound or second in self._counts)
