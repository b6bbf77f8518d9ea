"""Whole sentences, told from headings, stubs, rows and code."""

import re

from hierindex.summarize.markup_blocks import ITEM_MARK, is_code
from hierindex.summarize.sentences import tokens

MIN_TOKENS = 3  # of a sentence that can be quoted

LABEL = re.compile(  # of items, sections and captions
    rf"(?:(?i:{ITEM_MARK})\s+|\u2013\s+|\d+(?:\.\d+)+\.?\s+"
    r"|(?:Fig(?:ure)?|Tab(?:le)?|Abb(?:ildung)?|Tabelle|[\u56fe\u5716\u8868])"
    r"[.\s]*\d[\d.-]*[.:\uff1a]\s*)*"
)
BEGIN = re.compile(  # a word, a name such as ".NET" or an option, also quoted or marked up
    r"[\"'*_`(\[<\u00a1\u00ab\u00bb\u00bf\u2018-\u201f\u2039\u300a\u300c\u300e\uff08]*"
    r"(?!\d+,\s)[-$%@/.~&\u00a7]*[^\W_]"
)
# Words in lower case that may begin a sentence, as they are names of programs.
NAME = re.compile(r"\S*[\w)][-_./:(=]+\w|\w*\d|\w+\s+(?:is[st]?\b|[\u3040-\u9fff])")
END = re.compile(  # the marks of many scripts, with closing marks and notes; Thai and Lao have none
    r"(?:[.!?\u2026\u0589\u061f\u06d4\u0964\u0965\u0e01-\u0eff\u104b\u1362\u3002\uff01\uff0e\uff1f\uff61]"
    r"|(?<=[\u0386-\u03ff]);)"
    r"(?:[\"'*_`)\]>\u00ab\u00bb\u2018-\u201d\u300b\u300d\u300f\uff09\u00b9\u00b2\u00b3]|\[\^?\d+\])*$"
)
STUB = re.compile(r"\d\w*|_+|[a-zA-Z]")  # a token that is no word
SMALL = frozenset(  # words that are small in titles
    "a an and at by de del der des die du et for from im in la le of on or the to und vom von "
    "with zu zur".split()
)
IN_NUMBER = re.compile(r"(?<=\d)[.,:](?=\d)")
LINK = re.compile(r"!?\[[^\]]*\]\([^)\s]*\)|<?\w+://\S+")
NO_PROSE = re.compile(  # rows, lines under headings, dots before a page's number, lines of an index
    r"\t|\s\|\s|^\||\.{5,}|(?:\s\.){4,}|\bVol\.\s\w+,\sp+\.\s?\d[\d, -]*\.?$"
    r"|^\s*([=\-~^*_+\"])\1{2,}\s*$",
    re.MULTILINE,
)
LONE_BRACKET = re.compile(r"(?<!\S)\w\)|[:;]-?[()]")  # a bracket that is not one of two


def is_sentence(text: str) -> bool:
    """Return whether a text can be quoted on its own, as it reads as one or more whole sentences.

    Headings, captions, navigation, tables of contents, beginnings of lists, rows, code and parts
    of sentences cannot. In doubt the answer is False. No language is assumed, but the text must
    end with a mark such as a full stop, except in Thai and Lao.

    Examples
    --------
    >>> is_sentence("(b) The pump failed at 10.30.")
    True
    >>> any(map(is_sentence, ("Introduction ..... 3", "1.2 Scope 14", "See also:", "x = f(1)")))
    False
    """
    text = text.strip()
    body = LABEL.sub("", text, count=1)
    prose = IN_NUMBER.sub("", LINK.sub("", body))
    found = tokens(prose)
    words = [token for token in found if not STUB.fullmatch(token)]
    return (
        BEGIN.match(body) is not None
        and END.search(body) is not None
        and (body != text or not text[0].islower() or NAME.match(text) is not None)
        and MIN_TOKENS <= len(found) < 2 * len(words)
        and any(not word[0].isupper() and word not in SMALL for word in words)
        and _is_balanced(body)
        and not NO_PROSE.search(body)
        and not any(map(is_code, body.split("\n")))
    )


def _is_balanced(text: str) -> bool:
    """Return whether every bracket is closed, and none is closed that was not opened."""
    depth = 0
    for bracket in re.findall(r"[()\[\]]", LONE_BRACKET.sub("", text)):
        depth += 1 if bracket in "([" else -1
        if depth < 0:
            return False
    return depth == 0
