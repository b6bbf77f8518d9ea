"""Runs of text: superscripts cannot be read as other numbers, and struck text is left out."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby

SUPER, SUB, PLAIN, HIDDEN, STRUCK = "super", "sub", "", "hidden", "struck"
OMITTED = {HIDDEN, STRUCK}
SIMPLE = re.compile(r"[-+\u2212\u2013]?[\w.,]+")  # needs no parentheses after "^"
ORDINAL = re.compile(r"[^\W\d_]{2,}|[aeo\u00aa\u00ba]", re.IGNORECASE)  # "th", "er", and French "e"


def superscript(text: str) -> str:
    """Return a superscript after "^", unless it is an ordinal's ending or a sign.

    >>> superscript("6"), superscript("n - 1"), superscript("th"), superscript("°")
    ('^6', '^(n - 1)', 'th', '°')
    """
    bare = text.strip()
    if not any(map(str.isalnum, bare)) or ORDINAL.fullmatch(bare):
        return text
    return f"^{bare}" if SIMPLE.fullmatch(bare) else f"^({bare})"


def subscript(text: str, before: str) -> str:
    """Return a subscript, after "_" if it would continue a number.

    >>> subscript("2", "H"), subscript("2", "101")
    ('2', '_2')
    """
    return f"_{text}" if before[-1:].isdigit() and text[:1].isdigit() else text


def joined_runs(runs: Iterable[tuple[str, str]], unread: Counter[str]) -> str:
    """Join runs of text of the kinds of this module, and count what is omitted."""
    joined = ""
    for kind, group in groupby(runs, key=lambda run: run[0]):
        text = "".join(text for _, text in group)
        if kind in OMITTED:
            unread[f"passage of {kind} text"] += bool(text.strip())
            continue
        if kind == SUPER:
            text = superscript(text)
        elif kind == SUB:
            text = subscript(text, joined)
        joined += text
    return joined.strip()
