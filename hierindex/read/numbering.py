"""Numbers as office programs display them: in cells, headings and lists."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any, NamedTuple

from hierindex.read.marks import label

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
VAL = f"{W}val"
BULLET = "-"
SHAPES = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}
LEVELS = 9
MAX_TEXT = 100  # characters around a number
MOST_REPEATED = 10  # letters; Word counts a, b, ... z, aa, bb
PART = re.compile(  # of a number format: a literal text, a space, a currency, a condition, digits
    r'"([^"]*)"|\\(.)|[_*].|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|(?P<digits>[#0?][#0?,.]*)', re.DOTALL
)
GENERAL = re.compile("general", re.IGNORECASE)
CONDITION = re.compile(r"\[[<>=]")
EPOCH = datetime(1899, 12, 30)
MOST_DAYS = 2_958_466  # to the year 10000


class Level(NamedTuple):
    """The numbering of the paragraphs of a level."""

    start: int = 1
    format: str = ""
    text: str = ""
    restart: int = LEVELS  # restarts after the levels above this one
    is_legal: bool = False  # all its numbers are decimal
    style: str = ""


Levels = dict[int, Level]


def value(element: Any, path: str) -> str:
    """Return the value of the first element at a path, or ""."""
    found = element.find(path)
    return "" if found is None else found.get(VAL) or ""


def whole(text: str | None, default: int = 0) -> int:
    """Parse a whole number of at most nine digits; return the default for other texts."""
    return int(text) if text and text.isdecimal() and len(text) < 10 else default


class Numbering:
    """Counts the numbered paragraphs of a document, in order.

    Parameters
    ----------
    root : element or empty sequence
        Root element of the part `numbering.xml`.
    """

    def __init__(self, root: Any) -> None:
        self._lists = dict[str, tuple[str, Levels, dict[int, int]]]()  # levels, and their starts
        self._counts = defaultdict[str, dict[int, int]](dict)  # of abstract lists, by level
        self._begun = set[str]()
        abstract, styles, links = dict[str, Levels](), dict[str, str](), dict[str, str]()
        for each in (each for each in root if each.tag == f"{W}abstractNum"):
            name = each.get(f"{W}abstractNumId", "")
            abstract[name] = _levels(each.iterfind(f"{W}lvl"))
            links[name] = value(each, f"{W}numStyleLink")
            if style := value(each, f"{W}styleLink"):
                styles[style] = name
        for num in (each for each in root if each.tag == f"{W}num"):
            name = value(num, f"{W}abstractNumId")
            name = styles.get(links.get(name, ""), name)
            replaced = _levels(num.iterfind(f"{W}lvlOverride/{W}lvl"))
            starts = {
                whole(each.get(f"{W}ilvl")): whole(start)
                for each in num.iterfind(f"{W}lvlOverride")
                if (start := value(each, f"{W}startOverride"))
            }
            self._lists[num.get(f"{W}numId", "")] = name, abstract.get(name, {}) | replaced, starts

    def next(self, num: str, level: str, style: str) -> tuple[str, int]:
        """Count a paragraph; return its number, or "" if it has none, and its level.

        Parameters
        ----------
        num : str
            Id of the list.
        level : str
            Level in the list; if "", the level to which the style belongs.
        style : str
            Id of the paragraph's style.
        """
        name, levels, starts = self._lists.get(num, ("", {}, {}))
        belongs = (at for at, each in levels.items() if style and each.style == style)
        depth = whole(level) if level else next(belongs, 0)
        if depth not in levels:
            return "", depth
        counts, found = self._counts[name], levels[depth]
        if num not in self._begun:
            self._begun.add(num)
            for at in starts:
                counts.pop(at, None)

        def count(at: int) -> int:
            return counts.get(at, starts.get(at, levels.get(at, Level()).start))

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            return formatted(count(at), "" if found.is_legal else levels.get(at, Level()).format)

        counts[depth] = count(depth) + (depth in counts)
        for deeper in range(depth + 1, LEVELS):
            if depth < levels.get(deeper, Level()).restart:
                counts.pop(deeper, None)
        if found.format == "bullet":
            return BULLET, depth
        return re.sub(r"%([1-9])", shown, found.text).strip(), depth


def _levels(elements: Iterable[Any]) -> Levels:
    found = {
        whole(each.get(f"{W}ilvl")): Level(
            whole(value(each, f"{W}start"), 1),
            value(each, f"{W}numFmt"),
            value(each, f"{W}lvlText")[:MAX_TEXT],
            whole(value(each, f"{W}lvlRestart"), LEVELS),
            each.find(f"{W}isLgl") is not None,
            value(each, f"{W}pStyle"),
        )
        for each in elements
    }
    return {at: level for at, level in found.items() if at < LEVELS}


def formatted(n: int, kind: str) -> str:
    """Format a number as Word does; in Arabic digits if the format is unknown.

    >>> [formatted(28, kind) for kind in ("lowerLetter", "upperRoman", "hebrew1")]
    ['bb', 'XXVIII', '28']
    """
    if kind == "none":
        return ""
    if kind == "decimalZero":
        return f"{n:02}"
    if kind.endswith("Letter") and n > 0:
        return label((n - 1) % 26 + 1, SHAPES[kind]) * min((n - 1) // 26 + 1, MOST_REPEATED)
    return label(n, SHAPES.get(kind, "1"))


def displayed(value: float, code: str) -> str:
    """Format a number as a spreadsheet displays it, and dates in ISO 8601.

    With formats for exponents, fractions or conditions, the number itself is returned. Zero is
    always shown.

    >>> displayed(0.125, "0.0%"), displayed(-1234.5, '#,##0.00 "EUR"'), displayed(7, "000")
    ('12.5%', '-1,234.50 EUR', '007')
    >>> displayed(45296.5, "d.m.yy h:mm"), displayed(-1e10, "d.m.yy")
    ('2024-01-05 12:00:00', '-10000000000')
    """
    if GENERAL.fullmatch(code) or CONDITION.search(code) or not math.isfinite(value):
        return f"{value:.15g}"
    positive, _, negative = GENERAL.sub("0.##########", code).partition(";")
    section = negative.partition(";")[0] if value < 0 and negative else positive
    digits = [found["digits"] for found in PART.finditer(section) if found["digits"]]
    signs = PART.sub("", section)
    if not digits and re.search("[dhmsy]", signs, re.IGNORECASE) and 0 <= value < MOST_DAYS:
        return (EPOCH + timedelta(days=value)).isoformat(" ", "seconds").removesuffix(" 00:00:00")
    if len(digits) != 1:
        return f"{value:.15g}"
    bare = digits[0].rstrip(",")  # each comma at the end stands for a thousand
    shape, _, decimals = bare.partition(".")
    scale = 2 * ("%" in signs) - 3 * (len(digits[0]) - len(bare))
    with localcontext(rounding=ROUND_HALF_UP):
        number = Decimal(repr(abs(value))).scaleb(scale)
        text = f"{number:{',' if ',' in shape else ''}.{len(decimals)}f}"
    whole, _, rest = text.partition(".")
    rest = rest[: decimals.count("0")] + rest[decimals.count("0") :].rstrip("0")
    shown = whole.rjust(shape.count("0"), "0") + (rest and f".{rest}")
    said = PART.sub(
        lambda found: shown if found["digits"] else "".join(filter(None, found.groups())),
        section,
    )
    sign = "-" if value < 0 and not {"-", "("} & {*said} else ""
    return " ".join(f"{sign}{said}".split())
