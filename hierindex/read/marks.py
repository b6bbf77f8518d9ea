"""Formatting that carries meaning, as text: list numbers, superscripts, struck text, formulas."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Any

from hierindex.read.html_elements import is_displayed

ROMAN = [*zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "m cm d cd c xc l xl x ix v "
    "iv i".split(), strict=True)]  # fmt: skip
ORDINALS = frozenset("st nd rd th er ère re e ème me lle gr os as tm sm".split())
NUMBERS = re.compile(r"\d+(?:\s*[,;\u2013-]\s*\d+)*")
SENTENCE_ENDS = frozenset('.,;:!?"»)…。、\u201d\u2019')
MAX_SCRIPT = 200  # characters; longer text is no script
SIMPLE = re.compile(  # a sign, a word, a number, or what is in brackets
    r".?|[+\u2212\u2013-]?\w+(?:[.,]\d+)?[+\u2212-]?|\([^()]*\)|\[[^\[\]]*\]|\|[^|]*\|"
)
MAX_LETTERED = 260  # list items; more have numbers
LIST_TYPES = {"loweralpha": "a", "upperalpha": "A", "lowerroman": "i", "upperroman": "I"}
LIST_TYPES |= {"disc": "", "none": ""}  # by classes of docutils and values of CSS
DISPLAYED = re.compile(r"\{\\displaystyle (.*)\}", re.DOTALL)  # as MediaWiki writes TeX
JOINS: dict[str, Sequence[str]] = {  # the signs before the second and later parts of an element
    **dict.fromkeys(("msup", "mover", "sSup", "limUpp"), "^"),
    **dict.fromkeys(("msub", "munder", "sSub", "limLow"), "_"),
    **dict.fromkeys(("msubsup", "munderover", "sSubSup"), "_^"),
    **dict.fromkeys(("mfrac", "f"), "/"),
    "rad": "^√",
    "nary": "_^ ",
    "sPre": ("_", "^", ""),
}
MAX_NESTED = 100  # elements of a formula; deeper ones are read as plain text
BETWEEN = {"eqArr": "; ", "func": " ", "m": "; ", "mr": ", ", "oMathPara": " "}
MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
PROPERTIES = re.compile("annotation|.*Pr$")  # elements of formulas without symbols of their own


class RunKind(StrEnum):
    """The kind of a run of text; runs of the last two kinds are omitted and counted."""

    PLAIN = ""
    SUPER = "super"
    SUB = "sub"
    UNSEEN = "word(s) not displayed"
    STRUCK = "word(s) struck out"


def joined_runs(runs: Iterable[tuple[RunKind, str]], unread: Counter[str]) -> str:
    """Join runs of text with their kinds, such as superscript, and count the omitted ones."""
    joined = ""
    for kind, group in groupby(runs, key=lambda run: run[0]):
        text = "".join(text for _, text in group)
        if kind in (RunKind.UNSEEN, RunKind.STRUCK):
            unread[kind] += len(text.split())
        elif kind == RunKind.SUPER:
            joined += superscript(text, joined[-1:], is_linked=False)
        elif kind == RunKind.SUB:
            joined += subscript(text, joined[-1:])
        else:
            joined += text
    return joined.strip()


def label(number: int, shape: str) -> str:
    """Return a number as a list shows it; after z come aa and bb, as in Word.

    >>> label(28, "a"), label(4, "I"), label(0, "A"), label(3, "1")
    ('bb', 'IV', '0', '3')
    """
    text = ""
    if shape in ("a", "A") and 0 < number <= MAX_LETTERED:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif shape in ("i", "I") and 0 < number < 4000:
        for value, letters in ROMAN:
            text += letters * (number // value)
            number %= value
    return (text.upper() if shape in ("A", "I") else text) or str(number)


def superscript(text: str, before: str, *, is_linked: bool) -> str:
    r"""Return a superscript as text, so that numbers are not joined to another number.

    Parameters
    ----------
    text : str
    before : str
        The character before it, or "".
    is_linked : bool
        Whether it is a link, like the mark of a footnote.

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
    """Return a subscript as text: H2O, but a subscript after a digit is marked with "_".

    >>> subscript("2", "H"), subscript("2", "0"), subscript("i+1", "x")
    ('2', '_2', '_(i+1)')
    """
    said = " ".join(text.split())
    if not said or len(text) > MAX_SCRIPT or not before.strip() or before in "/\u2044":
        return text
    return text if said.isdigit() and not before.isdigit() else f"_{grouped(said)}"


def grouped(text: str) -> str:
    """Return a superscript or subscript, in parentheses unless it is one word or number."""
    text = text.strip()
    return text if SIMPLE.fullmatch(text) else f"({text})"


def item_marks(ordered: Any) -> Iterator[tuple[Any, str]]:
    """Yield the items of a numbered list, each with its number as text."""
    items = [each for each in ordered.iterfind("li") if is_displayed("li", each.attrib)]
    named = re.findall(
        r"\w+", f"{ordered.get('class', '')} {ordered.get('style', '')}".replace("-", "")
    )
    types = [LIST_TYPES[name] for name in named if name in LIST_TYPES]
    shape = [ordered.get("type", "1"), *types][-1]
    step = -1 if "reversed" in ordered.attrib else 1
    number = whole(ordered.get("start"), 1 if step > 0 else len(items))
    for item in items:
        number = whole(item.get("value"), number)
        yield item, f"{label(number, item.get('type', shape))}. " if shape else ""
        number += step


def formula(math: Any) -> str:
    """Return MathML as text: its alternative text, its TeX source, or the displayed symbols."""
    if alternative := math.get("alttext", "").strip():
        return DISPLAYED.sub(r"\1", alternative)
    for part in math.iter():
        if _name(part) == "annotation" and "tex" in part.get("encoding", "").lower():
            return (part.text or "").strip()
    return equation(math)


def equation(part: Any, levels: int = MAX_NESTED) -> str:
    """Return an equation of MathML or of an office file on one line, such as "x=(a+b)/c^2"."""
    name = _name(part)
    if name == "t" or not levels:
        return "".join(part.itertext())

    def sign(key: str, default: str) -> str:
        found = part.find(f"{MATH}{name}Pr/{MATH}{key}")
        return default if found is None else str(found.get(f"{MATH}val", ""))

    shown = [child for child in part if not PROPERTIES.match(_name(child))]
    inside = [f"{equation(child, levels - 1)}{(child.tail or '').strip()}" for child in shown]
    if signs := JOINS.get(name):
        if name in ("nary", "rad", "sPre"):
            inside.insert(0, sign("chr", "∫") if name == "nary" else "")
        first, *more = inside or [""]
        text = grouped(first)
        for mark, each in zip(signs, more, strict=False):
            text += (mark + (grouped(each) if mark.strip() else each)) * bool(each)
        is_bare = name == "f" and sign("type", "bar") == "noBar"
        return text.replace("/", " choose ", 1) if is_bare else text
    if name == "d":
        return sign("begChr", "(") + sign("sepChr", "|").join(inside) + sign("endChr", ")")
    text = BETWEEN.get(name, "").join(filter(None, [(part.text or "").strip(), *inside]))
    return {"msqrt": f"√({text})", "m": f"[{text}]"}.get(name, text)


def _name(part: Any) -> str:
    """Return the name of an element without its namespace."""
    return re.split("[:}]", part.tag)[-1]


def whole(text: str | None, default: int = 0) -> int:
    """Parse a whole number of at most nine digits; return the default for other texts."""
    return int(text) if text and text.isdecimal() and len(text) < 10 else default
