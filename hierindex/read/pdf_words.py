"""Words of PDF files: ligatures, and hyphens at the ends of lines."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

HYPHEN = "\ufffe"  # how PDFium reads a hyphen with the line end after it
UNICODE = dict(
    zip("\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06", "ff fi fl ffi ffl st st".split(), strict=True)
)
CONTROLS = {
    **dict(zip("\x0b\x0c\x0e\x0f", "ff fi ffi ffl".split(), strict=True)),
    **dict(
        zip(
            "\x10\x11\x12\x13\x14\x15\x16",
            "\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014",
            strict=True,
        )
    ),
    "\x17": "",
    "\x18": "",
    "\x19": "\u0131",
    "\x1a": "\u0237",
    **dict(zip("\x1b\x1c\x1d\x1e\x1f", "ff fi fl ffi ffl".split(), strict=True)),
}
"""Letters of LaTeX's fonts where others have control characters: OT1 to \\x0f, then T1 (Cork)."""
LATIN, CONTROL = r"[0-9A-Za-z\u00c0-\u024f]", r"[\x0b\x0c\x0e-\x1f]+"
BESIDE_LATIN = re.compile(rf"(?<={LATIN}|[.,]){CONTROL}|{CONTROL}(?={LATIN})")
TO_LETTERS = str.maketrans(UNICODE)
UNPRINTABLE = str.maketrans(dict.fromkeys("\f\r\n", " ") | dict.fromkeys("\0\x02", ""))
WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
ENDING = 3  # letters that may differ in another form of a word
HYPHENS = re.compile(r"[-\u2010]")
TOKEN = 100  # characters beside a hyphen that are looked at
LAST, FIRST = re.compile(r"[^\W_]*$"), re.compile(r"[^\W_]*")


def with_letters(text: str) -> str:
    """Return the text of a line with letters for ligatures and without control characters."""
    text = BESIDE_LATIN.sub(lambda found: "".join(map(CONTROLS.__getitem__, found[0])), text)
    return text.translate(TO_LETTERS).translate(UNPRINTABLE)


class Vocabulary:
    """The words of a document that are not divided at the end of a line."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._counts: Counter[str] = Counter()
        for line in lines:
            for part in line.casefold().split():
                if HYPHEN not in part:
                    self._counts.update(WORD.findall(part))
        for word in [*self._counts]:
            parts = HYPHENS.split(word)
            self._counts.update(parts if len(parts) > 1 else [])
        self._words = sorted(self._counts)

    def _has_form_of(self, word: str, least: int) -> bool:
        """Return whether there is a word with the same letters but for its ending."""
        stem = word[: max(least, len(word) - ENDING)]
        at = bisect_left(self._words, stem)
        return at < len(self._words) and self._words[at].startswith(stem)

    def undivided(self, text: str) -> str:
        """Join the words of a line that are divided by line ends.

        The hyphen is kept beside digits, within addresses and before capital letters, and where
        the document has the two parts but not the joined word.
        """
        done, *rest = text.split(HYPHEN)
        parts = [done]
        for part in rest:
            if self._is_hyphen(parts[-1][-TOKEN:], part[:TOKEN]):
                parts.append("-")
            parts.append(part)
        return "".join(parts)

    def _is_hyphen(self, before: str, after: str) -> bool:
        """Return whether a word has the hyphen that stands between these characters."""
        before, after = (before.split() or [""])[-1], (after.split() or [""])[0]
        left, right = LAST.findall(before)[0], FIRST.findall(after)[0]
        if not (left + right).isalpha() or not left or not right:
            return True
        first, second = left.casefold(), right.casefold()
        n_joined, n_kept = (self._counts[first + between + second] for between in ("", "-"))
        if n_joined or n_kept:
            return n_kept > n_joined
        before, after = before[: -len(left)], after[len(right) :]
        in_address = re.search(r"[@/\\_]|\w\.", before) or re.match(r"[@/\\_]|[.:]\w", after)
        if in_address or right[0].isupper() or (len(left) > 1 and left.isupper()):
            return True
        if self._has_form_of(first + second, len(first) + 2):
            return False
        known = [self._counts[part] > 0 for part in (first, second)]
        return all(known) or (known[0] and before.endswith(("-", "\u2010")))
