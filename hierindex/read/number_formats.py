"""Numbers as spreadsheets display them: with percent signs, currencies and their decimals."""

import math
import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_.|\*.|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[[^\]]*\]'
    r"|(?P<digits>[#0?][#0?,.]*|\.[#0?]+)|(?P<other>.)",
    re.DOTALL,
)
DATE = re.compile(r"[ymdhs]", re.IGNORECASE)
GENERAL = re.compile("general", re.IGNORECASE)
CONDITION = re.compile(r"\[[<>=]")
PLAIN = {"", "general", "@"}
MOST_DECIMALS = 30
ROUNDING = 1 + 1e-15  # so that halves are rounded up, as by spreadsheets, which have 15 digits
EXACT = 1e14  # of larger numbers, that factor would change what is shown
EPOCH = datetime(1899, 12, 30)


class Format(NamedTuple):
    """A section of a number format."""

    before: str = ""
    after: str = ""
    n_digits: int = 1  # at least so many before the decimal point
    n_decimals: int = 0  # at least
    spec: str = ".0f"
    scale: int = 0  # power of ten
    is_date: bool = False


def displayed(value: float, code: str) -> str:
    """Return a number as a format of a spreadsheet displays it.

    Formats with exponents, fractions or conditions show the number itself. Zero is always shown.

    >>> displayed(0.125, "0.0%"), displayed(-1234.5, '#,##0.00 "EUR"'), displayed(7, "000")
    ('12.5%', '-1,234.50 EUR', '007')
    """
    if not math.isfinite(value):
        return str(value)
    shape = _section(code, value < 0)
    if shape is None:
        return f"{value:.15g}"
    if shape.is_date:
        return _date(value)
    number = abs(value) * 10.0**shape.scale
    if number < EXACT:
        number *= ROUNDING
    whole, _, decimals = format(number, shape.spec).partition(".")
    while len(decimals) > shape.n_decimals and decimals.endswith("0"):
        decimals = decimals[:-1]
    number_text = whole.rjust(shape.n_digits, "0") + (decimals and f".{decimals}")
    sign = "-" if value < 0 and "(" not in shape.before and "-" not in shape.before else ""
    return " ".join(f"{sign}{shape.before}{number_text}{shape.after}".split())


def _date(value: float) -> str:
    try:
        found = EPOCH + timedelta(days=value)
    except OverflowError:
        return f"{value:.15g}"
    return found.isoformat(" ", "seconds").removesuffix(" 00:00:00")


@lru_cache(maxsize=1024)
def _section(code: str, is_negative: bool) -> Format | None:
    """Return how a format shows numbers of a sign, or None if as they are."""
    if code.strip().lower() in PLAIN or len(code) > 255 or CONDITION.search(code):
        return None
    code = GENERAL.sub("0.##########", code)
    sections = re.findall(r'(?:"[^"]*"|\\.|\[[^\]]*\]|[^;"\\\[]|["\\\[])+', code)
    section = sections[1] if is_negative and len(sections) > 1 else sections[0] if sections else ""
    before, after, digits, is_percent, found_date = "", "", "", False, False
    for token in TOKEN.finditer(section):
        if token["digits"]:
            if digits:  # as in fractions
                return None
            digits = token["digits"]
            continue
        other = token["other"] or ""
        if other in "Ee/" and other and digits:
            return None
        is_percent |= other == "%"
        found_date |= bool(DATE.match(other))
        literal = token["quoted"] or token["escaped"] or token["currency"] or other
        if digits:
            after += literal
        else:
            before += literal
    if not digits:
        return Format(is_date=True) if found_date else None
    whole, _, decimals = digits.partition(".")
    bare = whole.rstrip(",")
    scale = 2 * is_percent - 3 * (len(whole) - len(bare) + decimals.count(","))
    most = min(len(decimals.replace(",", "")), MOST_DECIMALS)
    return Format(
        before,
        after,
        min(bare.count("0"), MOST_DECIMALS),
        min(decimals.count("0"), most),
        f"{',' if ',' in bare else ''}.{most}f",
        scale,
    )
