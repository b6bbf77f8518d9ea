"""Places in a document: their pages and sections."""

import re
from bisect import bisect_left

from llama_index.core.schema import BaseNode, MetadataMode

from hierindex.read.sections import Sections, headings_of
from hierindex.record import (
    PAGE,
    PAGE_BREAK,
    PAGE_LABELS,
    PAGES,
    SECTION,
    Quote,
    Span,
    page_in,
)


class Places:
    """The pages and sections of a document, by the characters of its text.

    Parameters
    ----------
    document : BaseNode
        With the metadata that readers write: pages, their labels, and headings.
    """

    def __init__(self, document: BaseNode) -> None:
        text, metadata = document.get_content(MetadataMode.NONE), document.metadata
        self.sections = Sections(text, [] if SECTION in metadata else headings_of(document))
        self._document, self._section = document.node_id, metadata.get(SECTION)
        self._page, self._label = page_in(metadata)
        breaks = [match.start() for match in re.finditer(PAGE_BREAK, text)]
        self.is_paged = PAGE not in metadata and metadata.get(PAGES) == 1 + len(breaks)
        if self.is_paged:
            self._page, self._label = 1, ""
        labels = metadata.get(PAGE_LABELS) if self.is_paged else None
        self._labels = labels if isinstance(labels, list) else []
        self._breaks = breaks if self.is_paged or isinstance(metadata.get(PAGE), int) else []

    def page(self, start: int) -> int | None:
        """Return the page of a character; None if it is unknown."""
        return None if self._page is None else self._page + bisect_left(self._breaks, start)

    def span(self, start: int, end: int) -> Span:
        """Return a passage with the page, section and anchor of its start."""
        page, label = self.page(start), self._label
        if page is not None and self._labels[page - 1 : page] not in ([], [str(page)]):
            label = str(self._labels[page - 1])
        section, anchor = self.sections.at(start)
        if isinstance(self._section, str):
            section = self._section
        return Span(self._document, start, end, page, section, label, anchor)

    def quotes(self, text: str, start: int) -> tuple[Quote, ...]:
        """Return a quote for each part of a chunk that has one page and one section.

        Parameters
        ----------
        text : str
            Of the chunk.
        start : int
            Of the chunk in the document.
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
