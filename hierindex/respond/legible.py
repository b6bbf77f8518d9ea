"""Sentences and lines to quote, and what each of them cannot be read without."""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arrays import Ints1d
from hierindex.node import Quote
from hierindex.text.blocks import ITEM_MARK, Block, split_blocks
from hierindex.text.sentences import MIN_WORDS, Sentence, split_sentences, stripped, tokens

LABEL = re.compile(  # of a speaker, a note, a claim
    r"\W{0,3}[^\W\d_a-z][\w.'\u2019]*(?: [\w.'\u2019]+){,4}(?::|[.:]?\s?(?:--|\u2014))\s?\S"
)
ITEM = re.compile(rf"\s*{ITEM_MARK}\s")
MARKED = re.compile(rf"\s*(?:{ITEM_MARK}|#{{1,6}})\s")  # an item or a heading
ROW = re.compile(r"\s*[|+]|\s*\S[^\t\n]*\t")
RULE = re.compile(r"[\s|:+=`~-]*")  # below the head of a table, or around code
LAYOUT = re.compile(  # commands of LaTeX, and lines of an index of names
    r"(?:\\(?:begin|caption|centering|end|includegraphics|label)\b[^\n]*\s*)+"
    r"|.*\bVol\.\s\w+,\sp+\.\s?\d[\d, -]*\.?"
)
ANNOUNCES = (":", "\uff1a")
END = re.compile(  # the marks of many scripts, with closing marks and notes; Thai and Lao have none
    r"(?:[.!?\u2026\u0589\u061f\u06d4\u0964\u0965\u0e01-\u0eff\u104b\u1362\u3002\uff01\uff0e\uff1f\uff61]"
    r"|(?<=[\u0386-\u03ff]);)"
    r"(?:[\"'*_`)\]>\u00ab\u00bb\u2018-\u201d\u300b\u300d\u300f\uff09\u00b9\u00b2\u00b3]|\[\^?\d+\])*$"
)
REFERENCE = re.compile(  # links, notes and places in brackets
    r"!?\[[^\]]*\](?:\([^)\s]*\))?|\([^()]*[^().!?]\)|<?\w+://\S+"
)
LEADER = re.compile(  # dots, to a page or a price
    r"(?<!\.)(?<!\.\s)(?:\.{4,}|\.?(?:\s\.){4,})\s*(\S*)$", re.MULTILINE
)
LOWER = re.compile(r"(?<!\w)[^\W\d_A-Z]\w{3}")  # a word that is not small only in a title
COLUMNS = re.compile(r"\s{2,}"), re.compile(r"\s+")
BLOCK = 200  # characters of lines that are quoted together, as an address
MIN_TOKENS = 3  # of a sentence
WRAPPED = 40  # characters of a line that goes on in the next, at least
OPENING = "\"'([*_\u201c\u2018\u2014-"
REFERS = re.compile(  # to the sentence before
    r"(?:this|that|these|those|it|its|he|his|she|her|they|their|such|so|thus|then|therefore"
    r"|however|but|and|or|also|instead|otherwise|er|sie|es|dies\w*|jen\w*|sein\w*|ihr\w*|dann"
    r"|deshalb|daher|jedoch|aber|auch)\b|[\u4ed6\u5979\u5b83\u8fd9\u90a3\u6b64]",
    re.IGNORECASE,
)

Texts = Iterable[tuple[str, Sequence[Quote]]]
"""The texts of nodes with their quotes."""


class Pool(NamedTuple):
    """The sentences of nodes in order, and how they depend on each other.

    `own` tells which sentences say something on their own, `joined` which directly follow the one
    before, `needs` lists the sentences without which each cannot be read, and `paragraph` numbers
    the paragraphs of all nodes, each with the headings above it.
    """

    texts: list[str]
    sentences: list[Sentence]
    own: NDArray[np.bool_]
    joined: NDArray[np.bool_]
    needs: list[tuple[int, ...]]
    paragraph: Ints1d

    @classmethod
    def of(cls, texts: Texts) -> "Pool":
        """Split texts into sentences, and lists and tables into lines."""
        read, sentences, own = list[str](), list[Sentence](), list[bool]()
        joined, needs, begins = list[bool](), list[tuple[int, ...]](), list[bool]()
        for child, (text, quotes) in enumerate(texts):
            read.append(text)
            for each, says, before, first in _read(text, *_split(text, quotes, child)):
                begins.append(first)
                own.append(says)
                joined.append(bool(sentences) and _follows(each, sentences[-1]))
                needs.append(tuple(len(sentences) - back for back in before))
                sentences.append(each)
        masks = np.array(own, dtype=bool), np.array(joined, dtype=bool)
        return cls(read, sentences, *masks, needs, np.cumsum(begins, dtype=np.int64))

    def in_pieces(self, sentences: Sequence[Sentence]) -> "Pool":
        """Return a pool of some of the sentences, or of pieces, that are quoted one by one."""
        n = len(sentences)
        apart = np.zeros(n, dtype=bool)
        return Pool(self.texts, [*sentences], ~apart, apart, [()] * n, np.arange(n))

    @property
    def node(self) -> Ints1d:
        """The index of each sentence's node, (n_sentences,)."""
        return np.array([sentence.child for sentence in self.sentences], dtype=np.int64)

    def text(self, first: int, last: int) -> str:
        """Return the text of joined sentences as it stands in their node."""
        run = self.sentences[first].at, self.sentences[last].to
        return self.texts[self.sentences[first].child][slice(*run)]


def _split(text: str, quotes: Sequence[Quote], child: int) -> tuple[list[Sentence], dict[int, int]]:
    """Split a text into sentences, and lists and tables of plain lines into these lines.

    A few such lines are one part. Also returned is the index of the head by that of each line; a
    line without one is its own.
    """
    parts, heads, plain = list[Sentence](), dict[int, int](), dict(_blocks(text))
    starts, sentences = [*plain], split_sentences(text, quotes, child)
    blocks = groupby(sentences, lambda s: (starts[bisect(starts, s.at) - 1], s.within))
    for (start, within), group in blocks:
        split, head = [*group], len(parts)
        at, to = split[0].at, split[-1].to
        found = re.finditer(r"\S.*", text[at:to]) if plain[start] else ()
        lines = [(at + line.start(), at + line.end()) for line in found]
        if not _are_lines([text[slice(*line)] for line in lines]):
            parts += split
            continue
        for line in lines if to - at > BLOCK else [(at, to)]:
            parts.append(Sentence(text[slice(*line)], *line, within, child))
            i = len(parts) - 1
            heads[i] = head if _is_head(parts[head].text, parts[i].text) else i
    return parts, heads


def _blocks(text: str) -> Iterator[tuple[int, bool]]:
    """Yield the start of each block and whether it is plain lines; such blocks in a row are one."""
    end = None  # of plain lines
    for block in split_blocks(text):
        is_plain = block.prose and not MARKED.match(text, block.start)
        if end is None or not is_plain or text.count("\n", end, block.start) != 1:
            yield block.start, is_plain
        end = block.end if is_plain else None


def _are_lines(lines: Sequence[str]) -> bool:
    """Return whether each line of a block stands for itself, as in a table, and is no prose."""
    n_numbers = sum(re.search(r"\d", line) is not None for line in lines)
    is_ended = lines and END.search(lines[-1]) and 2 * n_numbers <= len(lines)
    if len(lines) < 2 or is_ended or lines[-1].endswith(ANNOUNCES):
        return False
    goes_on = any(len(a) >= WRAPPED and b[0].islower() for a, b in pairwise(lines))
    return not (lines[0][0].isupper() and goes_on) and not any(map(RULE.fullmatch, lines))


def _is_head(head: str, line: str) -> bool:
    """Return whether a line without numbers has as many columns as one with numbers."""
    has_numbers = [re.search(r"\d", each) is not None for each in (head, line)]
    columns = [[len(blank.split(each)) for each in (head, line)] for blank in COLUMNS]
    return has_numbers == [False, True] and any(n == m > 1 for n, m in columns)


def _read(
    text: str, sentences: Sequence[Sentence], heads: Mapping[int, int]
) -> Iterator[tuple[Sentence, bool, list[int], bool]]:
    """Yield the sentences of a node, whether each says something, how far back its needs are.

    Last comes whether it begins a paragraph with its headings. A sentence needs the first of its
    paragraph if that begins with a label or is one, as "Ticket 12.", and the one before if it
    refers to it or if that does not end, as a long one that is cut. A row needs the head of its
    table; a row, an item and code need the sentence that announces them. In an extract, each
    stretch of a document is a paragraph, and a sentence that refers to one that the extract lacks
    says nothing. Nor do headings, lines of a table of contents, and links.
    """
    blocks, block = split_blocks(text), Block(0, 0, "paragraph")
    begins, head, announced, is_above = 0, set[int](), None, False
    before = set[int]()  # what the sentence before needs
    has_prices = _has_prices(text)
    for i, sentence in enumerate(sentences):
        while sentence.at >= block.end and (after := next(blocks, None)):
            block, begins = after, i
        is_line = i in heads
        if is_apart := i > 0 and _is_apart(sentence, sentences[i - 1]):
            begins, announced = i, None
        begins = i if is_line else begins
        first = not i or (i == begins and not is_above)
        is_row = not block.prose and ROW.match(sentence.text) is not None
        is_item = block.prose and ITEM.match(sentence.text) is not None
        is_rule = RULE.fullmatch(sentence.text) is not None
        head = (head | {i} if is_rule else head or {i}) if is_row else set()
        needs = {begins} if block.prose and _is_label(text, sentences[begins]) else set[int]()
        refers = i > 0 and REFERS.match(sentence.text.lstrip(OPENING)) is not None
        if is_line:
            needs = {heads[i]}
        elif is_item or not block.prose:
            needs |= head if announced is None else {*head, announced}
        elif refers and not is_apart:
            needs |= {i - 1, *before}
        if block.prose and i > begins and not END.search(sentences[i - 1].text):
            needs |= {i - 1, *before}
        after_it = sentences[i + 1].text if i + 1 < len(sentences) else ""
        if block.prose:
            says = _says(sentence.text, after_it, is_part=is_line or is_item)
            is_page = LEADER.search(sentence.text) is not None and not has_prices
            says = says and not is_page and not (refers and is_apart)
        elif is_row:
            is_head = after_it != "" and RULE.fullmatch(after_it) is not None
            says = not (is_head or is_rule)
        else:
            is_whole = (sentence.at, sentence.to) == stripped(text, block.start, block.end)
            says = is_whole and not LAYOUT.fullmatch(sentence.text)
        is_end = is_line or is_item or END.search(sentence.text) is not None
        before, is_above = needs, not says or (block.prose and not is_end)
        yield sentence, says, sorted((i - each for each in needs - {i}), reverse=True), first
        if sentence.text.endswith(ANNOUNCES):
            announced = i
        elif block.prose and not is_item and not is_rule:
            announced = None


def _says(text: str, after: str, *, is_part: bool) -> bool:
    """Return whether a text says something without the one after it.

    Headings, links and notes do not, nor does what announces others; `is_part` tells items and
    lines of lists.
    """
    n_words = len(tokens(REFERENCE.sub("", ITEM.sub("", text, count=1))))
    is_layout = LAYOUT.fullmatch(text) or any(map(RULE.fullmatch, text.split("\n")))
    is_short = n_words < (MIN_TOKENS if END.search(text) else 2 - is_part)
    if is_short or is_layout or text.endswith(ANNOUNCES):
        return False
    is_above = _is_stub(text) and (ITEM.match(after) or not _is_stub(after or text))
    return is_part or not (is_above or MARKED.match(text) or " | " in text)


def _is_stub(text: str) -> bool:
    """Return whether a line has only a few words, or all in capitals, and no end."""
    if END.search(text) or re.search(r"[\d:\n]", text):
        return False
    return len(tokens(text)) < MIN_WORDS or not LOWER.search(text)


def _has_prices(text: str) -> bool:
    """Return whether dots lead to numbers that are not those of pages, which only rise."""
    numbers = [each for each in LEADER.findall(text) if re.search(r"\d", each)]
    pages = sorted(filter(str.isdecimal, numbers), key=lambda page: (len(page), page))
    return numbers != pages


def _is_label(text: str, first: Sentence) -> bool:
    """Return whether a paragraph's first sentence begins with a label, or is one."""
    stub = first.text[0].isupper() and len(tokens(first.text)) < MIN_TOKENS
    return stub or LABEL.match(text, first.at) is not None


def _follows(sentence: Sentence, last: Sentence) -> bool:
    """Return whether a sentence directly follows another, in a node, on a page and in a section.

    The white space between two nodes is not known, so a passage does not go on in the next. Between
    two quotes of a summary, it is taken for a blank after the end of a sentence.
    """
    source, before = sentence.quote.source, last.quote.source
    if sentence.within != last.within and not END.search(last.text):
        return False
    if sentence.child != last.child or source is None or before is None:
        return sentence.child == last.child and source is before
    if source._replace(start=0, end=0) != before._replace(start=0, end=0):
        return False
    return source.start - before.end == sentence.at - last.to


def _is_apart(sentence: Sentence, last: Sentence) -> bool:
    """Return whether an extract left out what stands between two sentences of a document."""
    source, before = sentence.quote.source, last.quote.source
    if source is None or before is None or not (sentence.within.verbatim and last.within.verbatim):
        return False
    return source.document != before.document or (
        source.start - before.end != sentence.at - last.to
    )
