"""Sentences, rows of tables and lines, of which chunks are made."""

import re
from collections.abc import Iterable
from itertools import pairwise

from hierindex.summarize.sentences import bounds_in_prose, sentence_bounds

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
        parts += _cut_at(text[at : row.start()])
        parts.append(row.group())
        at = row.end()
    parts += _cut_at(text[at:])
    if parts != [text]:
        return parts
    if "|" in text:  # a row that is too long for a chunk
        return _parts(text, bounds_in_prose(text, 0, len(text)))
    # Not at form feeds: tokenizers drop them and join the words beside them.
    return LINE.findall(text)


def _cut_at(text: str) -> list[str]:
    return _parts(text, sentence_bounds(text))


def _parts(text: str, bounds: Iterable[tuple[int, int]]) -> list[str]:
    """Cut a text where all but the first of its sentences begin."""
    starts = [at for at, _ in bounds][1:]
    return [text[at:to] for at, to in pairwise([0, *starts, len(text)]) if at < to]
