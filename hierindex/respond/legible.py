"""Sentences to quote, and what each of them cannot be read without."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierindex.core.membership import Ints1d
from hierindex.record import Quote
from hierindex.summarize.markup_blocks import ITEM_MARK, Block, split_blocks
from hierindex.summarize.sentences import (
    Sentence,
    is_telling,
    split_sentences,
    stripped,
)
from hierindex.summarize.whole_sentences import END, is_sentence

LABEL = re.compile(  # of a speaker, a note, a claim
    r"\W{0,3}[^\W\d_a-z][\w.'\u2019]*(?: [\w.'\u2019]+){,4}(?::|[.:]?\s?(?:--|\u2014))\s?\S"
)
ITEM = re.compile(rf"\s*{ITEM_MARK}\s")
ROW = re.compile(r"\s*[|+]|\s*\S[^\t\n]*\t")
RECORD = re.compile(r"[^\n:;]{1,60}: [^\n;]+(?:;\s[^\n:;]{1,60}: [^\n;]+)+")  # of keys and values
RULE = re.compile(r"[\s|:+=`~-]*")  # below the head of a table, or around code
LAYOUT = re.compile(  # commands of LaTeX
    r"(?:\\(?:begin|caption|centering|end|includegraphics|label)\b[^\n]*\s*)+"
)
ANNOUNCES = (":", "\uff1a")
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
        """Split texts into sentences."""
        read, sentences, own = list[str](), list[Sentence](), list[bool]()
        joined, needs, begins = list[bool](), list[tuple[int, ...]](), list[bool]()
        for child, (text, quotes) in enumerate(texts):
            read.append(text)
            split = [replace(each, child=child) for each in split_sentences(text, quotes)]
            for each, says, before, first in _read(text, split):
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


def _read(
    text: str, sentences: Sequence[Sentence]
) -> Iterator[tuple[Sentence, bool, list[int], bool]]:
    """Yield the sentences of a node, whether each says something, how far back its needs are.

    Last comes whether it begins a paragraph with its headings. A sentence needs the first of its
    paragraph if that begins with a label or is one, as "Ticket 12.", and the one before if it
    refers to it or if that does not end, as a long one that is cut. A row needs the head of its
    table; a row, an item and code need the sentence that announces them. In an extract, each
    stretch of a document is a paragraph, and a sentence that refers to one that the extract lacks
    says nothing.
    """
    blocks, block = split_blocks(text), Block(0, 0, prose=True)
    begins, head, announced, says = 0, None, None, True
    before = set[int]()  # what the sentence before needs
    for i, sentence in enumerate(sentences):
        while sentence.at >= block.to and (after := next(blocks, None)):
            block, begins = after, i
        if is_apart := i > 0 and _is_apart(sentence, sentences[i - 1]):
            begins, announced = i, None
        first = not i or (i == begins and says)
        is_row = not block.prose and ROW.match(sentence.text) is not None
        is_item = block.prose and ITEM.match(sentence.text) is not None
        head = (i if head is None else head) if is_row else None
        needs = {begins} if block.prose and _is_label(text, sentences[begins]) else set[int]()
        refers = i > 0 and REFERS.match(sentence.text.lstrip(OPENING)) is not None
        if is_item or not block.prose:
            needs |= {each for each in (head, announced) if each is not None}
        elif refers and not is_apart:
            needs |= {i - 1, *before}
        if block.prose and i > begins and not END.search(sentences[i - 1].text):
            needs |= {i - 1, *before}
        if is_row:
            says = i != head and not RULE.fullmatch(sentence.text)
        elif block.prose:
            is_whole = is_sentence(sentence.text) or RECORD.fullmatch(sentence.text) is not None
            says = is_whole and not (refers and is_apart)
        else:
            is_whole = (sentence.at, sentence.to) == stripped(text, block.at, block.to)
            says = is_whole and not LAYOUT.fullmatch(sentence.text)
        before = needs
        yield sentence, says, sorted((i - each for each in needs - {i}), reverse=True), first
        if sentence.text.endswith(ANNOUNCES):
            announced = i
        elif block.prose and not is_item and not RULE.fullmatch(sentence.text):
            announced = None


def _is_label(text: str, first: Sentence) -> bool:
    """Return whether a paragraph's first sentence begins with a label, or is one."""
    stub = first.text[0].isupper() and not (is_telling(first.text) or is_sentence(first.text))
    return stub or LABEL.match(text, first.at) is not None


def _follows(sentence: Sentence, last: Sentence) -> bool:
    """Return whether a sentence directly follows another, in a node, on a page and in a section.

    The white space between two nodes is not known, so a passage does not go on in the next.
    """
    source, before = sentence.quote.source, last.quote.source
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
