"""Marks that a page shows without spelling them: numbers of lists, and formulas."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from xml.etree.ElementTree import Element

from hierindex.read.html_elements import is_displayed
from hierindex.read.marks import grouped, label

MAX_DIGITS = 9  # of the number of a list item
LIST_TYPES = {"loweralpha": "a", "upperalpha": "A", "lowerroman": "i", "upperroman": "I"}
LIST_TYPES |= {"disc": "", "none": ""}  # by classes of docutils and values of CSS
DISPLAYED = re.compile(r"\{\\displaystyle (.*)\}", re.DOTALL)  # as MediaWiki writes TeX
JOINS = {"msup": "^", "msub": "_", "mfrac": "/", "msubsup": "_^", "munder": "_", "mover": "^"}
JOINS["munderover"] = "_^"


def item_marks(ordered: Element) -> Iterator[tuple[Element, str]]:
    """Yield the items of a numbered list with their numbers as text."""
    items = [each for each in ordered.iterfind("li") if is_displayed("li", each.attrib)]
    named = re.findall(
        r"\w+", f"{ordered.get('class', '')} {ordered.get('style', '')}".replace("-", "")
    )
    types = [LIST_TYPES[name] for name in named if name in LIST_TYPES]
    shape = [ordered.get("type", "1"), *types][-1]
    step = -1 if "reversed" in ordered.attrib else 1
    number = _integer(ordered.get("start"), 1 if step > 0 else len(items))
    for item in items:
        number = _integer(item.get("value"), number)
        yield item, f"{label(number, item.get('type', shape))}. " if shape else ""
        number += step


def _integer(value: str | None, otherwise: int) -> int:
    found = re.match(rf"\s*(-?\d{{1,{MAX_DIGITS}}})(?!\d)", value or "")
    return int(found[1]) if found else otherwise


def formula(math: Element) -> str:
    """Return MathML as text, once: its alternative text, its TeX, or what it shows."""
    if alternative := math.get("alttext", "").strip():
        return DISPLAYED.sub(r"\1", alternative)
    for part in math.iter():
        if _name(part) == "annotation" and "tex" in part.get("encoding", "").lower():
            return (part.text or "").strip()
    return _shown(math)


def _shown(part: Element) -> str:
    name = _name(part)
    if name.startswith("annotation"):
        return ""
    inside = [_shown(child) for child in part]
    if name in JOINS:
        first, *more = map(grouped, inside or [""])
        return first + "".join(
            map("".join, zip_longest(JOINS[name][: len(more)], more, fillvalue=""))
        )
    after = ((child.tail or "").strip() for child in part)
    text = (part.text or "").strip() + "".join(map("".join, zip(inside, after, strict=True)))
    return f"√({text})" if name == "msqrt" else text


def _name(part: Element) -> str:
    return part.tag.rpartition(":")[2]
