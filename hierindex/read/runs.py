"""Runs of text: superscripts cannot be read as other numbers, and struck text is left out."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from hierindex.read.html_marks import subscript, superscript

SUPER, SUB, PLAIN, HIDDEN, STRUCK = "super", "sub", "", "hidden", "struck"


def joined_runs(runs: Iterable[tuple[str, str]], unread: Counter[str]) -> str:
    """Join runs of text of the kinds of this module, and count what is omitted."""
    joined = ""
    for kind, group in groupby(runs, key=lambda run: run[0]):
        text = "".join(text for _, text in group)
        if kind in (HIDDEN, STRUCK):
            unread[f"{kind} passage"] += bool(text.strip())
        elif kind == SUPER:
            joined += superscript(text, joined[-1:], is_linked=False)
        elif kind == SUB:
            joined += subscript(text, joined[-1:])
        else:
            joined += text
    return joined.strip()
