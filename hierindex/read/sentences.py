"""Sentences, rows of tables and lines, of which chunks are made."""

import re
from itertools import pairwise

from llama_index.core.node_parser.text.utils import split_by_sentence_tokenizer

STRETCH, NEAR_END = 100_000, 5_000  # characters
ROW = re.compile(r"^.*\|.*\n?", re.MULTILINE)  # of a table
LINE = re.compile(r".*\n|.+")
SENTENCE_END = re.compile(r"[.!?]\s+(?=\S)")
# Where NLTK always ends a sentence, and where that depends on the words around a mark.
CLEAR_END = re.compile(r"[ \n][A-Za-z]{2,}+[.?!][ \t\r\n]+(?=\w)")
UNCLEAR_END = re.compile(r"[.?!](?:[^\w\s]|\s+\S)")


def split_stretches(text: str) -> list[str]:
    r"""Split a text into sentences and rows of tables, and a single one of them into lines.

    >>> split_stretches("It is so. It was.\n| a. | B |")
    ['It is so. ', 'It was.\n', '| a. | B |']
    """
    parts, at = list[str](), 0
    for row in ROW.finditer(text):
        parts += _sentences(text[at : row.start()]) if at < row.start() else []
        parts.append(row.group())
        at = row.end()
    parts += _sentences(text[at:])
    if parts == [text]:  # too long for a chunk
        # Not at form feeds: tokenizers drop them and join the words beside them.
        return _sentences(text) if "|" in text else LINE.findall(text)
    return parts


def _sentences(text: str) -> list[str]:
    """Split a text into sentences, at most 100,000 characters at a time.

    NLTK, which LlamaIndex calls with whole files, raises TimeoutError after five seconds, as on
    a megabyte of short sentences.
    """
    sentences, at = list[str](), 0
    while at < len(text):
        end = len(text)
        if end - at > STRETCH:
            near = at + STRETCH - NEAR_END, at + STRETCH
            ends = [match.end() for match in SENTENCE_END.finditer(text, *near)]
            end = ends[-1] if ends else near[1]
        sentences += _nltk_sentences(text[at:end])
        at = end
    return sentences


def _nltk_sentences(text: str) -> list[str]:
    """Split a text as NLTK does, which is slow and asked only about parts with unclear ends."""
    split = split_by_sentence_tokenizer()
    cuts = [0, *(match.end() for match in CLEAR_END.finditer(text)), len(text)]
    sentences = list[str]()
    for at, to in pairwise(cuts):
        unclear = UNCLEAR_END.search(text, at, to) is not None
        part = text[at:to]
        sentences += (split(part) if unclear else []) or [part]  # NLTK returns none for blanks
    return sentences
