"""Running heads and page numbers of PDF files: lines that recur apart from the text."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from hierindex.read.pdf_headings import LARGER, Line

EDGE = 4  # outermost lines of a page that may be running heads or feet
RECURRING = 3  # pages
APART = 1.6  # times the line spacing, the least distance of a running head from the text
SHOWN = 80  # characters of a line in a note
NOTES = 10
NUMBER = re.compile(r"(?<![\w.,:])(?:\d{1,6}|[ivxlc]{1,8})(?!\w|[.,:]\d)", re.I)
MAX_NUMBERS = 8  # of a line that counts pages
PAGE_WORD = (
    r"(?:pages?|pp?|pg|seite|blatt|p[aá]g(?:ina)?|str(?:ona|ana)?|стр(?:аница)?|sid[ae]|sivu|folio)"
)
AFTER_PAGE_WORD = re.compile(rf"\b{PAGE_WORD}\b[\s.:#№-]*$", re.I)
OF = re.compile(r"\s*(?:/|of|von|de|sur|di|van|av|af|z|из)\s*(\d+)\b", re.I)


class Furniture(NamedTuple):
    """A line that is left out: its side, 1 for the top, and what recurs of it, with its words."""

    side: int
    words: str
    text: str
    is_number: bool


def without_furniture(
    pages: Sequence[list[Line]], labels: Sequence[str]
) -> tuple[list[list[Line]], list[str]]:
    """Leave out running heads, running feet and page numbers.

    A line is one of them only if it is among the outermost lines of most pages, or of most odd
    or most even pages, at one height, with the same words, in no larger font than the text, and
    apart from it. A number may differ if it is the page's. A page of nothing else is kept.

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
    kept = list(pages)
    dropped: defaultdict[tuple[int, str], dict[int, Furniture]] = defaultdict(dict)
    for number in with_text:
        page = pages[number]
        gone: dict[int, Furniture] = {}
        for side in (1, -1):
            run: list[tuple[Line, Furniture]] = []
            lines = _outermost(page, side)
            for i, line in enumerate(lines[:EDGE]):
                keys = _keys(line, side, number, labels[number], len(pages))
                found = next((each for y, each in keys if (y, each[:2]) in recurring), None)
                if found is None or line.size >= LARGER * size:
                    break
                run.append((line, found))
                inner = lines[i + 1] if i + 1 < len(lines) else None
                gap = 0 if inner is None else abs(line.y - inner.y)
                if (spacing and gap > APART * spacing) or (i == 0 and found.is_number):
                    gone |= {id(each): furniture for each, furniture in run}
        rest = [line for line in page if id(line) not in gone]
        if _shown(rest):
            kept[number] = rest
            for furniture in gone.values():
                dropped[furniture[:2]][number] = furniture
    return kept, _notes(dropped, len(pages))


def _recurring(
    pages: Sequence[list[Line]], labels: Sequence[str], with_text: list[int]
) -> set[tuple[int, tuple[int, str]]]:
    """Return the heights, sides and words that are on most pages, or most odd or even ones."""
    counts: Counter[tuple[int, int, tuple[int, str]]] = Counter()
    for number in with_text:
        keys = {
            (y, each[:2])
            for side in (1, -1)
            for line in _outermost(pages[number], side)[:EDGE]
            for y, each in _keys(line, side, number, labels[number], len(pages))
        }
        counts.update((number % 2, *key) for key in keys)
    n_pages = Counter(number % 2 for number in with_text)

    def is_on_most(y: int, words: tuple[int, str]) -> bool:
        n = [counts[odd, y, words] for odd in (0, 1)]
        return (sum(n) >= RECURRING and 2 * sum(n) > len(with_text)) or any(
            n[odd] >= RECURRING and 2 * n[odd] > n_pages[odd] for odd in (0, 1)
        )

    return {(y, words) for _, y, words in counts if is_on_most(y, words)}


def _keys(
    line: Line, side: int, number: int, label: str, n_pages: int
) -> Iterator[tuple[int, Furniture]]:
    """Yield the height of a line with its words, as they are and with the page's number marked."""
    text, y = " ".join(line.text.split()), round(line.y)
    yield y, Furniture(side, text, text, is_number=False)
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
        # Numbers of invoices count as pages do, but are beside words or larger than the page's.
        if (
            (bare and (offset <= 0 or side < 0 or is_total))
            or AFTER_PAGE_WORD.search(before)
            or (is_total and offset == 0)
            or (line.number_apart and offset <= 0 and not (before and after))
        ):
            yield y, Furniture(side, f"{before}\0{offset}\0{after}", text, bare and offset <= 0)


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


def _notes(dropped: dict[tuple[int, str], dict[int, Furniture]], n_pages: int) -> list[str]:
    """Return which lines were left out of how many pages, the most frequent first."""
    notes = []
    for lines in sorted(dropped.values(), key=len, reverse=True):
        first = next(iter(lines.values()))
        where = f"at the {'top' if first.side > 0 else 'bottom'} of {len(lines)} of {n_pages} pages"
        text = first.text if len(first.text) <= SHOWN else f"{first.text[:SHOWN]}..."
        notes.append(f"page numbers {where}" if first.is_number else f"a line {where}: {text!r}")
    more = len(notes) - NOTES
    return notes[:NOTES] + ([f"{more} more lines at the edges of pages"] if more > 0 else [])
