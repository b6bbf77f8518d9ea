"""Marks that a page shows without spelling them: list numbers, scripts of numbers, formulas."""

import re
from collections.abc import Mapping

from hierindex.read.html_elements import HIDDEN

MAX_DIGITS = 9  # of the number of a list item
LIST_TYPES = {"arabic": "1", "decimal": "1", "disc": "", "none": ""}
LIST_TYPES |= dict.fromkeys("loweralpha lower-alpha lower-latin".split(), "a")
LIST_TYPES |= dict.fromkeys("upperalpha upper-alpha upper-latin".split(), "A")
LIST_TYPES |= {"lowerroman": "i", "lower-roman": "i", "upperroman": "I", "upper-roman": "I"}
STYLED = re.compile(r"list-style(?:-type)?\s*:\s*([a-z-]+)")
ROMAN = [*zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "m cm d cd c xc l xl x ix v "
    "iv i".split(), strict=True)]  # fmt: skip
COUNTED = re.compile("\0(\\d+):(\\d+):(.)\0")  # a number that is known when the list has ended
ORDINALS = frozenset("st nd rd th er ère re e ème me lle gr os as tm sm".split())
NUMBERS = re.compile(r"\d+(?:\s*[,;\u2013-]\s*\d+)*")
SENTENCE_ENDS = frozenset('.,;:!?"»)…。、\u201d\u2019')
MAX_SCRIPT = 200  # characters; longer text is no script
SIMPLE = re.compile(r"[+\u2212\u2013-]?\w+(?:[.,]\d+)?[+\u2212-]?")
DISPLAYED = re.compile(r"\{\\displaystyle (.*)\}", re.DOTALL)  # as MediaWiki writes TeX
JOINS = {"msup": "^", "msub": "_", "mfrac": "/", "msubsup": "_^", "munder": "_", "mover": "^"}
JOINS["munderover"] = "_^"


class ItemNumbers:
    """The numbers of the items of an HTML list, in their order."""

    def __init__(self, index: int, tag: str, attributes: Mapping[str, str]) -> None:
        self.index = index  # among the lists of a page
        self.n_items = 0
        self._step = -1 if "reversed" in attributes else 1
        start = _integer(attributes.get("start"))
        self._next = 1 if start is None and self._step > 0 else start
        styled = STYLED.search(attributes.get("style", ""))
        named = [*attributes.get("class", "").split(), *(styled.groups() if styled else ())]
        types = [LIST_TYPES[name] for name in named if name in LIST_TYPES]
        self._type = [attributes.get("type", "1"), *types][-1] if tag == "ol" else ""

    def mark(self, attributes: Mapping[str, str]) -> str:
        """Return the number of the next item as text; "" in a list without numbers."""
        self.n_items += 1
        value = _integer(attributes.get("value"))
        self._next = self._next if value is None else value
        shape = attributes.get("type", self._type)
        if not self._type:
            return ""
        if self._next is None:  # as of the end of the list
            return f"\0{self.index}:{self.n_items - 1}:{shape[:1] or '1'}\0. "
        self._next += self._step
        return f"{label(self._next - self._step, shape)}. "


def numbered(text: str, lengths: Mapping[int, int]) -> str:
    """Return a text with the numbers of lists that count down to 1."""
    if "\0" not in text:
        return text
    return COUNTED.sub(lambda m: label(lengths.get(int(m[1]), 0) - int(m[2]), m[3]), text)


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


def _integer(value: str | None) -> int | None:
    found = re.match(rf"\s*(-?\d{{1,{MAX_DIGITS}}})(?!\d)", value or "")
    return int(found[1]) if found else None


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
    if not any(map(str.isalnum, said)) or said[0] in "[(":
        return text
    after_sentence = before in SENTENCE_ENDS and NUMBERS.fullmatch(said)
    if is_linked or after_sentence or (before.isalpha() and re.fullmatch(r"\d+,\s*\d.*", said)):
        return f"[{said}]"
    if said in ("a", "o") and (before.isdigit() or f"{before}{said}".lower() == "no"):
        return "ª" if said == "a" else "º"
    is_ordinal = said.lower() in ORDINALS and before.isalnum()
    if is_ordinal and (len(said) > 1 or before.isdigit()):
        return text
    if not before:
        return text
    return f"^{grouped(said)}"


def subscript(text: str, before: str) -> str:
    """Return a subscript as text: H2O, but not a longer number.

    >>> subscript("2", "H"), subscript("2", "0"), subscript("i+1", "x")
    ('2', '_2', '_(i+1)')
    """
    said = " ".join(text.split())
    if not said or not before.strip() or before in "/\u2044":
        return text
    return text if said.isdigit() and not before.isdigit() else f"_{grouped(said)}"


def grouped(text: str) -> str:
    """Return a script in parentheses if it is more than a word or number."""
    return text if SIMPLE.fullmatch(text) or not text else f"({text})"


class Formula:
    """Writes MathML as text, once: its TeX, its alternative text, or what it shows."""

    def __init__(self, inline: list[str]) -> None:
        self._inline = inline
        self._start = 0  # index in `inline`
        self._open: list[tuple[str, int]] = []  # tag and number of children of each element
        self._groups: list[int] = []  # indices in `inline` of parts of scripts and fractions

    def start(self, tag: str, attributes: Mapping[str, str]) -> int:
        """Note an element; return whether it is hidden."""
        kind = 0
        if tag == "math":
            self._start, self._open = len(self._inline), []
            if alternative := attributes.get("alttext", "").strip():
                self._inline.append(DISPLAYED.sub(r"\1", alternative))
                kind = HIDDEN
        elif tag == "annotation":
            if "tex" in attributes.get("encoding", "").lower():
                del self._inline[self._start :]
            else:
                kind = HIDDEN
        if self._open:
            parent, n = self._open[-1]
            self._open[-1] = parent, n + 1
            if n and parent in JOINS:
                self._inline.append(JOINS[parent][n - 1 : n])
        self._open.append((tag, 0))
        self._groups.append(len(self._inline))
        return kind

    def end(self, tag: str) -> None:
        """Write the parentheses of an element that has ended."""
        if not self._open:
            return
        self._open.pop()
        at = self._groups.pop()
        is_group = tag == "mrow" and self._open and self._open[-1][0] in JOINS
        if not (is_group or tag == "msqrt") or sum(map(len, self._inline[at:])) > MAX_SCRIPT:
            return
        text = "".join(self._inline[at:])
        self._inline[at:] = [grouped(text) if is_group else f"√({text})"]
