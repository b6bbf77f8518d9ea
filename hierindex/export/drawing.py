"""Colours of pictures, the same as on the explorer's page, and titles cut to fit boxes."""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from textwrap import wrap

import numpy as np

from hierindex.core.titles import without_shared_prefix
from hierindex.serve.explorer.inline import PAGE
from hierindex.unsafe import beginning

LONGEST = 200  # characters of a name
VARIABLE = re.compile(r"--([\w-]+):\s*(?:light-dark\((#\w+), (#\w+)\)|([^;]+));")


@cache
def colours(scheme: str = "light") -> dict[str, str]:
    """Return the variables of the explorer's style sheet in its light or dark colour scheme."""
    style = (PAGE / "page.css").read_text("utf-8")
    found = VARIABLE.findall(style)
    return {
        name: (dark if scheme == "dark" else light) or same for name, light, dark, same in found
    }


def shades(n: int, scheme: str = "light") -> list[str]:
    """Return a colour for each of n levels, the chunks first; text in `ink` is legible on all."""
    first, last = ([*bytes.fromhex(colours(scheme)[end][1:])] for end in ("tint", "warm"))
    steps = np.linspace(first, last, n).round().astype(int)  # (n, 3)
    return ["#" + bytes(step).hex() for step in steps.tolist()]


def names_of(titles: Sequence[str], parents: Sequence[int]) -> list[str]:
    """Return titles without the beginning shared by all children of the same parent."""
    siblings = defaultdict[int, list[str]](list)
    for title, parent in zip(titles, parents, strict=True):
        siblings[parent].append(title)
    names = {parent: iter(without_shared_prefix(group)) for parent, group in siblings.items()}
    return [next(names[parent]) for parent in parents]


def fitted(text: str, width: int, most: int) -> list[str]:
    """Wrap a text to `most` lines of `width` characters; the middle of a long last line is cut.

    >>> fitted("The old mill and the names of its sails", 14, 2)
    ['The old mill', 'and the… sails']
    """
    text = beginning(text, LONGEST)
    lines, end = wrap(text, width), 0
    if len(lines) <= most:
        return lines
    for line in lines[: most - 1]:
        end = text.index(line, end) + len(line)
    rest, kept = text[end:].strip(), width - 1
    return [*lines[: most - 1], f"{rest[: kept - kept // 2]}…{rest[len(rest) - kept // 2 :]}"]
