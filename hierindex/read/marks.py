"""Marks that files show without spelling them: numbers of lists, scripts and struck text."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby

SUPER, SUB, PLAIN = "super", "sub", ""
UNSEEN_WORDS, STRUCK_WORDS = "word(s) not displayed", "word(s) struck out"
"""Kinds of runs of text; those of the last two are omitted, and counted so."""
ROMAN = [*zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "m cm d cd c xc l xl x ix v "
    "iv i".split(), strict=True)]  # fmt: skip
ORDINALS = frozenset("st nd rd th er ère re e ème me lle gr os as tm sm".split())
NUMBERS = re.compile(r"\d+(?:\s*[,;\u2013-]\s*\d+)*")
SENTENCE_ENDS = frozenset('.,;:!?"»)…。、\u201d\u2019')
MAX_SCRIPT = 200  # characters; longer text is no script
SIMPLE = re.compile(r"[+\u2212\u2013-]?\w+(?:[.,]\d+)?[+\u2212-]?")


def joined_runs(runs: Iterable[tuple[str, str]], unread: Counter[str]) -> str:
    """Join runs of text of the kinds of this module, and count what is omitted."""
    joined = ""
    for kind, group in groupby(runs, key=lambda run: run[0]):
        text = "".join(text for _, text in group)
        if kind in (UNSEEN_WORDS, STRUCK_WORDS):
            unread[kind] += len(text.split())
        elif kind == SUPER:
            joined += superscript(text, joined[-1:], is_linked=False)
        elif kind == SUB:
            joined += subscript(text, joined[-1:])
        else:
            joined += text
    return joined.strip()


def label(number: int, shape: str) -> str:
    """Return a number as an HTML list shows it.

    >>> label(28, "a"), label(4, "I"), label(0, "A"), label(3, "1")
    ('ab', 'IV', '0', '3')
    """
    text = ""
    if shape in ("a", "A") and number > 0:
        while number:
            number, letter = divmod(number - 1, 26)
            text = chr(ord("a") + letter) + text
    elif shape in ("i", "I") and 0 < number < 4000:
        for value, letters in ROMAN:
            text += letters * (number // value)
            number %= value
    return (text.upper() if shape in ("A", "I") else text) or str(number)


def superscript(text: str, before: str, *, is_linked: bool) -> str:
    r"""Return a superscript as text, so that no number becomes another one.

    Parameters
    ----------
    text : str
    before : str
        The character before it, or "".
    is_linked : bool
        Whether it is a link, as marks of notes are.

    Examples
    --------
    >>> superscript("6", "0", is_linked=False), superscript("st", "1", is_linked=False)
    ('^6', 'st')
    >>> superscript("2", ".", is_linked=False), superscript("a", "x", is_linked=True)
    ('[2]', '[a]')
    """
    said = " ".join(text.split())
    if len(text) > MAX_SCRIPT or not any(map(str.isalnum, said)) or said[0] in "[(":
        return text
    after_sentence = before in SENTENCE_ENDS and NUMBERS.fullmatch(said)
    if is_linked or after_sentence or (before.isalpha() and re.fullmatch(r"\d+,\s*\d.*", said)):
        return f"[{said}]"
    if said in ("a", "o") and (before.isdigit() or f"{before}{said}".lower() == "no"):
        return "ª" if said == "a" else "º"
    is_ordinal = said.lower() in ORDINALS and before.isalnum()
    if not before or (is_ordinal and (len(said) > 1 or before.isdigit())):
        return text
    return f"^{grouped(said)}"


def subscript(text: str, before: str) -> str:
    """Return a subscript as text: H2O, but not a longer number.

    >>> subscript("2", "H"), subscript("2", "0"), subscript("i+1", "x")
    ('2', '_2', '_(i+1)')
    """
    said = " ".join(text.split())
    if not said or len(text) > MAX_SCRIPT or not before.strip() or before in "/\u2044":
        return text
    return text if said.isdigit() and not before.isdigit() else f"_{grouped(said)}"


def grouped(text: str) -> str:
    """Return a script in parentheses if it is more than a word or number."""
    return text if SIMPLE.fullmatch(text) or not text else f"({text})"
