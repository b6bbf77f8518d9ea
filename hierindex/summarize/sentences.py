"""Sentences with their places: of a node, and of the documents behind it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from unicodedata import category

import sentencex

from hierindex.record import Quote
from hierindex.summarize.blocks import split_blocks
from hierindex.summarize.claims import Excerpt

MAX_CHARS = 600  # of a sentence; a table or a megabyte without a full stop is cut into such pieces
WINDOW = 4 * MAX_CHARS  # of a paragraph that is looked at in one go
GREEK = re.compile("[\u0386-\u03ff]{4}")  # a word, not a formula's letter
SAID = re.compile("[\u300d\u300f]\u3068")  # a quotation's end and the particle after it
NUMBER = re.compile(r"(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)\uff0e]\s{,9}")  # of a list's item
SURROGATE = re.compile("[\ud800-\udfff]")
ZERO_WIDTH_JOINER = "\u200d"

# Words, and single characters where a script has no blanks between words.
TOKEN = r"(?u)[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+"
MIN_WORDS = 4  # of a sentence that says something by itself


@dataclass(frozen=True)
class Sentence:
    """A verbatim part of a node's text; `quote` gives its place there and in a source.

    `child` counts the children of a group: which of them the sentence is from.
    """

    text: str
    quote: Quote
    child: int = 0

    @property
    def excerpt(self) -> Excerpt:
        """Its place in its child."""
        return Excerpt(self.child, self.quote.at, self.quote.to)


def split_sentences(text: str, quotes: Sequence[Quote] = ()) -> list[Sentence]:
    """Sentences of a text, each with its source as far as the quotes know it.

    Parameters
    ----------
    text : str
        In any language, or none: code goes by paragraphs, a table by rows.
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
        for start, end in _sentences(text[quote.at : quote.to])
        for at, to in _pieces(text, quote.at + start, quote.at + end)
    ]


def split_all(texts: Iterable[tuple[str, Sequence[Quote]]]) -> list[Sentence]:
    """Sentences of a group's children, given each text with its quotes."""
    return [
        replace(sentence, child=i)
        for i, (text, quotes) in enumerate(texts)
        for sentence in split_sentences(text, quotes)
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


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Bounds of the sentences, blanks at their ends included."""
    for at, to, prose in split_blocks(text):
        yield from _joined(text, _parts(text, *stripped(text, at, to))) if prose else [(at, to)]


def _parts(text: str, at: int, to: int) -> Iterator[tuple[int, int]]:
    """Bounds of what sentencex takes for the sentences of `text[at:to]`.

    Quotation marks that are never closed cost it the square of the time. So it sees a window
    at a time, and the last sentence of a window again at the start of the next.
    """
    while at < to:
        end = _cut(text, at, to, WINDOW)
        window = SURROGATE.sub("\ufffd", text[at:end])  # those are no UTF-8, and not Rust's
        found = sentencex.get_sentence_boundaries(_language(window), window)
        if end < to and len(found) > 1:
            end = at + found.pop()["start_index"]
        yield from ((at + part["start_index"], at + part["end_index"]) for part in found)
        at = end


def _language(text: str) -> str:
    """Greek asks with a semicolon; all others are served by the rules of English and `_joined`."""
    return "el" if GREEK.search(text) else "en"


def _joined(text: str, parts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts, with those joined that are one sentence.

    A sentence that began with a capital is not over where the next would begin without one:
    there was an abbreviation of another language than English. In Japanese, not where a
    particle follows what somebody said. And the number of a list's item is no sentence.
    """
    start = end = -1
    capital = False
    for at, to in parts:
        goes_on = (capital and text[at].islower()) or SAID.match(text, at - 1)
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
    """Bounds of stripped pieces of `text[at:to]`, of at most `MAX_CHARS`."""
    while at < to:
        at, to = stripped(text, at, to)
        end = _cut(text, at, to, MAX_CHARS)
        if end > at:
            yield stripped(text, at, end)
        at = end


def _cut(text: str, at: int, to: int, most: int) -> int:
    """Where the first `most` characters of `text[at:to]` end, at a line, word, or character."""
    end = at + most
    if end >= to:
        return to
    if (line := text.rfind("\n", at + most // 2, end)) >= 0:
        return line
    if (blank := max(text.rfind(mark, at + 1, end) for mark in " \t\u3000\n")) >= 0:
        return blank
    return next((i for i in range(end, end - most // 2, -1) if not _is_attached(text, i)), end)


def _is_attached(text: str, at: int) -> bool:
    """Whether a character is part of the one before: an accent, or more of an emoji."""
    return (
        category(text[at]).startswith("M")
        or ZERO_WIDTH_JOINER in text[at - 1 : at + 1]
        or "\U0001f3fb" <= text[at] <= "\U0001f3ff"  # skin tones
    )
