"""Sentences with their places: of a node, and of the documents behind it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sentencex

from hierindex.record import Quote

MAX_CHARS = 600  # of a sentence; a table or a megabyte without a full stop is cut into such pieces


# Words, and single characters where a script has no blanks between words.
TOKEN = r"(?u)[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+"
MIN_WORDS = 4  # of a sentence that says something by itself


@dataclass(frozen=True)
class Sentence:
    """A verbatim part of a node's text; `quote` gives its place there and in a source."""

    text: str
    quote: Quote


def split_sentences(text: str, quotes: Sequence[Quote] = ()) -> list[Sentence]:
    """Sentences of a text, each with its source as far as the quotes know it.

    Parameters
    ----------
    text : str
        In any language: sentencex knows some 300, and falls back to the marks that most share.
    quotes : Sequence[Quote]
        Where parts of the text stand in documents; without them, a sentence has no source.

    Returns
    -------
    list[Sentence]
        In order; stripped, not blank, at most `MAX_CHARS` characters each.

    Examples
    --------
    >>> [s.text for s in split_sentences("It cost 3.5 dollars.  He left!")]
    ['It cost 3.5 dollars.', 'He left!']
    """
    quotes = quotes or [Quote(0, len(text), None)]
    return [
        Sentence(text[at:to], quote.part(at, to))
        for quote in quotes
        for start, end in _boundaries(text[quote.at : quote.to])
        for at, to in _pieces(text, quote.at + start, quote.at + end)
    ]


def telling(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The distinct sentences that are no headings, numbers or other stubs, if there are any.

    >>> [s.text for s in telling(split_sentences("Chapter 2. The host was not at home."))]
    ['The host was not at home.']
    """
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.text, sentence)
    distinct = list(first.values())
    return [s for s in distinct if len(re.findall(TOKEN, s.text)) >= MIN_WORDS] or distinct


def stripped(text: str, at: int, to: int) -> tuple[int, int]:
    """Bounds of `text[at:to]` without blanks at its ends.

    >>> stripped(" ab  ", 0, 5)
    (1, 3)
    """
    while at < to and text[at].isspace():
        at += 1
    while to > at and text[to - 1].isspace():
        to -= 1
    return at, to


def _boundaries(text: str) -> list[tuple[int, int]]:
    found = sentencex.get_sentence_boundaries("en", text)
    return [(sentence["start_index"], sentence["end_index"]) for sentence in found]


def _pieces(text: str, at: int, to: int) -> Iterator[tuple[int, int]]:
    """Stripped pieces of `text[at:to]`, cut at the last blank before `MAX_CHARS`."""
    while at < to:
        at, to = stripped(text, at, to)
        end = to
        if to - at > MAX_CHARS:
            blank = max(text.rfind(mark, at + 1, at + MAX_CHARS) for mark in ("\n", " "))
            end = blank if blank > at else at + MAX_CHARS
        if end > at:
            yield stripped(text, at, end)
        at = end
