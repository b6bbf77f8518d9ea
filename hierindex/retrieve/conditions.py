"""Metadata filters written as conditions, such as `author=Ada` and `year>=2020`."""

import re
from collections.abc import Sequence
from contextlib import suppress
from math import isfinite

from hierindex.errors import InputError
from hierindex.store.filtering import with_known_keys
from hierindex.store.filters import Filter, Filters, Op, Part
from hierindex.store.snapshot import Snapshot

CONTAINED: Op = "text_match_insensitive"
COMPARED: dict[str, Op] = {">": ">", ">=": ">=", "<": "<", "<=": "<=", "~": CONTAINED}
BEGINS = "^[^=!<>~]+(!=|[<>=~])"  # a condition, for descriptions
CONDITION = re.compile(r"\s*(?P<key>[^=!<>~]+?)\s*(?P<sign>!=|>=|<=|=|>|<|~)\s*(?P<value>.*)", re.S)


def filters_of(conditions: Sequence[str] | None) -> Filters | None:
    """Return filters that match if all conditions do, or None if there are no conditions.

    `=` also matches a list that contains the value; `~` matches a string that contains it,
    ignoring case. Numeric values are compared as numbers; `=` also compares them as strings.

    Raises
    ------
    InputError
        If a condition cannot be parsed.

    Examples
    --------
    >>> filters_of(["year>=2020"]).filters[0].value
    2020
    """
    if not conditions:
        return None
    return Filters(tuple(map(_filter, conditions)))


def known_filters(conditions: Sequence[str] | None, snapshot: Snapshot) -> Filters | None:
    """Return the filters of conditions; raise InputError if no chunk has one of their keys."""
    filters = filters_of(conditions)
    return filters and with_known_keys(snapshot, filters, strict=True)


def _filter(condition: str) -> Part:
    parts = CONDITION.fullmatch(condition)
    if parts is None:
        raise InputError(
            f"A filter is KEY=VALUE (or !=, <, <=, >, >=, ~ instead of =), got {condition!r}."
        )
    key, sign, text = parts["key"], parts["sign"], parts["value"]
    number = _number(text)
    if sign in COMPARED:
        value = text if sign == "~" or number is None else number
        return Filter(key, value, COMPARED[sign])
    same = (Filter(key, [value], "any") for value in (text, number) if value is not None)
    return Filters(tuple(same), "or" if sign == "=" else "not")


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        with suppress(ValueError):
            number = kind(text)
            return number if isfinite(number) else None
    return None
