"""The content of an HTML page: its lines without those around it."""

import re
from collections.abc import Sequence
from itertools import groupby

from hierindex.read.html_elements import ARTICLE, CHROME, CONTENTS, LINKED, MAIN, UNSEEN
from hierindex.read.html_tables import Line

NOTICES = re.compile(
    r"\W*(?:©|\(c\) (?:copyright )?\d{4}|copyright ?(?:©|\(c\)|\d{4}|$)|all rights reserved|"
    r"(?:powered|built|created|generated|hosted|theme|design(?:ed)?) (?:by|using|with|on)\b|"
    r"(?:back to )?top$|(?:skip|jump) to )",
    re.I,
)
"""Lines of headers and footers that are no content."""
SENTENCE_ENDS = tuple(".!?\u2026\u3002\uff01\uff1f")
MARKED = re.compile(r"\[?\(?\w{1,3}[\]).] |[*†‡§]")  # as notes are
PROSE = 40  # characters; navigation has shorter lines, or links
LABEL = 12  # bytes; a shorter word is a label


def main_content(lines: list[Line], n_articles: int = 0) -> list[Line]:
    """Return the lines of the content; all lines if there are no others than navigation.

    Content is what is not known to be navigation. Of headers, footers and asides, and of what is
    outside of `main` (or of `article` elements with most of the text), lines of links to other
    pages are left out, and all if there are only single words beside them.
    """
    around = CHROME | CONTENTS | UNSEEN
    content = [line for line in lines if not line.inside & around]
    for kind in (UNSEEN, CHROME):  # most is not there, unless by script or mistake
        prose = [x.text for x in lines if x.inside & (around | LINKED) == kind]
        if sum(len(x) for x in prose if len(x) > PROSE) > sum(len(x.text) for x in content):
            around = around & ~kind | LINKED
            content = [x for x in lines if not x.inside & around]
    landmark, is_sure = _landmark(content, n_articles)
    top = min((line.level for line in content if line.level), default=0)
    kept = []
    for (region, inside), group in groupby(content, lambda x: (x.region, x.inside & landmark)):
        part = [*group]
        if region or inside != landmark:
            part = [x for x in part if not x.inside & LINKED and not NOTICES.match(x.text)]
            if not any(_says(line, top) for line in part):
                continue
            if inside != landmark and is_sure:
                part = [x for x in part if x.level == top or _is_sentence(x.text)]
        kept += part
    return kept or content or lines


def _landmark(content: Sequence[Line], n_articles: int) -> tuple[int, bool]:
    """Return MAIN or ARTICLE if such elements have most of the text, and whether all is there."""
    lengths = [(line.inside, len(line.text)) for line in content if not line.inside & LINKED]
    n = sum(length for _, length in lengths)
    for kind in (MAIN, ARTICLE):
        within = sum(length for inside, length in lengths if inside & kind)
        if 2 * within >= max(n, 1):
            return kind, kind == MAIN or n_articles == 1
    return 0, False


def _is_sentence(text: str) -> bool:
    is_note = MARKED.match(text) is not None
    return is_note or len(text) > PROSE or text.endswith(SENTENCE_ENDS)


def _says(line: Line, top: int) -> bool:
    """Return whether a line beside the main content has text, or is a heading of the page."""
    if line.level:
        return line.level == top
    is_long = len(line.text.encode("utf-8", "replace")) >= LABEL
    return is_long or len(line.text.split()) > 1 or line.text.endswith("!")
