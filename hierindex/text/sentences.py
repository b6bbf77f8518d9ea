"""Sentences with their positions in a node and in its source documents."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from unicodedata import category

import sentencex

from hierindex.node import Quote
from hierindex.text.blocks import ITEM_MARK, Block, quoted_blocks
from hierindex.text.characters import SURROGATE
from hierindex.text.words import is_abbreviated

MAX_CHARS = 600  # of a sentence; longer ones are cut into pieces
WINDOW = 4 * MAX_CHARS  # of a paragraph that are split at once
GREEK = re.compile("[\u0386-\u03ff]{4}")  # a word, not a letter in a formula
MARK = re.compile(  # of an item, a section or a speaker, which belongs to the sentence after it
    rf"(?:(?i:{ITEM_MARK})|\d{{1,3}}(?:\.\d{{1,3}})+\."
    r"|(?:M(?:r|rs|s|iss)|Dr)\.? [A-Z]{2,}\.)\s{,9}"
)
# Inside a name, between a label and a dash, or before the particle of a Japanese quotation.
UNSPACED = re.compile("[.?!][\u2013\u2014#-&*-Z\\\\-~]|[\u300d\u300f]\u3068")
CLOSING = re.compile("(?:[)\\]}\"'\u00bb\u2019\u201d]|\\*/)+(?:\\s+|$)")
NAME_ALONE = re.compile(r"(?<=\n)\w+\s*")  # of what the next block is about
ASIDE = re.compile(r"\([^()]*(?:\([^()]*\)[^()]*)*[.?!][\"'\u201d\u2019]?\)\s+(?=[^\W\d_a-z])")
SHORT = re.compile(
    r"(?:.*\W)?(?:[Aa]pprox|bzw|evtl|Ft|ggf|inkl|Mio|Mrd|resp|sog|[Vv]gl)\.", re.DOTALL
)
NUMBERED = re.compile(  # what stands before a number
    r"(?:.*\W)?(?:Abb|Abs|Anm|[Aa]pp|[Aa]rts|Bd|[Cc]h(?:s|ap)?|eds?|[Ee]qs?|[Ee]xs?|[Ff]igs|Kap|max|[Pp]aras?"
    r"|[Rr]efs|[Ss]ec(?:s|t)|[Tt]ab|[Vv]ols?)\.",
    re.DOTALL,
)
NUMERAL = re.compile(r"\(?(?:\d|[IVXLC]+\b)")
DAY = re.compile(r"(?:.*\s)?\d{1,2}\.", re.DOTALL)
MONTH = re.compile(
    r"Jan|Feb|M\u00e4r|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|\d\d?\.\s[a-z]"
)  # in German
BLANK = re.compile(r"[^\S\x00-\x7f]")  # of several bytes in UTF-8

# Words, and single characters in scripts without blanks between words.
TOKEN = r"(?u)[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+"


class Excerpt(NamedTuple):
    """The part `text[at:to]` of a child's text; `child` is its index in the group."""

    child: int
    at: int
    to: int


@dataclass(frozen=True)
class Sentence:
    """A sentence of a node: the verbatim part `text[at:to]` of the node's text.

    Attributes
    ----------
    text : str
    at, to : int
        Character offsets in the node's text; `to` is exclusive.
    within : Quote
        The quote of the node that contains the sentence.
    child : int
        Index of the node in its group.
    kind : str
        Kind of the `Block` that contains the sentence, such as "paragraph".
    name : str
        Name before the node's line if the summary is a list; may be "".
    size : float
        Amount of text under the node, which weights the children of a group.
    """

    text: str
    at: int
    to: int
    within: Quote
    child: int = 0
    kind: str = "paragraph"
    name: str = ""
    size: float = 1

    @cached_property
    def quote(self) -> Quote:
        """The quote of the sentence: its positions in the node and in a document."""
        return self.within.part(self.at, self.to)

    @property
    def document(self) -> str | None:
        """Id of the sentence's document; None if unknown."""
        return self.within.source and self.within.source.document

    @property
    def excerpt(self) -> Excerpt:
        """The sentence as an `Excerpt` of its node."""
        return Excerpt(self.child, self.at, self.to)


def split_sentences(
    text: str, quotes: Sequence[Quote] = (), child: int = 0, name: str = "", size: float = 1
) -> list[Sentence]:
    """Split a text into sentences with their sources.

    Parameters
    ----------
    text : str
        In any language. Code is split into paragraphs and tables into rows.
    quotes : Sequence[Quote]
        Positions of parts of the text in documents; without them, sentences have no source.
    child : int
        The index of the text's node in its group.
    name, size : str, float
        The node's name in a list, and the amount of text under it.

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
        Sentence(text[at:to], at, to, quote, child, block.kind, name, size)
        for quote in quotes
        for block in quoted_blocks(text, quote)
        for start, end in _bounds(text, block)
        for at, to in _pieces(text, start, end)
    ]


def tokens(text: str) -> list[str]:
    """Return the words of a text; in scripts without spaces, its single characters.

    >>> tokens("It's 10.30.")
    ['It', 's', '10', '30']
    """
    return re.findall(TOKEN, text)


def stripped(text: str, at: int, to: int) -> tuple[int, int]:
    """Return the bounds of `text[at:to]` without leading and trailing white space.

    >>> stripped(" ab  ", 0, 5)
    (1, 3)
    """
    start = to - len(text[at:to].lstrip())
    return start, start + len(text[start:to].rstrip())


def _bounds(text: str, block: Block) -> Iterable[tuple[int, int]]:
    """Return the bounds of a block's sentences, including blanks at their ends."""
    bounds = block.start, block.end
    return bounds_in_prose(text, *bounds) if block.prose else [bounds]


def bounds_in_prose(text: str, at: int, to: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the sentences of `text[at:to]`, which is treated as one paragraph."""
    return _joined(text, _parts(text, *stripped(text, at, to)))


def _parts(text: str, at: int, to: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the sentences that sentencex finds in `text[at:to]`."""
    # In windows, as unclosed quotation marks cost quadratic time. The last sentence of a window
    # is repeated at the start of the next.
    while at < to:
        end = _cut(text, at, to, WINDOW)
        if mark := MARK.match(text, at, end):  # sentencex does not split items
            yield at, (at := mark.end())
        window = text[at:end]
        if not window.isascii():
            window = SURROGATE.sub("\ufffd", window)  # invalid in UTF-8 and Rust
            window = BLANK.sub(" ", window)  # before an initial, sentencex panics at longer ones
        found = sentencex.segment(_language(window), window)  # together, they are the window
        if end < to and len(found) > 1:
            end -= len(found.pop())
        for part in found:
            yield from _asides(text, at, (at := at + len(part)))
        at = end


def _asides(text: str, at: int, to: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of closing marks, whole sentences in brackets, and what follows them."""
    while aside := CLOSING.match(text, at, to) or ASIDE.match(text, at, to):
        yield at, (at := aside.end())
    if at < to:
        yield at, to


def _language(text: str) -> str:
    """Return "el" for Greek, whose question mark is a semicolon, and "en" for all others."""
    return "el" if not text.isascii() and GREEK.search(text) else "en"


def _joined(text: str, parts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join the parts of a sentence that sentencex has split."""
    start = end = -1
    for at, to in parts:
        if end == at and _goes_on(text, start, at, to):
            end = to
            continue
        if start < end:
            yield start, end
        start, end = at, to
    if start < end:
        yield start, end


def _goes_on(text: str, start: int, at: int, to: int) -> bool:
    """Return whether `text[at:to]` belongs to the sentence `text[start:at]` before it.

    It does in five cases: the earlier text began with a capital and this one does not (after
    abbreviations in languages other than English); no white space is between them; this text
    has only closing marks; it begins with the particle after a Japanese quotation; or only a
    label or an abbreviation is before it.
    """
    if text[at].islower() and _begins_with_a_capital(text, start, at):
        return NAME_ALONE.fullmatch(text, at, to) is None
    if UNSPACED.match(text, at - 1):
        return True
    if MARK.fullmatch(text, start, at) or CLOSING.fullmatch(text, at, to):
        return True
    before = text[max(start, at - 20) : at].rstrip()
    return (
        SHORT.fullmatch(before) is not None
        or (NUMERAL.match(text, at) is not None and NUMBERED.fullmatch(before) is not None)
        or (MONTH.match(text, at) is not None and DAY.fullmatch(before) is not None)
        or is_abbreviated(text, at)
    )


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
    apart = (i for i in range(end, end - most // 2, -1) if not category(text[i]).startswith("M"))
    return next(apart, end)  # before no accent or vowel sign
