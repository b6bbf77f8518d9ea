"""Layout of PDF pages: running heads and page numbers, and headings by outline or by font."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

EDGE = 4  # outermost lines of a page that may be running heads or feet
RECURRING = 3  # pages
APART = 1.6  # times the line spacing, the least distance of a running head from the text
MAX_HEAD = 300  # characters
MAX_SIZE = 1.3  # times the size of the text
SHOWN = 80  # characters of a line in a note
NUMBER = re.compile(r"(?<![\w.,:])(?:\d{1,6}|[ivxlc]{1,8})(?!\w|[.,:]\d)", re.I)
PAGE_WORD = (
    r"\b(?:pages?|pp?|pg|seite|blatt|p[aá]g(?:ina)?|str(?:ona|ana)?|стр(?:аница)?|sid[ae]|sivu|"
    r"folio)\b"
)
AFTER_PAGE_WORD = re.compile(rf"{PAGE_WORD}[\s.:#№-]*$", re.I)
TOTAL = r"\s*(?:/|of|von|de|sur|di|van|av|af|z|из)\s*\d+\b"
PAGE_NUMBER = re.compile(rf"\0-?\d+\0(?:{TOTAL})?", re.I)  # as it is marked in what recurs
BESIDE_NUMBER = re.compile(rf"{PAGE_WORD}|\0{TOTAL}", re.I)
MAX_LINES = 3  # of a heading
MAX_HEADING = 200  # characters
MAX_LEVELS = 6
LARGER = 1.1  # times the size of the text
MUCH = 0.15  # of the characters; the text's font is the largest with as many, a bold one at last
SMALLER = 0.8  # times the size of the text, the least of a bold heading
MAX_HEADINGS = 0.8  # of the lines in a font are headings, or none of them are
OFTEN = 0.2  # of all lines; bold lines that are fewer are headings even beside others that are not
GAP = 1.3  # times the size of a heading, the least distance from the line above
LEADING = 1.7  # times the size of a heading, the most distance of its lines
NO_FONT = (0.0, False)
BULLETS = "•·◦▪*\u2217†-\u2013"  # of list items and footnotes
CONTENTS = 3  # lines with dot leaders on a page of a table of contents
TITLE_NUMBER = re.compile(
    r"^(?:chapter|section|part|appendix)?\s*(?:\d+|[A-Z]|[IVX]+)(?:\.\d+)*[.:)]?\s", re.I
)

Font = tuple[float, bool]
"""The size of a font and whether it is bold."""


@dataclass(slots=True)
class Line:
    """A line of a page, with its height above the lower edge and its font size, in points."""

    text: str
    y: float
    size: float = 0.0
    bold: bool = False
    one_font: bool = True  # whether it ends in the font in which it begins
    in_contents: bool = False  # whether it ended with dot leaders
    number_apart: bool = False  # whether a wide space parts it from a number at its start or end


class Furniture(NamedTuple):
    """The position and words of a line in a page margin, to compare the margins of pages.

    `side` is 1 for the top. `kind` is "words", or "number" if the line is only the page number, or
    "doubt" if it has other numbers that differ from page to page. Such a line is kept as text,
    but is never a heading.
    """

    side: int
    y: int
    words: str
    kind: str = "words"


Edge = Sequence[tuple[Line, Sequence[Furniture]]]
"""The outermost lines of a page on one side, with their possible recurring properties."""


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
    recurring = _recurring(edges)
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


def _recurring(edges: Iterable[tuple[int, Edge]]) -> dict[Furniture, int]:
    """Return the lines on most pages, or on most odd or even ones, with numbers of pages."""
    pages_of: dict[Furniture, set[int]] = defaultdict(set)
    for number, edge in edges:
        for key in (key for _, keys in edge[:EDGE] for key in keys):
            pages_of[key].add(number)
    every = set().union(*pages_of.values())
    odd = {number for number in every if number % 2}
    halves = (every, odd, every - odd)
    return {
        key: len(pages)
        for key, pages in pages_of.items()
        if any(len(pages & each) >= max(RECURRING, len(each) // 2 + 1) for each in halves)
    }


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
    return notes


class Outlined(NamedTuple):
    """An entry of the outline: its level, title, page and, if known, height on the page."""

    level: int
    title: str
    page: int
    y: float | None = None


class Placed(NamedTuple):
    """A heading: its level, page, first line on the page, and number of lines."""

    level: int
    page: int
    line: int
    n_lines: int


def outline_headings(pages: Sequence[Sequence[Line]], outline: Sequence[Outlined]) -> list[Placed]:
    """Find the lines of the pages that contain the words of the outline's entries.

    Returns
    -------
    list[Placed]
        In the order of the pages; empty if fewer than half of the entries, or only one, are found.
    """
    indices: dict[int, dict[str, list[tuple[int, int]]]] = {}
    found: dict[tuple[int, int], Placed] = {}
    for entry in outline:
        for page in (entry.page, entry.page + 1, entry.page - 1):
            if not 0 <= page < len(pages):
                continue
            if page not in indices:
                indices[page] = _by_words(pages[page])
            placed = _find(entry, page, pages[page], indices[page])
            if placed is not None:
                found.setdefault((placed.page, placed.line), placed)
                break
    if len(found) < 2 or 2 * len(found) < len(outline):
        return []
    apart: list[Placed] = []
    for each in sorted(found.values(), key=lambda each: (each.page, each.line)):
        last = apart[-1] if apart else None
        if last is None or (each.page, each.line) >= (last.page, last.line + last.n_lines):
            apart.append(each)
    return apart


def _by_words(page: Sequence[Line]) -> dict[str, list[tuple[int, int]]]:
    """Return the first line and number of lines of each possible title, by its letters."""
    places = defaultdict(list)
    for i in range(len(page)):
        text = ""
        for n in range(1, min(MAX_LINES, len(page) - i) + 1):
            text += page[i + n - 1].text + " "
            if len(text) > MAX_HEADING or (n > 1 and _is_above_heading(page[i], page[i + 1])):
                break
            for words in {letters_of(text), letters_of(TITLE_NUMBER.sub("", text))}:
                places[words].append((i, n))
    return places


def _is_above_heading(line: Line, heading: Line) -> bool:
    """Return whether a line is a page number, which may stand above the first heading of a page."""
    return line.text.strip().isdecimal() and line.size < heading.size


def _find(
    entry: Outlined, number: int, page: Sequence[Line], places: dict[str, list[tuple[int, int]]]
) -> Placed | None:
    """Return the position of an entry on a page."""
    title = letters_of(entry.title)
    if not title:
        return None
    y = entry.y if number == entry.page else None

    def distance(place: tuple[int, int]) -> tuple[float, float, int]:
        line = page[place[0]]
        return (0 if y is None else abs(y - line.y), -line.size, place[1])

    for words in (title, letters_of(TITLE_NUMBER.sub("", entry.title + " "))):
        if words and (candidates := places.get(words)):
            first, n_lines = min(candidates, key=distance)
            return Placed(entry.level, number, first, n_lines)
    return None


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, normalised and in lower case."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def font_headings(pages: Sequence[Sequence[Line]]) -> list[Placed]:
    """Return the short lines in a larger or bolder font than the text, as headings.

    Returns
    -------
    list[Placed]
        Level 1 has the largest font.
    """
    n_characters: Counter[Font] = Counter()
    n_lines: Counter[Font] = Counter()
    for page in pages:
        for line in page:
            n_lines[_font(line)] += 1
            if line.size:
                n_characters[line.size, line.bold] += len(line.text)
    if not n_characters:
        return []
    enough = min(MUCH * n_characters.total(), max(n_characters.values()))
    size, bold = max(
        (font for font, n in n_characters.items() if n >= enough),
        key=lambda font: (not font[1], font[0]),
    )

    def stands_out(font: Font) -> bool:
        bolder = font[1] and not bold and font[0] >= SMALLER * size
        return bolder or font[0] >= LARGER * size

    found: list[tuple[Font, Placed]] = []
    for number, page in enumerate(pages):
        contents = sum(line.in_contents for line in page) >= CONTENTS
        for start, end in _blocks(page):
            lines, font = page[start:end], _font(page[start])
            text = " ".join(line.text.strip() for line in lines)
            if (
                stands_out(font)
                and len(lines) <= MAX_LINES
                and (start == 0 or not 0 < page[start - 1].y - lines[0].y < GAP * lines[0].size)
                and len(text) <= MAX_HEADING
                and any(map(str.isalpha, text))
                and text[0] not in BULLETS
                and text[-1] not in ",;"
                and not (contents and text[-1].isdigit())
            ):
                found.append((font, Placed(0, number, start, len(lines))))
    n_found: Counter[Font] = Counter()
    for font, placed in found:
        n_found[font] += placed.n_lines
    rare = OFTEN * n_lines.total()
    fonts = [
        font
        for font, n in n_found.items()
        if n >= MAX_HEADINGS * n_lines[font] or (font[1] and n_lines[font] <= rare)
    ]
    level = {
        font: min(rank, MAX_LEVELS)
        for rank, font in enumerate(sorted(fonts, reverse=True), start=1)
    }
    return [placed._replace(level=level[font]) for font, placed in found if font in level]


def _blocks(page: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield the bounds of runs of lines in one font, one under the other."""
    start = 0
    for i in range(1, len(page)):
        above, line = page[i - 1], page[i]
        if _font(above) != _font(line) or not 0 < above.y - line.y < LEADING * line.size:
            yield start, i
            start = i
    if page:
        yield start, len(page)


def _font(line: Line) -> Font:
    """Return the font of a line, which may only change if it begins with a digit.

    Headings with code in them change it as well as lines that begin with a bold term.
    """
    one_font = line.one_font or line.text[:1].isdigit()
    return (line.size, line.bold) if one_font and not line.in_contents else NO_FONT
