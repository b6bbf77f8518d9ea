"""Sections, into which headings divide a document, and pages."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from llama_index.core.schema import BaseNode, MetadataMode

from hierindex.node import (
    PAGE,
    PAGE_BREAK,
    PAGE_LABELS,
    PAGES,
    SECTION,
    TITLES_BETWEEN,
    Heading,
    Quote,
    Span,
    headings_in,
    page_in,
)
from hierindex.text.words import LANGUAGE, known_language

MAX_STEP = 100  # characters of a title in a path
MAX_PATH = 300  # characters; each chunk and each of its quotes store the path
BEGINNING = 10_000  # characters of which a document's language is found
LINE = re.compile(r"[^\W_].*")  # with a letter or digit


def headings_of(document: BaseNode) -> list[Heading]:
    """Return the headings in a document's metadata that are inside its text, sorted by start."""
    end = len(document.get_content(MetadataMode.NONE))
    inside = (h for h in headings_in(document.metadata) if 0 <= h.start < end)
    return sorted(inside, key=lambda heading: heading.start)


def split_at_headings(
    text: str, headings: Sequence[Heading], is_short: Callable[[str], bool]
) -> Iterator[str]:
    r"""Split a text before headings, so that each part begins with a heading.

    A short part also includes the following sections below the same heading.

    Parameters
    ----------
    text : str
    headings : sequence of Heading
    is_short : callable
        Whether a part is too short to stand alone.

    Yields
    ------
    str
        The parts; joined, they are the text.

    Examples
    --------
    >>> headings = [Heading(1, "A", 0), Heading(2, "B", 4), Heading(1, "C", 16)]
    >>> list(split_at_headings("# A\n## B\nText.\n\n# C\nMore.", headings, lambda t: len(t) < 9))
    ['# A\n## B\nText.\n\n', '# C\nMore.']
    """
    start, level = 0, 0  # 0: text before the first heading, which all sections may continue
    for heading in headings:
        part = text[start : heading.start]
        if not part.strip():
            level = heading.level
        elif heading.level < level or not is_short(part):
            yield part
            start, level = heading.start, heading.level
    yield text[start:]


class Sections:
    """The sections of a document, looked up by character offset.

    Parameters
    ----------
    text : str
    headings : sequence of Heading
    """

    def __init__(self, text: str, headings: Sequence[Heading]) -> None:
        starts = [heading.start for heading in headings]
        places = [*zip(_paths(headings), (heading.anchor for heading in headings), strict=True)]
        for i in reversed(range(len(headings) - 1)):
            lines = islice(LINE.finditer(text, starts[i], starts[i + 1]), 2)
            if headings[i].level < headings[i + 1].level and len(list(lines)) < 2:
                places[i] = places[i + 1]  # a heading without text of its own
        first = [i for i in range(len(places)) if not i or places[i] != places[i - 1]]
        self._starts = [starts[i] for i in first]
        self._places = [places[i] for i in first]  # path and anchor

    def at(self, start: int) -> tuple[str, str]:
        """Return the path of titles above an offset and the nearest anchor before it."""
        i = bisect_right(self._starts, start)
        return self._places[i - 1] if i else ("", "")

    def starts(self, start: int, end: int) -> list[int]:
        """Return the starts of the sections inside `text[start:end]`, except at `start`."""
        return self._starts[bisect_right(self._starts, start) : bisect_left(self._starts, end)]

    def paths(self, start: int, end: int) -> list[str]:
        """Return the title paths of all sections of `text[start:end]`.

        Text before the first heading is in no section. It has an empty path, which is returned only
        if there is no other.
        """
        first = max(0, bisect_right(self._starts, start) - 1)
        return [path for path, _ in self._places[first : bisect_left(self._starts, end)]]


def _paths(headings: Sequence[Heading]) -> Iterator[str]:
    """Yield the path of each heading: the titles above it and its own, joined."""
    above: list[Heading] = []
    for heading in headings:
        above = [*(each for each in above if each.level < heading.level), heading]
        path = ""
        for each in above:
            title = each.title[:MAX_STEP].replace(TITLES_BETWEEN, " > ")
            longer = f"{path}{TITLES_BETWEEN}{title}" if path else title
            if len(longer) > MAX_PATH:
                break
            path = longer
        yield path


class Places:
    """The pages and sections of a document, looked up by character offset, and its language.

    Parameters
    ----------
    document : BaseNode
        Document with the metadata written by readers: pages, their labels, and headings.

    Attributes
    ----------
    language : str
        Code of the language; "" if it is unknown, or already in the metadata.
    """

    def __init__(self, document: BaseNode) -> None:
        text, metadata = document.get_content(MetadataMode.NONE), document.metadata
        self.sections: Sections = Sections(
            text, [] if SECTION in metadata else headings_of(document)
        )
        self._document, self._section = document.node_id, metadata.get(SECTION)
        self._page, self._label = page_in(metadata)
        breaks = [match.start() for match in re.finditer(PAGE_BREAK, text)]
        self.is_paged = PAGE not in metadata and metadata.get(PAGES) == 1 + len(breaks)
        if self.is_paged:
            self._page, self._label = 1, ""
        labels = metadata.get(PAGE_LABELS) if self.is_paged else None
        self._labels = labels if isinstance(labels, list) else []
        self.language: str = "" if LANGUAGE in metadata else known_language(text[:BEGINNING])
        self._breaks = breaks if self.is_paged or isinstance(metadata.get(PAGE), int) else []

    def page(self, start: int) -> int | None:
        """Return the page at an offset, or None if unknown."""
        return None if self._page is None else self._page + bisect_left(self._breaks, start)

    def span(self, start: int, end: int) -> Span:
        """Return the span of a passage, with the page, section and anchor of its start."""
        page, label = self.page(start), self._label
        if page is not None and self._labels[page - 1 : page] not in ([], [str(page)]):
            label = str(self._labels[page - 1])
        section, anchor = self.sections.at(start)
        if isinstance(self._section, str):
            section = self._section
        return Span(self._document, start, end, page, section, label, anchor)

    def quotes(self, text: str, start: int) -> tuple[Quote, ...]:
        """Return the quotes of a chunk: one for each run of text on one page and in one section.

        Parameters
        ----------
        text : str
            Text of the chunk.
        start : int
            Offset of the chunk in the document.
        """
        end = start + len(text)
        inside = slice(bisect_left(self._breaks, start), bisect_left(self._breaks, end))
        cuts = [(at, at + 1) for at in self._breaks[inside]]  # without the page break
        cuts += [(at, at) for at in self.sections.starts(start, end)]
        starts = [start, *(after for _, after in sorted(cuts))]
        ends = [*(before for before, _ in sorted(cuts)), end]
        return tuple(
            Quote(at - start, to - start, self.span(at, to))
            for at, to in zip(starts, ends, strict=True)
            if text[at - start : to - start].strip()
        )
