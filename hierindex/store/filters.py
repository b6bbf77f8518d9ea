"""Metadata filters and their meaning; `prefilter` evaluates them in LanceDB as far as possible."""

import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from hierindex.core.arguments import require
from hierindex.errors import InputError
from hierindex.node import PREFIX

if TYPE_CHECKING:
    from llama_index.core.vector_stores.types import MetadataFilters

MOST_DEEP = 12  # LanceDB parses 48 nested expressions, and NOT needs three per level
COLUMNS = ("id", "kind", "level", "level_max", "whole_document")
OF_NODE = tuple(PREFIX + column for column in COLUMNS)
"""Keys that refer to the node itself; all others refer to the chunks under it."""
DOCUMENTS = PREFIX + "documents"
OURS = (DOCUMENTS, *OF_NODE)


Comparison = Literal["==", "!=", "<", "<=", ">", ">="]
OfText = Literal["text_match", "text_match_insensitive"]
OfList = Literal["in", "nin", "any", "all", "contains", "is_empty"]
Op = Comparison | OfText | OfList
"""LlamaIndex's operators."""


@dataclass(frozen=True)
class Filter:
    """A condition on the metadata value of a key; see `holds` for its meaning."""

    key: str
    value: Any
    operator: Op = "=="


@dataclass(frozen=True)
class Filters:
    """Several filters: all must hold, at least one must hold, or none may hold."""

    filters: "tuple[Filter | Filters, ...]" = ()
    condition: Literal["and", "or", "not"] = "and"

    @classmethod
    def of(cls, given: "MetadataFilters | Filters | None") -> "Filters | None":
        """Convert LlamaIndex's filters to this form; None if no filters are given.

        Raises
        ------
        InputError
            If they are of another type, or nested deeper than LanceDB can parse.
        """
        if not given:
            return None
        require(hasattr(given, "filters"), "filters", "MetadataFilters", given)
        if not given.filters:
            return None
        return given if isinstance(given, cls) else cls._of(given)

    @classmethod
    def _of(cls, given: Any, depth: int = 1) -> "Filters":
        if depth > MOST_DEEP:
            raise InputError(
                f"Filters are nested more than {MOST_DEEP} deep; put filters with the same "
                "condition into one MetadataFilters."
            )
        filters = tuple(
            cls._of(each, depth + 1)
            if hasattr(each, "filters")
            else Filter(each.key, each.value, each.operator.value)
            for each in given.filters
        )
        condition: Any = given.condition or "and"
        return cls(filters, getattr(condition, "value", condition))


OPPOSITE: dict[Op, Op] = {"!=": "==", "nin": "in"}
COMPARED: dict[Op, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Part = Filter | Filters


def filtered_by(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's values by filter key: metadata, its document's metadata, and columns."""
    source = json.loads(row["source"])["metadata"] if row["source"] else {}
    metadata = json.loads(row["metadata"])
    return {**source, **metadata, DOCUMENTS: row["documents"], **columns_of(row)}


def columns_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's values for the keys `OF_NODE`."""
    return {PREFIX + column: row[column] for column in COLUMNS}


def is_of_node(filters: Part) -> bool | None:
    """Return True if all keys of filters refer to the node itself, False if none do, else None."""
    asked = {key in OF_NODE for key in keys(filters)}
    return asked.pop() if len(asked) == 1 else None if asked else True


def keys(filters: Part) -> set[str]:
    """Return the keys that filters use."""
    if isinstance(filters, Filter):
        return {filters.key}
    return {key for each in filters.filters for key in keys(each)}


NOTHING = Filters(condition="or")
EVERYTHING = Filters()


def with_known(filters: Filters, known: Mapping[str, str], instead: Filters = NOTHING) -> Filters:
    """Rename the keys of filters; a condition on an unknown key matches nothing.

    Parameters
    ----------
    filters : Filters
    known : mapping of str to str
        New keys by the old ones.
    instead : Filters
        Replaces a condition on an unknown key. Inside a NOT the opposite is used, so that the NOT
        matches nothing, too.
    """
    if filters.condition == "not":
        instead = EVERYTHING if instead == NOTHING else NOTHING
    parts: list[Part] = []
    for f in filters.filters:
        if isinstance(f, Filters):
            parts.append(with_known(f, known, instead))
        else:
            name = known.get(f.key)
            parts.append(instead if name is None else replace(f, key=name))
    return Filters(tuple(parts), filters.condition)


def asks_for_member(f: Filter) -> bool:
    """Return whether a filter is `=` or `in` on documents, which test for a common member."""
    return f.key == DOCUMENTS and (
        f.operator == "in" or (f.operator == "==" and not isinstance(f.value, list))
    )


def conjuncts(filters: Part) -> list[Part]:
    """Split filters into the smallest ones that give the same result when combined with AND."""
    if isinstance(filters, Filter) or filters.condition == "or":
        return [filters]
    if filters.condition == "not":
        return [Filters((each,), "not") for each in filters.filters]
    return [part for each in filters.filters for part in conjuncts(each)]


def settled(filters: Filters, place: Mapping[str, Any]) -> Filters:
    """Replace the filters on a node itself by their result; the others are evaluated on chunks.

    Parameters
    ----------
    filters : Filters
    place : mapping
        The node's values of the keys `OF_NODE`.
    """
    parts: list[Part] = []
    for f in filters.filters:
        if isinstance(f, Filters):
            parts.append(settled(f, place))
        elif f.key in OF_NODE:
            parts.append(EVERYTHING if holds(Filters((f,)), place) else NOTHING)
        else:
            parts.append(f)
    return Filters(tuple(parts), filters.condition)


def holds(filters: Filters, metadata: Mapping[str, Any]) -> bool:
    """Return whether a node's metadata pass the filters.

    Values are compared without conversion: a number never equals its digits, and an ordering of
    unlike types is false. A missing key passes only NE, NIN and IS_EMPTY. NOT passes if none of
    its filters holds.

    Examples
    --------
    >>> cheap = Filter(key="price", value=3, operator="<")
    >>> holds(Filters((cheap,)), {"price": 2})
    True
    """
    results = (
        holds(f, metadata) if isinstance(f, Filters) else _passes(f, metadata.get(f.key))
        for f in filters.filters
    )
    match filters.condition:
        case "or":
            return any(results)
        case "not":
            return not any(results)
    return all(results)


def _passes(f: Filter, found: Any) -> bool:
    if found is None:
        return f.operator in ("!=", "nin", "is_empty")
    if f.operator in OPPOSITE:
        return not _passes(replace(f, operator=OPPOSITE[f.operator]), found)
    wanted: Any = f.value
    many = wanted if isinstance(wanted, list) else [wanted]
    inside = found if isinstance(found, list) else [found]
    if asks_for_member(f) or f.operator == "any":
        return any(_same(item, value) for item in inside for value in many)
    match f.operator:
        case "==":
            return _same(found, wanted)
        case "in":
            return any(_same(found, value) for value in many)
        case "all":
            return all(any(_same(item, value) for item in inside) for value in many)
        case "contains":
            return isinstance(found, list) and any(_same(item, wanted) for item in found)
        case "is_empty":
            return found in ("", [])
        case "text_match":
            return isinstance(found, str) and str(wanted) in found
        case "text_match_insensitive":
            return isinstance(found, str) and str(wanted).casefold() in found.casefold()
    return _ordered(f.operator, found, wanted)


def _same(a: Any, b: Any) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _ordered(op: Op, a: Any, b: Any) -> bool:
    alike = isinstance(a, str) and isinstance(b, str)
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    if not (alike or numbers):
        return False
    return bool(COMPARED[op](a, b))
