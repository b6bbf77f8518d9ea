"""The text of a model's answer, in which numbers in brackets cite passages."""

import re
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

YEARS = 1_000  # numbers from this are citations only if a passage has them
LONGEST = 100  # characters between brackets
MOST_IN_RANGE = 20  # numbers
# Blanks and brackets are limited, so that a search takes linear time.
NUMBER = r"[1-9]\d{,3}"
RANGE = rf"{NUMBER}(?:\s*[-\u2010-\u2014]\s*{NUMBER})?"
LABEL = r"(?i:(?:passage|source)s?\s\s*|[#^])?"
RANGES = rf"{RANGE}(?:\s*(?:[,;&]|and\b)\s*{LABEL}{RANGE})*"
NUMBERS = re.compile(rf"\s*{LABEL}({RANGES})\s*(?:\u2020.*)?")  # as in OpenAI's "[1\u2020source]"
INSIDE = rf"[^\[\]\u3010\u3011\n`]{{,{LONGEST}}}"
NOT_AFTER_VARIABLE = r"(?<!(?<!\w)[a-z])"
BRACKETS = rf"[ \t]{{,9}}{NOT_AFTER_VARIABLE}[\[\u3010](?P<inside>{INSIDE})[\]\u3011]"
ROUND = (  # a number only at the end of a sentence or a line
    r"(?<=\S)[ \t]{1,9}\((?P<round>[1-9]\d{,2}(?=\)(?:[.!?\u3002]|[ \t]{,9}\n))"
    r"|(?i:(?:passage|source)s?\s[^()\n`]{,30}))\)"
)
TOKEN = re.compile(rf"(?P<code>\n|`+)|{BRACKETS}|{ROUND}")
UNFINISHED = re.compile(
    rf"(?:`{{1,9}}|[ \t]{{,9}}[\[\u3010]{INSIDE}"
    r"|[ \t]{1,9}(?:\([^()\n`]{,40}(?:\)[ \t]{,9})?)?)\Z"
)
AT_THE_END = re.compile(rf"(?:\s*[\[\u3010]{RANGES}[\]\u3011])+")
# Before a number in round brackets that is no citation, as in "step (2)." or "(1), (2) or (3)."
NUMBERED = re.compile(
    r"(?i)\b(?:equation|option|part|section|step|table|and|no|or|to|[a-z])s?\W?\Z"
)


class Cited(NamedTuple):
    """The numbers of the passages cited at one point of a text, and the white space before it."""

    blanks: str
    numbers: tuple[int, ...]


Part = str | Cited


def numbers_in(text: str) -> set[int]:
    """Return the numbers in brackets in a text.

    >>> sorted(numbers_in("Two [3], three [5-7] and more [sic] [1999]."))
    [3, 5, 6, 7, 1999]
    """
    in_brackets = re.finditer(rf"{BRACKETS}|\((?P<round>{NUMBER})\)", text)
    insides = (match["inside"] or match["round"] for match in in_brackets)
    ranges = (each for inside in insides for each in _ranges(inside) or ())
    return {number for first, last in ranges for number in range(first, last + 1)}


def cited_end(text: str, end: int) -> int:
    """Return the end of the citations that follow `text[:end]`, or `end` if there are none.

    >>> cited_end("One. [3][4] Two.", 4)
    11
    """
    match = AT_THE_END.match(text, end)
    return match.end() if match else end


class CitedText:
    """A streamed answer of a model, in which citations of known passages are found.

    Citations of unknown passages are removed and counted. Code between backticks has no citations.
    A number in brackets directly after a single small letter is an array index, as in "a[1]", and
    not a citation. Round brackets cite a known passage as "(passage 3)", or at the end of a
    sentence or line as "(3)".

    Parameters
    ----------
    known : container of int
        Numbers of the passages.

    Examples
    --------
    >>> text = CitedText({3, 7})
    >>> [*text.read("It rained [3, 9] on M"), *text.read("ay 4 [7"), *text.read("]."), *text.end()]
    ['It rained', Cited(blanks=' ', numbers=(3,)), ' on M', 'ay 4', Cited(blanks=' ', \
numbers=(7,)), '.']
    >>> text.n_removed
    1
    """

    def __init__(self, known: Container[int]) -> None:
        self.parts: list[Part] = []
        self.n_removed: int = 0
        self._known = known
        self._held = ""  # the beginning of what may become a citation
        self._before = ""  # the end of what was read
        self._code = ""  # the backticks that began it

    def read(self, piece: str) -> list[Part]:
        """Add a piece of the text; return the parts that are now complete."""
        text = self._held + piece
        unfinished = UNFINISHED.search(text)
        end = unfinished.start() if unfinished else len(text)
        self._held = text[end:]
        return self._add(text[:end])

    def end(self) -> list[Part]:
        """Return the remaining parts at the end of the text."""
        return self._add(self._held, "\n")

    def _add(self, text: str, after: str = "") -> list[Part]:
        parts = [part for part in self._parse(self._before + text, after) if part]
        self.parts += parts
        self._before = (self._before + text)[-LONGEST:]
        return parts

    def _parse(self, text: str, after: str) -> Iterator[Part]:
        at = len(self._before)
        for token in TOKEN.finditer(text + after, at):
            if token["code"]:
                self._mark_code(token["code"])
            elif not self._code and (part := self._part(token)):
                yield text[at : token.start()]
                if part.numbers:
                    yield part
                at = token.end()
        yield text[at:]

    def _mark_code(self, mark: str) -> None:
        """Begin or end code; a line break ends code within a line."""
        if mark == "\n":
            self._code = self._code if len(self._code) > 2 else ""
        elif not self._code:
            self._code = mark
        elif mark == self._code:
            self._code = ""

    def _part(self, token: re.Match[str]) -> Cited | None:
        """Return a citation, without numbers if no passage has any; None for another text."""
        inside = token["inside"] or token["round"] or ""
        if (ranges := _ranges(inside)) is None:
            return None
        known = [[n for n in range(a, b + 1) if n in self._known] for a, b in ranges]
        if not any(known) and all(a >= YEARS for a, _ in ranges):
            return None
        if token["round"] and (not all(known) or NUMBERED.search(token.string, 0, token.start())):
            return None
        self.n_removed += sum(not numbers for numbers in known)
        numbers = dict.fromkeys(number for numbers in known for number in numbers)
        return Cited(token[0][: -len(inside) - 2], tuple(numbers))


def written(parts: Iterable[Part], labels: Iterator[str]) -> str:
    """Join parts to a text, with the next label for each cited number.

    >>> written(["It rained", Cited(" ", (7, 3)), "."], iter(["[1]", "[2?]"]))
    'It rained [1][2?].'
    """
    return "".join(
        part if isinstance(part, str) else part.blanks + "".join(next(labels) for _ in part.numbers)
        for part in parts
    )


def _ranges(inside: str) -> list[tuple[int, int]] | None:
    """Return the first and last numbers of the ranges between brackets; None for other text.

    A range of more than 20 numbers cites nothing, such as an interval of years.
    """
    match = NUMBERS.fullmatch(inside)
    if match is None:
        return None
    pairs = [re.findall(NUMBER, part[0]) for part in re.finditer(RANGE, match[1])]
    ranges = [(int(pair[0]), int(pair[-1])) for pair in pairs]
    return ranges if all(last - first < MOST_IN_RANGE for first, last in ranges) else None
