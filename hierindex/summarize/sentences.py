"""Sentences with their positions in a node and in its source documents."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from unicodedata import category

import sentencex

from hierindex.record import Quote
from hierindex.summarize.claims import Excerpt
from hierindex.summarize.markup_blocks import split_blocks

MAX_CHARS = 600  # of a sentence; longer ones are cut into pieces
WINDOW = 4 * MAX_CHARS  # of a paragraph that are split at once
GREEK = re.compile("[\u0386-\u03ff]{4}")  # a word, not a letter in a formula
QUOTED = re.compile("[\u300d\u300f]\u3068")  # the end of a Japanese quotation and its particle
NUMBER = re.compile(r"(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)\uff0e]\s{,9}")  # of a list's item
SURROGATE = re.compile("[\ud800-\udfff]")
ZERO_WIDTH_JOINER = "\u200d"

# Words, and single characters in scripts without blanks between words.
TOKEN = r"(?u)[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+"
MIN_WORDS = 4  # of an informative sentence


@dataclass(frozen=True)
class Sentence:
    """A verbatim part of a node's text.

    `quote` holds its positions in the node and in a document, `child` the index of the node in
    its group.
    """

    text: str
    quote: Quote
    child: int = 0

    @property
    def excerpt(self) -> Excerpt:
        """The position in the child."""
        return Excerpt(self.child, self.quote.at, self.quote.to)


def split_sentences(text: str, quotes: Sequence[Quote] = ()) -> list[Sentence]:
    """Split a text into sentences with their sources.

    Parameters
    ----------
    text : str
        In any language. Code is split into paragraphs and tables into rows.
    quotes : Sequence[Quote]
        Positions of parts of the text in documents; without them, sentences have no source.

    Returns
    -------
    list[Sentence]
        In order, stripped, not empty, with at most `MAX_CHARS` characters each.

    Examples
    --------
    >>> [s.text for s in split_sentences("It cost 3.5 dollars.  He left!")]
    ['It cost 3.5 dollars.', 'He left!']
    """
    quotes = quotes or [Quote(0, len(text), None)]
    return [
        Sentence(text[at:to], quote.part(at, to))
        for quote in quotes
        for start, end in _sentences(text[quote.at : quote.to])
        for at, to in _pieces(text, quote.at + start, quote.at + end)
    ]


def split_all(texts: Iterable[tuple[str, Sequence[Quote]]]) -> list[Sentence]:
    """Split the children of a group, given as texts with quotes, into sentences."""
    return [
        replace(sentence, child=i)
        for i, (text, quotes) in enumerate(texts)
        for sentence in split_sentences(text, quotes)
    ]


def telling(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Drop duplicates, headings, numbers and other stubs; keep stubs if all are stubs.

    >>> [s.text for s in telling(split_sentences("Chapter 2. The host was not at home."))]
    ['The host was not at home.']
    """
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.text, sentence)
    distinct = list(first.values())
    return [s for s in distinct if is_telling(s.text)] or distinct


def is_telling(text: str) -> bool:
    """Return whether a sentence has the words of an informative one.

    >>> is_telling("In 1969."), is_telling("The host was out.")
    (False, True)
    """
    return len(re.findall(TOKEN, text)) >= MIN_WORDS


def stripped(text: str, at: int, to: int) -> tuple[int, int]:
    """Return the bounds of `text[at:to]` without leading and trailing blanks.

    >>> stripped(" ab  ", 0, 5)
    (1, 3)
    """
    while at < to and text[at].isspace():
        at += 1
    while to > at and text[to - 1].isspace():
        to -= 1
    return at, to


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the sentences, including blanks at their ends."""
    for at, to, prose in split_blocks(text):
        yield from _joined(text, _parts(text, *stripped(text, at, to))) if prose else [(at, to)]


def _parts(text: str, at: int, to: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the sentences that sentencex finds in `text[at:to]`."""
    # In windows, as unclosed quotation marks cost quadratic time. The last sentence of a window
    # is repeated at the start of the next.
    while at < to:
        end = _cut(text, at, to, WINDOW)
        window = SURROGATE.sub("\ufffd", text[at:end])  # invalid in UTF-8 and Rust
        found = sentencex.get_sentence_boundaries(_language(window), window)
        if end < to and len(found) > 1:
            end = at + found.pop()["start_index"]
        yield from ((at + part["start_index"], at + part["end_index"]) for part in found)
        at = end


def _language(text: str) -> str:
    """Return "el" for Greek, whose question mark is a semicolon, and "en" for all others."""
    return "el" if GREEK.search(text) else "en"


def _joined(text: str, parts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join the parts of a sentence that sentencex has split.

    A part belongs to the one before if that began with a capital and this does not (after
    abbreviations in languages other than English), if it begins with the particle after a
    Japanese quotation, or if the part before is the number of a list item.
    """
    start = end = -1
    capital = False
    for at, to in parts:
        goes_on = (capital and text[at].islower()) or QUOTED.match(text, at - 1)
        if end == at and (goes_on or NUMBER.fullmatch(text, start, end)):
            end = to
            continue
        if start < end:
            yield start, end
        start, end, capital = at, to, _begins_with_a_capital(text, at, to)
    if start < end:
        yield start, end


def _begins_with_a_capital(text: str, at: int, to: int) -> bool:
    return next((text[i] for i in range(at, to) if text[i].isalpha()), "").isupper()


def _pieces(text: str, at: int, to: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of stripped pieces of `text[at:to]` with at most `MAX_CHARS`."""
    while at < to:
        at, to = stripped(text, at, to)
        end = _cut(text, at, to, MAX_CHARS)
        if end > at:
            yield stripped(text, at, end)
        at = end


def _cut(text: str, at: int, to: int, most: int) -> int:
    """Return where to cut `text[at:to]` within `most` characters: at a line, word or character."""
    end = at + most
    if end >= to:
        return to
    if (line := text.rfind("\n", at + most // 2, end)) >= 0:
        return line
    if (blank := max(text.rfind(mark, at + 1, end) for mark in " \t\u3000\n")) >= 0:
        return blank
    return next((i for i in range(end, end - most // 2, -1) if not _is_attached(text, i)), end)


def _is_attached(text: str, at: int) -> bool:
    """Return whether a character combines with the one before, as accents and emoji parts do."""
    return (
        category(text[at]).startswith("M")
        or ZERO_WIDTH_JOINER in text[at - 1 : at + 1]
        or "\U0001f3fb" <= text[at] <= "\U0001f3ff"  # skin tones
    )
