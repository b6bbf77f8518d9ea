"""Headings of PDF files: from the outline, or from the fonts of lines."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MAX_LINES = 3  # of a heading
MAX_HEADING = 200  # characters
MAX_LEVELS = 6
NEAR = 60  # points below the place an outline's entry names
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
NUMBER = re.compile(
    r"(?:chapter|section|part|appendix)?\s*(?:\d+|[A-Z]|[IVX]+)(?:\.\d+)*[.:)]?\s", re.I
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


class Outlined(NamedTuple):
    """An entry of the outline: its level, title, page and, if known, height on the page."""

    level: int
    title: str
    page: int
    y: float | None = None


class Placed(NamedTuple):
    """A heading: its level, page, first line on the page, and numbers of lines and characters.

    It fills its lines completely if `n_characters` is 0.
    """

    level: int
    page: int
    line: int
    n_lines: int = 1
    n_characters: int = 0


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
    return _apart(sorted(found.values(), key=lambda each: (each.page, each.line)))


def _by_words(page: Sequence[Line]) -> dict[str, list[tuple[int, int]]]:
    """Return the first line and number of lines of each possible title, by its letters."""
    places = defaultdict(list)
    for i in range(len(page)):
        text = ""
        for n in range(1, min(MAX_LINES, len(page) - i) + 1):
            text += page[i + n - 1].text + " "
            if len(text) > MAX_HEADING or (n > 1 and _is_above_heading(page[i], page[i + 1])):
                break
            for words in {letters_of(text), letters_of(_unnumbered(text))}:
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

    for words in (title, letters_of(_unnumbered(entry.title + " "))):
        if words and (candidates := places.get(words)):
            first, n_lines = min(candidates, key=distance)
            return Placed(entry.level, number, first, n_lines)
    for i, near in enumerate(page):
        begins = y is not None and -NEAR < near.y - y < near.size and len(title) > 3
        if begins and letters_of(near.text).startswith(title):
            return Placed(entry.level, number, i, 1, _end_of(title, near.text))
    return None


def _apart(placed: Sequence[Placed]) -> list[Placed]:
    """Remove headings that begin within the previous one."""
    apart: list[Placed] = []
    for each in placed:
        last = apart[-1] if apart else None
        if last is None or (each.page, each.line) >= (last.page, last.line + last.n_lines):
            apart.append(each)
    return apart


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, normalised and in lower case."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _unnumbered(text: str) -> str:
    found = NUMBER.match(text)
    return text[found.end() :] if found else text


def _end_of(letters: str, text: str) -> int:
    """Return the number of characters of a text that contain the letters it begins with."""
    at = 0
    for i, character in enumerate(text):
        at += len(letters_of(character))
        if at >= len(letters):
            return i + 1
    return len(text)


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
