"""Unicode characters: one form for texts that look the same, and repair of damaged ones."""

import re
from typing import Any
from unicodedata import normalize

SURROGATE = re.compile("[\ud800-\udfff]")
HYPHENATED = re.compile(r"\xad(?:\n(?=\w))?")  # also at the end of a line, inside a word
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")  # of scripts without blanks between words
UNSEEN = dict.fromkeys("\xad\u200b\u200c\u200d\u2060\ufeff", "")
LETTERS = dict(zip("ßẞıøØłŁđĐæÆœŒ", "ss SS i o O l L d D ae AE oe OE".split(), strict=True))
PLAIN = str.maketrans({**UNSEEN, **LETTERS})
LITERAL = re.compile(  # see `searched`
    r"(?<![\w-])-[A-Za-z](?![\w-])|(?<![\w.])\d{1,3}(?:\.\d{1,3}){1,7}(?![\w.]*\d)"
)
ACCENT = re.compile("[\u0300-\u036f]")  # not the marks of kana and Indic scripts


def composed(text: str) -> str:
    r"""Return a text in NFC, without soft hyphens.

    >>> composed("Mu\u0308ll\xadabfuhr")
    'Müllabfuhr'
    """
    return normalize("NFC", HYPHENATED.sub("", text))


def repaired(value: Any) -> Any:
    r"""Return a text, or the texts in a value, composed and without surrogates and null characters.

    >>> repaired({"title": ["Mu\u0308ll", 3]})
    {'title': ['Müll', 3]}
    """
    if isinstance(value, str):
        return composed(paired(value).replace("\0", ""))
    if isinstance(value, dict):
        return {repaired(key): repaired(each) for key, each in value.items()}
    return [*map(repaired, value)] if isinstance(value, list | tuple) else value


def paired(text: str) -> str:
    """Return a text that UTF-8 can encode.

    A pair of surrogates becomes its character, a lone surrogate U+FFFD.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def folded(text: str) -> str:
    r"""Return the search form of a text: NFKC without invisible characters and accents.

    >>> folded("\uff21\uff22 \ufb01nds r\xe9sum\xe9, Stra\xdfe, \u30ac")
    'AB finds resume, Strasse, \u30ac'
    """
    if text.isascii():
        return text
    return normalize("NFC", ACCENT.sub("", normalize("NFKD", text.translate(PLAIN))))


def searched(text: str, weight: int = 1) -> str:
    r"""Return a text as it is searched by words: folded, with a word for each of its literals.

    Literals are options of one letter and dotted numbers, of which a search would see only the
    letter, in any case, or the digits. The weight is how often each is repeated.

    >>> searched("curl -k 10.0.0.1 well-known")
    'curl -k 10.0.0.1 well-known x2d6b x31302e302e302e31'
    """
    words = ["x" + each.encode().hex() for each in LITERAL.findall(text)]
    return " ".join([folded(text), *words * weight])
