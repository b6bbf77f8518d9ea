"""What LlamaIndex's metadata filters mean, in Python; `prefilter` is for all rows at once."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from hierindex.errors import InputError

Op = FilterOperator
OPPOSITE = {Op.NE: Op.EQ, Op.NIN: Op.IN}
NOT = FilterCondition.NOT
Filter = MetadataFilter | MetadataFilters
MOST_DEEP = 12  # LanceDB's parser reads 48 nested expressions; NOT needs three a level
DOCUMENTS = "documents"
METADATA = "metadata."  # before a key: the user's, whatever it is called
OF_NODE = ("id", "kind", "level", "level_max", "grounding", "whole_document")
"""Keys that ask of the node itself; all others ask of the chunks under it."""


def filters_of(query: VectorStoreQuery) -> MetadataFilters | None:
    """A query's filters, node ids and document ids as one."""
    filters: list[MetadataFilter | MetadataFilters] = []
    if query.filters is not None and query.filters.filters:
        filters.append(query.filters)
    if query.node_ids:
        filters.append(MetadataFilter(key="id", value=query.node_ids, operator=Op.IN))
    if query.doc_ids:
        filters.append(MetadataFilter(key=DOCUMENTS, value=query.doc_ids, operator=Op.ANY))
    return MetadataFilters(filters=filters) if filters else None


def filtered_by(row: Mapping[str, Any]) -> dict[str, Any]:
    """What filters see of a row: its place in the tree, its metadata, and its document's.

    A user's key is seen as `metadata.<key>` too, which tells `metadata.level` from `level`.
    """
    source = json.loads(row["source"])["metadata"] if row["source"] else {}
    own = {**source, **json.loads(row["metadata"])}
    plain = {key: value for key, value in own.items() if not key.startswith(METADATA)}
    named = {METADATA + key: value for key, value in own.items()}
    grounding = row["grounding"] if row["grounding"] >= 0 else None
    place = {key: row[key] for key in OF_NODE} | {"grounding": grounding}
    return {**plain, **named, DOCUMENTS: row[DOCUMENTS], **place}


def check_depth(filters: Filter) -> None:
    """Refuse filters that are nested deeper than LanceDB reads its conditions.

    Raises
    ------
    InputError
        Names the bound.
    """
    inside, depth = [filters], 0
    while inside:
        if depth > MOST_DEEP:
            raise InputError(
                f"Filters may be nested {MOST_DEEP} deep; put conditions that are joined in the "
                "same way into one MetadataFilters."
            )
        inside = [f for each in inside if isinstance(each, MetadataFilters) for f in each.filters]
        depth += 1


def is_of_node(filters: Filter) -> bool | None:
    """Whether filters ask of a node's place in the tree alone; None where of chunks as well."""
    asked = {key in OF_NODE for key in keys(filters)}
    return asked.pop() if len(asked) == 1 else None if asked else True


def keys(filters: Filter) -> set[str]:
    """The keys that filters look at."""
    if isinstance(filters, MetadataFilter):
        return {filters.key}
    return {key for each in filters.filters for key in keys(each)}


def asks_for_member(f: MetadataFilter) -> bool:
    """Whether a filter asks if one of some documents is among a chunk's, as `=` does of them."""
    return f.key == DOCUMENTS and (
        f.operator is Op.IN or (f.operator is Op.EQ and not isinstance(f.value, list))
    )


def all_of(filters: Iterable[Filter]) -> MetadataFilters:
    """Filters that all hold, as one."""
    return MetadataFilters(filters=list(filters))


def conjuncts(filters: Filter) -> list[Filter]:
    """Filters that hold together just where these hold, each as small as can be."""
    if isinstance(filters, MetadataFilter) or filters.condition is FilterCondition.OR:
        return [filters]
    if filters.condition is NOT:
        return [MetadataFilters(filters=[each], condition=NOT) for each in filters.filters]
    return [part for each in filters.filters for part in conjuncts(each)]


def residual(filters: Filter, place: Mapping[str, Any]) -> Filter | bool:
    """What is left to ask of chunks once a node's place is known; True or False if nothing is.

    Parameters
    ----------
    filters : MetadataFilter or MetadataFilters
    place : mapping
        Values of the keys `OF_NODE`.
    """
    of_node = is_of_node(filters)
    if of_node is not None:
        return holds(all_of([filters]), place) if of_node else filters
    assert isinstance(filters, MetadataFilters)  # a single filter asks of one or the other
    parts = [residual(each, place) for each in filters.filters]
    any_holds = filters.condition in (FilterCondition.OR, NOT)  # decides
    if any_holds in parts:  # a bool equals no filter
        return filters.condition is FilterCondition.OR
    left = [part for part in parts if not isinstance(part, bool)]
    if not left:
        return filters.condition is not FilterCondition.OR
    return MetadataFilters(filters=left, condition=filters.condition)


def holds(filters: MetadataFilters, metadata: Mapping[str, Any]) -> bool:
    """Whether a node's metadata passes the filters.

    Values are compared as they are: a number never equals its digits, and a comparison of
    what cannot be ordered is false. A key that is missing passes only NE, NIN and IS_EMPTY.
    NOT passes where none of its filters holds.

    Examples
    --------
    >>> cheap = MetadataFilter(key="price", value=3, operator=FilterOperator.LT)
    >>> holds(MetadataFilters(filters=[cheap]), {"price": 2})
    True
    """
    results = (
        holds(f, metadata) if isinstance(f, MetadataFilters) else _passes(f, metadata.get(f.key))
        for f in filters.filters
    )
    match filters.condition:
        case FilterCondition.OR:
            return any(results)
        case FilterCondition.NOT:
            return not any(results)
    return all(results)


def _passes(f: MetadataFilter, found: Any) -> bool:
    if found is None:
        return f.operator in (Op.NE, Op.NIN, Op.IS_EMPTY)
    if f.operator in OPPOSITE:
        return not _passes(f.model_copy(update={"operator": OPPOSITE[f.operator]}), found)
    wanted: Any = f.value
    many = wanted if isinstance(wanted, list) else [wanted]
    inside = found if isinstance(found, list) else [found]
    if asks_for_member(f):
        return any(_same(item, value) for item in inside for value in many)
    match f.operator:
        case Op.EQ:
            return _same(found, wanted)
        case Op.IN:
            return any(_same(found, value) for value in many)
        case Op.ANY:
            return any(_same(item, value) for item in inside for value in many)
        case Op.ALL:
            return all(any(_same(item, value) for item in inside) for value in many)
        case Op.CONTAINS:
            return isinstance(found, list) and any(_same(item, wanted) for item in found)
        case Op.IS_EMPTY:
            return found in ("", [])
        case Op.TEXT_MATCH:
            return isinstance(found, str) and str(wanted) in found
        case Op.TEXT_MATCH_INSENSITIVE:
            return isinstance(found, str) and str(wanted).casefold() in found.casefold()
    return _ordered(f.operator, found, wanted)


def _same(a: Any, b: Any) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _ordered(operator: FilterOperator, a: Any, b: Any) -> bool:
    alike = isinstance(a, str) and isinstance(b, str)
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    if not (alike or numbers):
        return False
    match operator:
        case Op.LT:
            return bool(a < b)
        case Op.LTE:
            return bool(a <= b)
        case Op.GT:
            return bool(a > b)
    return bool(a >= b)
