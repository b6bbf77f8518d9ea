"""Words of PDF files: ligatures, and hyphens at the ends of lines."""

import re
from collections import Counter
from collections.abc import Iterable

HYPHEN = "\ufffe"  # how PDFium reads a hyphen with the line end after it
CONTROLS = dict(
    enumerate(
        [*"ff fi".split(), "", *"ffi ffl “ ” „ « » \u2013 —".split(), "", "", "\u0131", "\u0237",
         *"ff fi fl ffi ffl".split()],
        start=0x0B,
    )
)  # fmt: skip
"""Letters of LaTeX's fonts where others have control characters: OT1 to \\x0f, then T1 (Cork)."""
LATIN, CONTROL = r"[0-9A-Za-z\u00c0-\u024f]", r"[\x0b\x0c\x0e-\x1f]+"
BESIDE_LATIN = re.compile(rf"(?<={LATIN}|[.,]){CONTROL}|{CONTROL}(?={LATIN})")
LETTERS = dict(enumerate("ff fi fl ffi ffl st st".split(), start=0xFB00))
LETTERS |= dict.fromkeys(b"\f\r\n", " ") | dict.fromkeys(b"\0\x02", "")
WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
AROUND = 100  # characters beside a hyphen that are looked at
LAST, FIRST = re.compile(r"[^\W_]*$"), re.compile(r"[^\W_]*")
ADDRESS = re.compile(r"[@/\\_]|\w[.:]\w")


def with_letters(text: str) -> str:
    """Return the text of a line with letters for ligatures and without control characters."""
    return BESIDE_LATIN.sub(lambda found: found[0].translate(CONTROLS), text).translate(LETTERS)


class Vocabulary:
    """The words of a document that are not divided at the end of a line."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._counts: Counter[str] = Counter()
        for line in lines:
            for part in line.casefold().split():
                for word in WORD.findall(part) if HYPHEN not in part else ():
                    self._counts.update({word, *re.split(r"[-\u2010]", word)})

    def undivided(self, text: str) -> str:
        """Join the words of a line that are divided by line ends.

        The hyphen is kept beside digits, within addresses and before capital letters, and where
        the document has the two parts but not the joined word.
        """
        return re.sub(HYPHEN, lambda found: "-" * self._is_hyphen(text, found.start()), text)

    def _is_hyphen(self, text: str, at: int) -> bool:
        """Return whether a word has the hyphen that stands in a line."""
        before, after = text[max(0, at - AROUND) : at], text[at + 1 : at + AROUND]
        left, right = LAST.findall(before)[0], FIRST.findall(after)[0]
        if not (left and right and (left + right).isalpha()):
            return True
        first, second = left.casefold(), right.casefold()
        n_joined, n_kept = (self._counts[first + between + second] for between in ("", "-"))
        if n_joined or n_kept:
            return n_kept > n_joined
        if right[0].isupper() or (len(left) > 1 and left.isupper()):
            return True
        if ADDRESS.search(before.split()[-1] + after.split()[0]):
            return True
        is_compound = before[: -len(left)].endswith(("-", "\u2010"))
        return first in self._counts and (is_compound or second in self._counts)
