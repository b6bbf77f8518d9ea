"""Running heads and page numbers of PDF files: lines that recur apart from the text."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from hierindex.read.pdf_headings import NO_FONT, Line

EDGE = 4  # outermost lines of a page that may be running heads or feet
RECURRING = 3  # pages
APART = 1.6  # times the line spacing, the least distance of a running head from the text
MAX_HEAD = 300  # characters
MAX_SIZE = 1.3  # times the size of the text
SHOWN = 80  # characters of a line in a note
NOTES = 10
NUMBER = re.compile(r"(?<![\w.,:])(?:\d{1,6}|[ivxlc]{1,8})(?!\w|[.,:]\d)", re.I)
MAX_NUMBERS = 8  # of a line that counts pages
PAGE_WORD = (
    r"(?:pages?|pp?|pg|seite|blatt|p[aá]g(?:ina)?|str(?:ona|ana)?|стр(?:аница)?|sid[ae]|sivu|folio)"
)
AFTER_PAGE_WORD = re.compile(rf"\b{PAGE_WORD}\b[\s.:#№-]*$", re.I)
OF = re.compile(r"\s*(?:/|of|von|de|sur|di|van|av|af|z|из)\s*(\d+)\b", re.I)
PAGE_NUMBER = re.compile(rf"\0-?\d+\0(?:{OF.pattern})?", re.I)  # as it is marked in what recurs


class Furniture(NamedTuple):
    """What recurs of a line: its side, 1 for the top, its height, and its words.

    Its kind is "words", "number" if it is nothing but the page's number, or "doubt" if its other
    numbers differ from page to page: such a line is text but no heading.
    """

    side: int
    y: int
    words: str
    kind: str = "words"


def without_furniture(
    pages: Sequence[list[Line]], labels: Sequence[str]
) -> tuple[list[list[Line]], list[str]]:
    """Leave out running heads, running feet and page numbers.

    A line is one of them only if it is among the outermost lines of most pages, or of most odd
    or most even pages, at one height, with the same words, in hardly a larger font, and apart
    from the text. A number may differ if it is the page's. A line with other numbers is kept
    once, as they may be those of an account or a standard. A page of nothing else is kept.

    Returns
    -------
    list[list[Line]]
        The other lines of each page.
    list[str]
        Which lines were left out, for people.
    """
    with_text = [number for number, page in enumerate(pages) if _shown(page)]
    recurring = _recurring(pages, labels, with_text)
    size, spacing = _size_of_text(pages), _line_spacing(pages)
    apart: dict[int, list[tuple[Line, Furniture]]] = defaultdict(list)
    for number in with_text:
        for side in (1, -1):
            places = [
                (line, list(_keys(line, side, number, labels[number], len(pages))))
                for line in _outermost(pages[number], side)[: EDGE + 1]
            ]
            apart[number] += _apart(places, recurring, MAX_SIZE * size, APART * spacing)
    n_apart = Counter(key for run in apart.values() for _, key in run)
    kept, stated = list(pages), set()
    dropped: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    for number, run in apart.items():
        gone = {}
        for line, key in run:
            if 2 * n_apart[key] <= recurring[key]:
                continue
            words = PAGE_NUMBER.sub("", key.words)
            if any(map(str.isdigit, words)) and words not in stated:
                line.size, line.bold = NO_FONT
                stated.add(words)
            else:
                gone[id(line)] = (key.side, key.words, key.kind), " ".join(line.text.split())
        rest = [line for line in pages[number] if id(line) not in gone]
        if _shown(rest):
            kept[number] = rest
            for place, text in gone.values():
                dropped[place].append(text)
    return kept, _notes(dropped, len(pages))


def _apart(
    places: list[tuple[Line, list[Furniture]]],
    recurring: Mapping[Furniture, int],
    max_size: float,
    min_gap: float,
) -> list[tuple[Line, Furniture]]:
    """Return the outermost lines of a page that recur and are apart from the others."""
    apart: list[tuple[Line, Furniture]] = []
    run: list[tuple[Line, Furniture]] = []
    for i, (line, keys) in enumerate(places[:EDGE]):
        found = next((key for key in keys if key in recurring), None)
        if found is None or line.size >= max_size:
            break
        if found.kind == "doubt":
            line.size, line.bold = NO_FONT
            break
        run.append((line, found))
        gap = abs(line.y - places[i + 1][0].y) if i + 1 < len(places) else 0
        if 0 < min_gap < gap or (found.kind == "number" and i == 0):
            apart, run = apart + run, []
    return apart


def _recurring(
    pages: Sequence[list[Line]], labels: Sequence[str], with_text: list[int]
) -> dict[Furniture, int]:
    """Return what is on most pages, or on most odd or even ones, with the number of its pages."""
    counts: tuple[Counter[Furniture], Counter[Furniture]] = (Counter(), Counter())
    for number in with_text:
        counts[number % 2].update(
            {
                key
                for side in (1, -1)
                for line in _outermost(pages[number], side)[:EDGE]
                for key in _keys(line, side, number, labels[number], len(pages))
            }
        )
    n_odd = sum(number % 2 for number in with_text)
    n_pages = (len(with_text) - n_odd, n_odd)
    return {
        key: n
        for key, n in (counts[0] + counts[1]).items()
        if (n >= RECURRING and 2 * n > len(with_text))
        or any(each[key] >= max(RECURRING, n_pages[i] // 2 + 1) for i, each in enumerate(counts))
    }


def _keys(line: Line, side: int, number: int, label: str, n_pages: int) -> Iterator[Furniture]:
    """Yield a line's words as they are, with the page's number marked, and without numbers."""
    text, y = " ".join(line.text.split()), round(line.y)
    if len(text) > MAX_HEAD:
        return
    yield Furniture(side, y, text)
    for found in [*NUMBER.finditer(text)][:MAX_NUMBERS]:
        if label and found[0].casefold() == label.casefold():
            offset = 0
        elif found[0].isdecimal():
            offset = int(found[0]) - (number + 1)
        else:
            continue
        before, after = text[: found.start()], text[found.end() :]
        total = OF.match(after)
        is_total = total is not None and int(total[1][:9]) == n_pages + offset
        rest = re.sub(rf"(?i)\b{PAGE_WORD}\b", "", before) + (
            after[total.end() :] if total and is_total else after
        )
        bare = not any(map(str.isalnum, rest))
        # Numbers of invoices count as pages do, but beside words, or at the top and from 1001.
        if (
            (bare and (offset <= 0 or side < 0 or is_total))
            or AFTER_PAGE_WORD.search(before)
            or (is_total and offset == 0)
            or (line.number_apart and offset <= 0 and not (before and after))
        ):
            kind = "number" if bare and offset <= 0 else "words"
            yield Furniture(side, y, f"{before}\0{offset}\0{after}", kind)
        if line.number_apart and offset == 0 and not (before and after):  # often a line of its own
            yield Furniture(side, y, (before + after).strip())
    if (words := re.sub(r"\d+", "\0", text)) != text:
        yield Furniture(side, y, words, "doubt")


def _outermost(page: Sequence[Line], side: int) -> list[Line]:
    """Return the lines of a page from its top (1) or from its bottom (-1)."""
    return sorted((line for line in page if line.text.strip()), key=lambda line: -side * line.y)


def _shown(page: Sequence[Line]) -> bool:
    return any(line.text.strip() for line in page)


def _size_of_text(pages: Sequence[Sequence[Line]]) -> float:
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[line.size] += len(line.text) if line.size else 0
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _line_spacing(pages: Sequence[Sequence[Line]]) -> float:
    """Return the most frequent distance of a line from the one above; 0 if there is none."""
    distances: Counter[float] = Counter()
    for page in pages:
        lines = [line for line in page if line.text.strip()]
        for above, line in pairwise(lines):
            if (distance := round(above.y - line.y)) > 0:
                distances[distance] += 1
    return max(distances, key=lambda each: (distances[each], -each), default=0.0)


def _notes(dropped: Mapping[tuple[int, str, str], list[str]], n_pages: int) -> list[str]:
    """Return which lines were left out of how many pages, the most frequent first."""
    notes = []
    for (side, _, kind), lines in sorted(dropped.items(), key=lambda each: -len(each[1])):
        where = f"at the {'top' if side > 0 else 'bottom'} of {len(lines)} of {n_pages} pages"
        text = lines[0] if len(lines[0]) <= SHOWN else f"{lines[0][:SHOWN]}..."
        notes.append(f"page numbers {where}" if kind == "number" else f"a line {where}: {text!r}")
    more = len(notes) - NOTES
    return notes[:NOTES] + ([f"{more} more lines at the edges of pages"] if more > 0 else [])
