"""Numbers as people read them."""

import re


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one.

    >>> counted(1, "chunk"), counted(2, "chunk"), counted(1200, "summary")
    ('1 chunk', '2 chunks', '1,200 summaries')
    """
    if n != 1:
        noun = re.sub("(?<=[^aeiou])y$", "ie", noun) + "s"
    return f"{n:,} {noun}"


def number(value: float | str | None) -> str:
    """Format a number; a text stays as it is."""
    match value:
        case None:
            return ""
        case str():
            return value
        case int():
            return f"{value:,}"
    return f"{round(value, 2) + 0.0:.2f}"  # no -0.00


def price_of(price: float) -> str:
    """Format a price; below 1 in hundredths of a cent, of which a small build costs some."""
    return f"{price:,.2f}" if price >= 1 else f"{price:.4f}"
