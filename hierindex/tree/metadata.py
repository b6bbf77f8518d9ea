"""The metadata of parents, merged from those of their children."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hierindex.node import SECTION, SECTIONS, shared_section

MAX_DISTINCT = 10  # values per key of a parent
RANGES = frozenset(
    "page page_number page_label timestamp time date start_time end_time last_modified_date".split()
)

Merge = Callable[[list[Any]], Any]
"""Maps the children's values of one key, in order, to the parent's; None omits the key."""


def merged_metadata(
    children: Sequence[Mapping[str, Any]], rules: Mapping[str, Merge] | None = None
) -> dict[str, Any]:
    """Merge the metadata of children into that of their parent.

    A value that all children share is inherited. Pages and times (the keys in `RANGES`) become
    [min, max]. The section becomes the longest path of titles that all children share, and
    `sections` lists those of the children. Any other key becomes a list of at most `MAX_DISTINCT`
    distinct values.

    Parameters
    ----------
    children : Sequence[Mapping]
        Metadata in reading order.
    rules : Mapping[str, Merge], optional
        Replacements of these rules, by key.

    Examples
    --------
    >>> merged_metadata([{"page": 2, "by": "Ada", "to": "Bo"}, {"page": 4, "by": "Ada"}])
    {'page': [2, 4], 'by': 'Ada', 'to': ['Bo']}
    """
    rules = rules or {}
    keys = dict.fromkeys(key for child in children for key in child)
    merged = {}
    for key in keys:
        values = [child[key] for child in children if key in child]
        if key in rules:
            value = rules[key](values)
        elif len(values) == len(children) and all(other == values[0] for other in values):
            value = values[0]
        elif key == SECTION and all(isinstance(value, str) for value in values):
            value = shared_section(child.get(key, "") for child in children) or None
        elif key in RANGES:
            value = value_range(values)
        else:
            value = distinct(values)
        if value is not None:
            merged[key] = value
    sections = _flat([child.get(SECTIONS, child.get(SECTION)) for child in children])
    listed = distinct([section for section in sections if isinstance(section, str)])
    if len(listed) > 1:
        merged[SECTIONS] = listed
    return merged


def value_range(values: list[Any]) -> list[Any]:
    """Return [min, max] of values and ranges, or the distinct values if they have no order.

    >>> value_range([3, [5, 9]]), value_range(["9", "10"])
    ([3, 9], ['9', '10'])
    """
    flat = _flat(values)
    if not flat:
        return []
    if all(isinstance(v, str) and v.isdecimal() for v in flat):  # page labels
        return [min(flat, key=int), max(flat, key=int)]
    if all(isinstance(v, int | float) for v in flat) or all(isinstance(v, str) for v in flat):
        return [min(flat), max(flat)]
    return distinct(values)


def distinct(values: list[Any]) -> list[Any]:
    """Return the first `MAX_DISTINCT` distinct values, with lists flattened.

    >>> distinct(["a", ["b", "a"], {"c": 1}])
    ['a', 'b', {'c': 1}]
    """
    first: dict[str, Any] = {}
    for value in _flat(values):
        first.setdefault(json.dumps(value, sort_keys=True, default=str), value)
    return list(first.values())[:MAX_DISTINCT]


def _flat(values: list[Any]) -> list[Any]:
    return [item for v in values for item in (v if isinstance(v, list) else [v])]
