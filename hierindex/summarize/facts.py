"""Facts in a sentence that its sources lack: numbers with units, names, and quoted words."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from unicodedata import combining, normalize

from hierindex.text.sentences import tokens
from hierindex.text.words import UNTITLED, language_of

WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand million billion trillion"
).split()
LARGE = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}  # powers of ten
VALUES = dict(zip(WORDS, [*range(20), *range(20, 100, 10)], strict=False)) | {
    word: 10**power for word, power in LARGE.items()
}
SCALES = LARGE | {"k": 3, "m": 6, "mn": 6, "mio": 6, "bn": 9, "mrd": 9}
SPELLED = re.compile(
    rf"(?i)\b(?:{'|'.join(WORDS)})(?:[\s-]+(?:and[\s-]+)?(?:{'|'.join(WORDS)}))*\b"
)
NUMBER = re.compile(
    r"(?i)(?<![^\W\d_])(\d+(?:[.,'\u2019\u00a0\u2009\u202f]\d+)*)"
    rf"(?:\s?({'|'.join(sorted(SCALES, key=len, reverse=True))})\b)?"
)
NOT_CLAIMED = re.compile(r"(?m)^\s*(?:Response )?\d{1,3}[.):]\s|\[\d[\d\s,;\u2013?*-]*\]")
"""Marks of lists, labels of LlamaIndex's several answers, and citations."""
ISO_DATE = re.compile(r"\b\d{4}-(\d\d)-\d\d\b")
MONTHS = (
    "january february march april may june july august september october november december"
).split()
UNITS = {
    form: forms.split()[0]
    for forms in (
        "% percent|$ dollar usd|\u20ac euro eur|\u00a3 gbp sterling|cent|s sec second|min minute"
        "|h hour|day|week|month|year|mm millimetre millimeter|cm centimetre centimeter|metre meter"
        "|km kilometre kilometer|inch inche|foot feet ft|yard|mile|g gram|kg kilogram kilo|lb pound"
        "|ton tonne|litre liter|\u00b0 degree|hz hertz|khz kilohertz|mb megabyte|gb gigabyte"
    ).split("|")
    for form in forms.split()
}
UNIT = re.compile(r"(?i)[\s-]?([%\u20ac$\u00a3\u00b0]|per cent|[a-z]+)")
QUOTED = re.compile(
    r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u00bb\n]{3,200})[\"\u201c\u201d\u00bb]"
)
NAME = re.compile(r"[^\W\d_][\w'\u2019-]*")
OPENS = re.compile(r"(?:^|[.!?:;\"\u201c(\u2013\u2014])\W*$")  # a sentence
RUN = re.compile(r"[^\W\d_a-z]\w+(?:[ -][^\W\d_a-z]\w+)+")  # of capitalised words
LETTERS = re.compile(r"(?<![^\W_])[A-Z](?:[ ._-]{1,2}[A-Z](?![^\W_]))+")  # spelled out
TITLES = "i mr mrs ms miss dr prof sir lord lady".split()
NO_NAMES = UNTITLED.union(TITLES, UNITS) - {"may"}
STEM = 5  # letters that forms of a name share, such as "Germany" and "German"


class Facts:
    """The facts of a text, against which sentences about it are checked."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def numbers(self) -> set[Decimal]:
        """Values of all numbers, see `numbers_in`, and of the names of months."""
        named = {Decimal(i) for i, month in enumerate(MONTHS, 1) if month.title() in self.text}
        return numbers_in(self.text) | named

    @cached_property
    def measures(self) -> dict[Decimal, set[str]]:
        """The units of each number that has a unit, by the value of the number."""
        found: dict[Decimal, set[str]] = {}
        for values, unit in measures_in(self.text, NUMBER, SPELLED):
            for value in values:
                found.setdefault(value, set()).add(unit)
        return found

    @cached_property
    def words(self) -> set[str]:
        """All words, their first letters, the months in dates, and acronyms of names."""
        words = {folded(word) for word in tokens(self.text)}
        months = {MONTHS[int(n) - 1] for n in ISO_DATE.findall(self.text) if 0 < int(n) < 13}
        spelled = {re.sub(r"\W|_", "", each).lower() for each in LETTERS.findall(self.text)}
        initials = ("".join(w[0] for w in tokens(run)).lower() for run in RUN.findall(self.text))
        acronyms = {
            each[i:j] for each in initials for i in range(len(each)) for j in range(i + 2, i + 6)
        }
        return words | {word[:STEM] for word in words} | months | spelled | acronyms

    def has_name(self, name: str) -> bool:
        """Return whether a name occurs in the text, in some form or by its initials."""
        return not self.words.isdisjoint({(word := folded(name)), word[:STEM]})

    def lack(self, sentence: str) -> dict[str, list[str]]:
        """Return the facts of a sentence that the text lacks, by kind.

        Different forms of a fact are equal: 1,200 and 1.2 thousand, 2026-04-05 and 5 April,
        plurals, possessives, acronyms, and spoken forms of numbers. Quoted words may be in another
        order. Numbers written as words in the sentence are not checked, because they often count
        things.

        >>> Facts("On 4 April, Anna Berg paid 1.2 thousand euros.").lack(
        ...     "Berg's firm paid 1,200 dollars in May, and 30 more to Cole.")
        {'numbers': ['30'], 'units': ['$'], 'names': ['May', 'Cole']}
        """
        sentence = NOT_CLAIMED.sub(" ", sentence)
        quoted = (tokens(each) for each in QUOTED.findall(sentence))
        lacking = {
            "numbers": [n for n, values in values_in(sentence) if values.isdisjoint(self.numbers)],
            "units": [
                unit
                for values, unit in measures_in(sentence, NUMBER)
                if (known := set[str]().union(*(self.measures.get(v, ()) for v in values)))
                and unit not in known
            ],
            "names": [name for name in names_in(sentence) if not self.has_name(name)],
            "quotes": [" ".join(each) for each in quoted if not all(map(self.has_name, each))],
        }
        return {kind: found for kind, found in lacking.items() if found}


def folded(word: str) -> str:
    """Return a word in lower case, without accents and the ending of a plural or possessive.

    >>> [folded(word) for word in ("Zo\u00eb\u2019s", "Boyars", "S")]
    ['zoe', 'boyar', 's']
    """
    plain = "".join(c for c in normalize("NFKD", word.casefold()) if not combining(c))
    return plain.replace("\u2019", "'").removesuffix("'s").rstrip("'").rstrip("s") or plain


def names_in(sentence: str) -> Iterator[str]:
    """Yield the words of a text that may be names, because they are capitalised.

    The first word of a sentence counts only before another capitalised word. In German, where all
    nouns are capitalised, there are none.

    >>> list(names_in("Yesterday the team met Anna-Maria Berg, the CEO. Old Mill Road was shut."))
    ['Anna', 'Maria', 'Berg', 'CEO', 'Mill', 'Road']
    """
    found = [] if language_of(sentence) == "de" else list(NAME.finditer(sentence))
    for match in found:
        word, before = match[0], sentence[: match.start()]
        if not word[0].isupper() or len(word) < 2 or word.lower() in NO_NAMES:
            continue
        after = sentence[match.end() :]
        if OPENS.search(before) and not (word.isupper() or re.match(" [^\\W\\d_a-z]", after)):
            continue
        yield from (part for part in word.split("-") if len(part) > 1 and part[0].isupper())


def values_in(text: str) -> Iterator[tuple[str, set[Decimal]]]:
    """Yield each number in digits with its possible values, also each part of a date.

    An ambiguous number has several values: "1.200" is 1.2, or 1200 if points group digits, and "5
    m" is five, or five million.
    """
    for match in NUMBER.finditer(text):
        number, scale = match[1], (match[2] or "").lower()
        parts, marks = re.split(r"\D", number), re.sub(r"\d", "", number)
        values, is_grouped = set[Decimal](), all(len(part) == 3 for part in parts[1:])
        if is_grouped:
            values.add(Decimal("".join(parts)))
        if marks[-1:] in ({"."} if is_grouped else {".", ","}) and marks.count(marks[-1]) == 1:
            values.add(Decimal(f"{''.join(parts[:-1])}.{parts[-1]}"))
        scaled = {value.scaleb(SCALES[scale]) for value in values} if scale else set[Decimal]()
        if values:
            yield number, scaled | (values if scale not in LARGE else set())
        else:
            yield from ((part, {Decimal(part)}) for part in parts)


def numbers_in(text: str) -> set[Decimal]:
    """Return the values of all numbers in a text, in digits or English words.

    A number of several words also has the values of its single words and beginnings. Two
    consecutive numbers below 100 also have the value of a spoken price or year.

    >>> sorted(map(str, numbers_in("The 4th of twenty-five, 12.50 of 1,200")))
    ['12.50', '1200', '20', '25', '4', '5']
    >>> {Decimal("12.50"), Decimal(1250)} <= numbers_in("for twelve fifty")
    True
    """
    values = set[Decimal]().union(*(each for _, each in values_in(text)))
    for number in map(str.lower, SPELLED.findall(text)):
        total, small = 0, list[int]()
        for value in (VALUES[word] for word in re.findall("[a-z]+", number) if word != "and"):
            below = total % value if value >= 100 else 0  # what "hundred" multiplies
            total += max(below, 1) * value - below
            values |= {Decimal(value), Decimal(total)}
            if value < 10 and small and small[-1] >= 20 and small[-1] % 10 == 0:
                small[-1] += value
            elif value < 100:
                small.append(value)
        for a, b in pairwise(small):
            values |= {Decimal(100 * a + b), Decimal(f"{a}.{b:02}"), Decimal(f"{a}.{b}")}
    return values


def measures_in(text: str, *numbers: re.Pattern[str]) -> Iterator[tuple[set[Decimal], str]]:
    """Yield the values and the unit of each number with a unit; `numbers` match the numbers."""
    for match in (match for form in numbers for match in form.finditer(text)):
        before = text[max(0, match.start() - 1) : match.start()]
        after = UNIT.match(text, match.end())
        named = folded(after[1]).replace(" ", "") if after else ""
        if unit := UNITS.get(before) or UNITS.get(named):
            yield numbers_in(match[0]), unit
