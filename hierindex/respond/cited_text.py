"""The text of a model's answer, in which numbers in brackets cite passages."""

import re
from collections.abc import Container, Iterable
from itertools import count
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


def cited_parts(
    text: str, known: Container[int], *, is_whole: bool = True
) -> tuple[list[Part], int]:
    """Find the citations of known passages in a text; return its parts and how many were removed.

    Citations of unknown passages are removed and counted. Code between backticks has no citations.
    A number in brackets directly after a single small letter is an array index, as in "a[1]", and
    not a citation. Round brackets cite a known passage as "(passage 3)", or at the end of a
    sentence or line as "(3)".

    Parameters
    ----------
    text : str
    known : container of int
        Numbers of the passages.
    is_whole : bool
        Whether the text ends there.

    Examples
    --------
    >>> cited_parts("It rained [3, 9] on Monday [7].", {3, 7})
    (['It rained', Cited(blanks=' ', numbers=(3,)), ' on Monday', \
Cited(blanks=' ', numbers=(7,)), '.'], 1)
    """
    parts, n_removed, at, code = list[Part](), 0, 0, ""
    for token in TOKEN.finditer(text + "\n" * is_whole):
        inside = token["inside"] or token["round"] or ""
        if token["code"]:
            code = _code_after(code, token["code"])
        elif not code and (ranges := _ranges(inside)) is not None:
            cites = [[n for n in range(a, b + 1) if n in known] for a, b in ranges]
            is_year = not any(cites) and all(a >= YEARS for a, _ in ranges)
            if is_year or (token["round"] and not (all(cites) and _is_citing(token))):
                continue
            n_removed += sum(not numbers for numbers in cites)
            numbers = dict.fromkeys(number for numbers in cites for number in numbers)
            cited = Cited(token[0][: -len(inside) - 2], tuple(numbers))
            parts += [text[at : token.start()], *([cited] if numbers else [])]
            at = token.end()
    return [part for part in (*parts, text[at:]) if part], n_removed


def settled(text: str) -> str:
    """Return the beginning of a streamed text, up to what may become a citation.

    >>> settled("It rained [3, 9] on Monday [7")
    'It rained [3, 9] on Monday'
    """
    begun = UNFINISHED.search(text, max(0, len(text) - 2 * LONGEST))
    return text[: begun.start()] if begun else text


def _code_after(code: str, mark: str) -> str:
    """Return the backticks that began the code after a mark; a line break ends code in a line."""
    if mark == "\n":
        return code if len(code) > 2 else ""
    return mark if not code else "" if mark == code else code


def _is_citing(token: re.Match[str]) -> bool:
    """Return whether a number in round brackets is not that of an equation, step and so on."""
    return NUMBERED.search(token.string, 0, token.start()) is None


def written(parts: Iterable[Part]) -> str:
    """Join parts to a text, with the cited numbers counted from 1.

    >>> written(["It rained", Cited(" ", (7, 3)), "."])
    'It rained [1][2].'
    """
    labels = map("[{}]".format, count(1))
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
