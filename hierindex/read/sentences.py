"""Sentences, rows of tables and lines, of which chunks are made."""

import re
from itertools import pairwise

from hierindex.summarize.sentences import bounds_in_prose

ROW = re.compile(r"^.*\|.*\n?", re.MULTILINE)  # of a table
LINE = re.compile(r".*\n|.+")


def split_stretches(text: str) -> list[str]:
    r"""Split a text into sentences and rows of tables, and a single one of them into lines.

    The parts join to the text.

    >>> split_stretches("It is so. It was.\n| a. | B |")
    ['It is so. ', 'It was.\n', '| a. | B |']
    """
    parts, at = list[str](), 0
    for row in ROW.finditer(text):
        parts += _sentences(text[at : row.start()])
        parts.append(row.group())
        at = row.end()
    parts += _sentences(text[at:])
    if parts == [text]:  # too long for a chunk
        # Not at form feeds: tokenizers drop them and join the words beside them.
        return _sentences(text) if "|" in text else LINE.findall(text)
    return parts


def _sentences(text: str) -> list[str]:
    """Cut a text where all but the first of its sentences begin."""
    # As one paragraph: cuts before the turns of meetings found less (qmsum).
    starts = [at for at, _ in bounds_in_prose(text, 0, len(text))][1:]
    return [text[at:to] for at, to in pairwise([0, *starts, len(text)]) if at < to]
