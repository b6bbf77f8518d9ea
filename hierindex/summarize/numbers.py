"""Numbers in texts, compared by their values."""

import re
from collections.abc import Iterator
from decimal import Decimal

WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred thousand million billion"
).split()
VALUES = dict(zip(WORDS, [*range(20), *range(20, 100, 10), 100, 10**3, 10**6, 10**9], strict=True))
WORD = "|".join(WORDS)
SPELLED = re.compile(rf"\b(?:{WORD})(?:[\s-]+(?:and[\s-]+)?(?:{WORD}))*\b")
NUMBER = re.compile(r"(?<![^\W\d_])\d+(?:[.,'’\u00a0\u2009\u202f]\d+)*")  # noqa: RUF001
NOT_CLAIMED = re.compile(r"(?m)^\s*(?:Response )?\d{1,3}[.):]\s|\[\d[\d\s,;–?-]*\]")  # noqa: RUF001
"""Marks of lists, labels of LlamaIndex's several answers, and citations."""


def numbers_in(text: str) -> set[Decimal]:
    """Return the values of all numbers in a text, in digits or English words.

    A number that can be read in two ways has both values: "1.200" is 1.2, or 1200 where points
    group digits. A number in several words also has the values of its words and beginnings.

    >>> sorted(map(str, numbers_in("The 4th of twenty-five, 12.50 of 1,200")))
    ['12.50', '1200', '20', '25', '4', '5']
    """
    values = set[Decimal]().union(*_values(text))
    for number in SPELLED.findall(text.lower()):
        total = 0
        for value in (VALUES[word] for word in re.findall("[a-z]+", number) if word != "and"):
            below = total % value if value >= 100 else 0  # what "hundred" multiplies
            total += max(below, 1) * value - below
            values |= {Decimal(value), Decimal(total)}
    return values


def has_other_number(sentence: str, known: set[Decimal]) -> bool:
    """Return whether a sentence has a number in digits that is not known.

    Numbers in words are not compared: in people's true summaries, more of these are unknown.

    >>> has_other_number("2. It cost $1200.00 [3].", numbers_in("for 1,200 dollars"))
    False
    """
    return any(map(known.isdisjoint, _values(NOT_CLAIMED.sub(" ", sentence))))


def _values(text: str) -> Iterator[set[Decimal]]:
    """Yield the possible values of each number in digits; each part of a date is a number."""
    for number in NUMBER.findall(text):
        parts, marks = re.split(r"\D", number), re.sub(r"\d", "", number)
        values, is_grouped = set[Decimal](), all(len(part) == 3 for part in parts[1:])
        if is_grouped:
            values.add(Decimal("".join(parts)))
        if marks[-1:] in ({"."} if is_grouped else {".", ","}) and marks.count(marks[-1]) == 1:
            values.add(Decimal(f"{''.join(parts[:-1])}.{parts[-1]}"))
        yield from [values] if values else ({Decimal(part)} for part in parts)
