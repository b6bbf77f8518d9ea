"""Numbers as spreadsheets display them: with percent signs, currencies and their decimals."""

import math
import re
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

LITERAL = r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]'  # what stands for no digits
SECTION = re.compile(
    rf"(?P<before>(?:{LITERAL}|[^#0?;.])*+)(?P<whole>[#0?,]*)(?:\.(?P<decimals>[#0?,]*))?"
    rf"(?P<after>(?:{LITERAL}|[^#0?;])*+)(?:;|$)",
    re.DOTALL,
)
SHOWN = re.compile(rf'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|{LITERAL}', re.DOTALL)
GENERAL = re.compile("general", re.IGNORECASE)
CONDITION = re.compile(r"\[[<>=]")
LONGEST = 255  # characters of a format
MOST_DECIMALS = 30
EPOCH = datetime(1899, 12, 30)
MOST_DAYS = 2_958_466  # to the year 10000


class Format(NamedTuple):
    """A section of a number format."""

    before: str
    after: str
    n_digits: int  # at least so many before the decimal point
    n_decimals: int  # at least
    spec: str  # of Python; "" of dates
    scale: int  # power of ten


def displayed(value: float, code: str) -> str:
    """Return a number as a format of a spreadsheet displays it, and dates as in ISO 8601.

    Formats with exponents, fractions or conditions show the number itself. Zero is always shown.

    >>> displayed(0.125, "0.0%"), displayed(-1234.5, '#,##0.00 "EUR"'), displayed(7, "000")
    ('12.5%', '-1,234.50 EUR', '007')
    >>> displayed(45296.5, "d.m.yy h:mm"), displayed(-1e10, "d.m.yy")
    ('2024-01-05 12:00:00', '-10000000000')
    """
    shape = _format(code, value < 0) if math.isfinite(value) else None
    if shape is None or (not shape.spec and not 0 <= value < MOST_DAYS):
        return f"{value:.15g}"
    if not shape.spec:
        return (EPOCH + timedelta(days=value)).isoformat(" ", "seconds").removesuffix(" 00:00:00")
    with localcontext(rounding=ROUND_HALF_UP):
        number = format(Decimal(repr(abs(value))).scaleb(shape.scale), shape.spec)
    whole, _, decimals = number.partition(".")
    decimals = decimals[: shape.n_decimals] + decimals[shape.n_decimals :].rstrip("0")
    text = whole.rjust(shape.n_digits, "0") + (decimals and f".{decimals}")
    sign = "-" if value < 0 and "(" not in shape.before and "-" not in shape.before else ""
    return " ".join(f"{sign}{shape.before}{text}{shape.after}".split())


@lru_cache(maxsize=1024)
def _format(code: str, is_negative: bool) -> Format | None:
    """Return how a format shows numbers of a sign, or None if as they are."""
    if GENERAL.fullmatch(code) or len(code) > LONGEST or CONDITION.search(code):
        return None
    code = GENERAL.sub("0.##########", code)
    section = SECTION.match(code)
    if section and is_negative and section.end() < len(code):
        section = SECTION.match(code, section.end())
    if section is None:
        return None
    before, after = (
        SHOWN.sub(lambda match: "".join(filter(None, match.groups())), section[name])
        for name in ("before", "after")
    )
    signs = re.sub(LITERAL, "", section["before"] + section["after"])
    whole, decimals = section["whole"], section["decimals"] or ""
    if not whole + decimals:
        return Format("", "", 0, 0, "", 0) if re.search("[dhmsy]", signs, re.IGNORECASE) else None
    bare = whole.rstrip(",")
    n_thousands = len(whole) - len(bare) + decimals.count(",")
    decimals = decimals.replace(",", "")[:MOST_DECIMALS]
    spec = f"{',' if ',' in bare else ''}.{len(decimals)}f"
    scale = 2 * ("%" in signs) - 3 * n_thousands
    return Format(before, after, bare.count("0"), decimals.count("0"), spec, scale)
