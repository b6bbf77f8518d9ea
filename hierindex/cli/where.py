"""Filters as the command line writes them: `author=Ada`, `year>=2020`."""

import re
from collections.abc import Sequence

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from hierindex.errors import InputError

COMPARED = {
    ">": FilterOperator.GT,
    ">=": FilterOperator.GTE,
    "<": FilterOperator.LT,
    "<=": FilterOperator.LTE,
    "~": FilterOperator.TEXT_MATCH_INSENSITIVE,
}
CONDITION = re.compile(r"\s*(?P<key>[^=!<>~]+?)\s*(?P<sign>!=|>=|<=|=|>|<|~)\s*(?P<value>.*)", re.S)


def filters_of(conditions: Sequence[str]) -> MetadataFilters | None:
    """Filters that hold where all conditions do; None of none.

    `=` holds of a list that has the value among others; `~` of a text that has it anywhere, in
    either case. What looks like a number is one.

    Raises
    ------
    InputError
        If a condition is none.

    Examples
    --------
    >>> filters_of(["year>=2020"]).filters[0].value
    2020
    """
    if not conditions:
        return None
    return MetadataFilters(filters=[_filter(condition) for condition in conditions])


def _filter(condition: str) -> MetadataFilter | MetadataFilters:
    parts = CONDITION.fullmatch(condition)
    if parts is None:
        raise InputError(
            f"--where takes KEY=VALUE, or !=, <, <=, >, >= or ~ for the =, got {condition!r}."
        )
    key, sign, value = parts["key"], parts["sign"], _value(parts["value"])
    if sign == "~":
        return MetadataFilter(key=key, value=parts["value"], operator=COMPARED[sign])
    if sign in COMPARED:
        return MetadataFilter(key=key, value=value, operator=COMPARED[sign])
    same = MetadataFilter.model_validate(
        {"key": key, "value": [value], "operator": FilterOperator.ANY}
    )
    if sign == "=":
        return same
    return MetadataFilters(filters=[same], condition=FilterCondition.NOT)


def _value(text: str) -> int | float | str:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
