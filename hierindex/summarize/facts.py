"""Facts of a sentence that its sources lack: numbers, dates, units, names, quoted words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from unicodedata import combining, normalize

from hierindex.text.sentences import tokens
from hierindex.text.stop_words import UNTITLED, language_of

WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand million billion trillion"
).split()
VALUES = dict(
    zip(WORDS, [*range(20), *range(20, 100, 10), 100, *(10**n for n in (3, 6, 9, 12))], strict=True)
)
SCALES = {"k": 3, "m": 6, "mn": 6, "mio": 6, "bn": 9, "mrd": 9} | {
    name: n for n, name in ((3, "thousand"), (6, "million"), (9, "billion"), (12, "trillion"))
}
WORD = "|".join(WORDS)
SPELLED = re.compile(rf"\b(?:{WORD})(?:[\s-]+(?:and[\s-]+)?(?:{WORD}))*\b")
NUMBER = re.compile(
    r"(?<![^\W\d_])(\d+(?:[.,'\u2019\u00a0\u2009\u202f]\d+)*)"
    rf"(?:\s?({'|'.join(sorted(SCALES, key=len, reverse=True))})\b)?",
    re.IGNORECASE,
)
NOT_CLAIMED = re.compile(r"(?m)^\s*(?:Response )?\d{1,3}[.):]\s|\[\d[\d\s,;\u2013?*-]*\]")
"""Marks of lists, labels of LlamaIndex's several answers, and citations."""
MONTHS = (
    "january february march april may june july august september october november december"
).split()
ISO_DATE = re.compile(r"\b\d{4}-(\d\d)-\d\d\b")
UNITS = {
    form: unit
    for unit, forms in {
        "%": "% percent per\u00a0cent",
        "$": "$ dollar dollars usd",
        "\u20ac": "\u20ac euro euros eur",
        "\u00a3": "\u00a3 gbp sterling",
        "cent": "cent cents",
        "second": "s sec second seconds",
        "minute": "min minute minutes",
        "hour": "h hour hours",
        "day": "day days",
        "week": "week weeks",
        "month": "month months",
        "year": "year years",
        "mm": "mm millimetre millimetres millimeter millimeters",
        "cm": "cm centimetre centimetres centimeter centimeters",
        "m": "metre metres meter meters",
        "km": "km kilometre kilometres kilometer kilometers",
        "inch": "inch inches",
        "foot": "foot feet ft",
        "yard": "yard yards",
        "mile": "mile miles",
        "g": "g gram grams",
        "kg": "kg kilogram kilograms kilo kilos",
        "pound": "lb lbs pound pounds",
        "ton": "ton tons tonne tonnes",
        "l": "l litre litres liter liters",
        "\u00b0": "\u00b0 degree degrees",
        "hz": "hz hertz",
        "khz": "khz kilohertz",
        "mb": "mb megabyte megabytes",
        "gb": "gb gigabyte gigabytes",
    }.items()
    for form in forms.split()
}
UNIT = re.compile(r"[\s-]?([%\u20ac$\u00a3\u00b0]|[a-z]+)", re.IGNORECASE)
QUOTED = re.compile(
    r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u00bb\n]{3,200})[\"\u201c\u201d\u00bb]"
)
NAME = re.compile(r"[^\W\d_][\w'\u2019-]*")
STEM = 5  # letters that forms of a name share, such as "Germany" and "German"
SPOKEN_LETTERS = re.compile(r"(?<![^\W_])[A-Z](?:[ ._-]{1,2}[A-Z](?![^\W_]))+")
NO_NAMES = frozenset({"de"})  # languages with capitals for common nouns


@dataclass(frozen=True)
class Facts:
    """The facts of a text by which the sentences about it are judged.

    `units` are those that stand after or before each number. `stems` are the first letters of all
    words, and `initials` those of all runs of capitalised words, and letters spelled out.
    """

    text: str
    numbers: set[Decimal] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", numbers_in(self.text))

    @cached_property
    def units(self) -> dict[Decimal, set[str]]:
        found: dict[Decimal, set[str]] = {}
        for values, unit in measures_in(self.text):
            for value in values:
                found.setdefault(value, set()).add(unit)
        return found

    @cached_property
    def words(self) -> set[str]:
        """Words and what of them forms share."""
        words = {folded(word) for word in tokens(self.text)}
        iso = {
            MONTHS[int(month) - 1] for month in ISO_DATE.findall(self.text) if 1 <= int(month) <= 12
        }
        spelled = {re.sub("[ ._-]", "", each).lower() for each in SPOKEN_LETTERS.findall(self.text)}
        return words | {word[:STEM] for word in words} | spelled | iso | self._initials

    @cached_property
    def _initials(self) -> set[str]:
        runs = re.findall(r"[^\W\d_a-z]\w+(?:[ -][^\W\d_a-z]\w+)+", self.text)
        initials = ("".join(word[0] for word in re.split("[ -]", run)).lower() for run in runs)
        return {
            each[i:j]
            for each in initials
            for i in range(len(each))
            for j in range(i + 2, len(each) + 1)
        }

    def lack(self, sentence: str) -> dict[str, list[str]]:
        """Return what a sentence claims and the text lacks, by kind."""
        sentence = NOT_CLAIMED.sub(" ", sentence)
        lacking: dict[str, list[str]] = {"numbers": [], "units": [], "names": [], "quotes": []}
        for number, values in values_in(sentence):
            if values.isdisjoint(self.numbers):
                lacking["numbers"].append(number)
        for values, unit in measures_in(sentence):
            known = set[str]().union(*(self.units.get(value, set()) for value in values))
            if known and unit not in known:
                lacking["units"].append(unit)
        for name in names_in(sentence):
            word = folded(name)
            if not {word, word[:STEM]} & self.words:
                lacking["names"].append(name)
        for quoted in QUOTED.findall(sentence):
            if not {folded(word)[:STEM] for word in tokens(quoted)} <= self.words:
                lacking["quotes"].append(quoted)
        return {kind: found for kind, found in lacking.items() if found}


def folded(word: str) -> str:
    """Return a word in lower case, without accents and the ending of a plural or possessive."""
    plain = "".join(c for c in normalize("NFKD", word.casefold()) if not combining(c))
    return plain.replace("\u2019", "'").removesuffix("'s").rstrip("'").rstrip("s") or plain


def names_in(sentence: str) -> Iterator[str]:
    """Yield capitalised words, but the first of a sentence unless another follows at once."""
    if language_of(sentence) in NO_NAMES:
        return
    found = list(NAME.finditer(sentence))
    for i, word in enumerate(found):
        text = word[0]
        starts = i == 0 or re.search(r"[.!?:;\"\u201c(\u2013\u2014]\W*$", sentence[: word.start()])
        follows = (
            i + 1 < len(found)
            and found[i + 1][0][0].isupper()
            and sentence[word.end() : found[i + 1].start()] == " "
        )
        if text[0].isupper() and len(text) > 1 and text.lower() not in COMMON:
            if not starts or (follows or text.isupper()):
                yield from (
                    part for part in re.split("[-]", text) if len(part) > 1 and part[0].isupper()
                )


def values_in(text: str) -> Iterator[tuple[str, set[Decimal]]]:
    """Yield each number in digits with its possible values; each part of a date is one.

    A number that can be read in two ways has both values: "1.200" is 1.2, or 1200 where points
    group digits.
    """
    for match in NUMBER.finditer(text):
        number, scale = match[1], SCALES.get((match[2] or "").lower(), 0)
        parts, marks = re.split(r"\D", number), re.sub(r"\d", "", number)
        values, is_grouped = set[Decimal](), all(len(part) == 3 for part in parts[1:])
        if is_grouped:
            values.add(Decimal("".join(parts)))
        if marks[-1:] in ({"."} if is_grouped else {".", ","}) and marks.count(marks[-1]) == 1:
            values.add(Decimal(f"{''.join(parts[:-1])}.{parts[-1]}"))
        if values:
            yield (
                number,
                {value.scaleb(scale) for value in values}
                | (values if not match[2] or len(match[2]) == 1 else set()),
            )
        else:
            yield from ((part, {Decimal(part)}) for part in parts)


def numbers_in(text: str) -> set[Decimal]:
    """Return the values of all numbers in a text, in digits or English words."""
    values = set[Decimal]().union(*(each for _, each in values_in(text)))
    for number in SPELLED.findall(text.lower()):
        words = [VALUES[word] for word in re.findall("[a-z]+", number) if word != "and"]
        total, before = 0, None
        for value in words:
            below = total % value if value >= 100 else 0  # what "hundred" multiplies
            total += max(below, 1) * value - below
            values |= {Decimal(value), Decimal(total)}
        two = [v for v in _pairs(words)]
        for a, b in zip(two, two[1:], strict=False):
            values |= {Decimal(100 * a + b), Decimal(f"{a}.{b:02}"), Decimal(f"{a}.{b}")}
    return values


def _pairs(words: list[int]) -> list[int]:
    """Join tens and units, as in "nineteen ninety five"."""
    joined: list[int] = []
    for value in words:
        if joined and joined[-1] >= 20 and joined[-1] % 10 == 0 and 0 < value < 10:
            joined[-1] += value
        else:
            joined.append(value)
    return [v for v in joined if v < 100]


def measures_in(text: str) -> Iterator[tuple[set[Decimal], str]]:
    """Yield the numbers that have a unit."""
    for match in (*NUMBER.finditer(text), *SPELLED.finditer(text.lower())):
        values = numbers_in(match[0])
        before = text[max(0, match.start() - 1) : match.start()]
        after = UNIT.match(text, match.end())
        unit = UNITS.get(before) or (UNITS.get(after[1].lower()) if after else None)
        if unit:
            yield values, unit


COMMON = frozenset("i mr mrs ms miss dr prof sir lord lady".split()) | UNTITLED
