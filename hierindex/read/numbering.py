"""The numbers that Word computes for headings, clauses and lists."""

import re
from collections import defaultdict
from typing import Any, NamedTuple

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
VAL = f"{W}val"
BULLET = "-"
LEVELS = 9
MAX_TEXT = 100  # characters around a number
ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        "m cm d cd c xc l xl x ix v iv i".split(),
        strict=True,
    )
)
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
MOST_REPEATED = 10  # letters; Word counts a, b, ... z, aa, bb


class Level(NamedTuple):
    """How the paragraphs of a level are numbered."""

    start: int = 1
    format: str = "decimal"
    text: str = ""
    restart: int | None = None  # restarts after levels above this one; by default after all
    is_legal: bool = False  # all its numbers are decimal
    style: str = ""


class Numbering:
    """Counts the numbered paragraphs of a document in their order.

    Parameters
    ----------
    root : element or None
        Of the part `numbering.xml`.
    """

    def __init__(self, root: Any) -> None:
        self._abstract = dict[str, dict[int, Level]]()  # levels by the id of an abstract list
        self._nums = dict[str, tuple[str, dict[int, int], dict[int, Level]]]()
        self._counts = defaultdict[str, dict[int, int]](dict)
        self._begun = set[tuple[str, int]]()
        if root is None:
            return
        linked = dict[str, str]()  # abstract lists by the style that they define
        links = dict[str, str]()
        for abstract in root.iterfind(f"{W}abstractNum"):
            name = abstract.get(f"{W}abstractNumId", "")
            self._abstract[name] = _levels(abstract)
            if style := _value(abstract, "styleLink"):
                linked[style] = name
            if style := _value(abstract, "numStyleLink"):
                links[name] = style
        for num in root.iterfind(f"{W}num"):
            starts, replaced = dict[int, int](), dict[int, Level]()
            for override in num.iterfind(f"{W}lvlOverride"):
                level = _number(override.get(f"{W}ilvl"))
                if start := _value(override, "startOverride"):
                    starts[level] = _number(start)
                replaced |= _levels(override)
            name = _value(num, "abstractNumId")
            name = linked.get(links.get(name, ""), name)
            self._nums[num.get(f"{W}numId", "")] = name, starts, replaced

    def level_of(self, num: str, style: str) -> int:
        """Return the level of a list to which a paragraph style belongs."""
        levels = self._levels(num)
        return next((i for i, level in levels.items() if level.style == style), 0)

    def _levels(self, num: str) -> dict[int, Level]:
        name, _, replaced = self._nums.get(num, ("", {}, {}))
        return self._abstract.get(name, {}) | replaced

    def next(self, num: str, level: int) -> str | None:
        """Count a paragraph, and return its number, or None if it is in no list."""
        levels = self._levels(num)
        if level not in levels:
            return None
        name, starts, _ = self._nums[num]
        counts, found = self._counts[name], levels[level]
        begins = level in starts and (num, level) not in self._begun
        self._begun.add((num, level))
        if begins or level not in counts:
            counts[level] = starts.get(level, found.start)
        else:
            counts[level] += 1
        for deeper in range(level + 1, LEVELS):
            restart = levels.get(deeper, Level()).restart
            if restart is None or level < restart:
                counts.pop(deeper, None)
        if found.format == "bullet":
            return BULLET

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            each = levels.get(at, Level())
            count = counts.get(at, starts.get(at, each.start))
            return formatted(count, "decimal" if found.is_legal else each.format)

        return re.sub(r"%([1-9])", shown, found.text).strip()


def formatted(n: int, kind: str) -> str:
    """Return a number in a format of Word; in Arabic digits if the format is another.

    >>> [formatted(28, kind) for kind in ("lowerLetter", "upperRoman", "ordinal", "ordinalText")]
    ['bb', 'XXVIII', '28th', 'Twenty-eighth']
    """
    if kind == "none":
        return ""
    if kind == "decimalZero":
        return f"{n:02}"
    if kind == "ordinal":
        ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
        return f"{n}{ending}"
    if kind.endswith("Letter") and 0 < n <= 26 * MOST_REPEATED:
        letters = chr(ord("a") + (n - 1) % 26) * ((n - 1) // 26 + 1)
        return letters.upper() if kind.startswith("upper") else letters
    if kind.endswith("Roman") and 0 < n < 4000:
        letters = ""
        for value, letter in ROMAN:
            letters += letter * (n // value)
            n %= value
        return letters.upper() if kind.startswith("upper") else letters
    if kind in ("cardinalText", "ordinalText") and 0 <= n < 100:
        return _in_words(n, ordinal=kind == "ordinalText").capitalize()
    return str(n)


def _in_words(n: int, *, ordinal: bool) -> str:
    first, last = (TENS[n // 10 - 2], ONES[n % 10] if n % 10 else "") if n >= 20 else ("", ONES[n])
    if not last:
        return f"{first[:-1]}ieth" if ordinal else first
    if ordinal:
        last = ORDINALS.get(last, f"{last}th")
    return f"{first}-{last}" if first else last


def _levels(element: Any) -> dict[int, Level]:
    found = map(_level, element.iterfind(f"{W}lvl"))
    return {at: level for at, level in found if at < LEVELS}


def _level(element: Any) -> tuple[int, Level]:
    restart = _value(element, "lvlRestart")
    legal, hidden = element.find(f"{W}isLgl"), element.find(f"{W}rPr/{W}vanish")
    return _number(element.get(f"{W}ilvl")), Level(
        _number(_value(element, "start") or "1"),
        _value(element, f".//{W}numFmt") or "decimal",
        _value(element, "lvlText")[:MAX_TEXT] if hidden is None else "",
        _number(restart) if restart else None,
        legal is not None and legal.get(VAL) not in ("0", "false"),
        _value(element, "pStyle"),
    )


def _value(element: Any, name: str) -> str:
    found = element.find(name if name.startswith(".") else W + name)
    return "" if found is None else found.get(VAL) or ""


def _number(text: str | None) -> int:
    """Return a whole number of at most nine digits, or 0."""
    text = (text or "").strip()
    return int(text) if text.isdecimal() and len(text) < 10 else 0
