"""LlamaIndex's metadata filters, evaluated in Python; `prefilter` evaluates them in LanceDB."""

import json
from collections.abc import Mapping
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
MOST_DEEP = 12  # LanceDB parses 48 nested expressions, and NOT needs three per level
DOCUMENTS = "documents"
METADATA = "metadata."  # prefix that marks a user's key
OF_NODE = ("id", "kind", "level", "level_max", "source_similarity", "whole_document")
"""Keys that refer to the node itself; all others refer to the chunks under it."""


def filters_of(query: VectorStoreQuery) -> MetadataFilters | None:
    """Combine a query's filters, node ids and document ids into one filter."""
    filters: list[MetadataFilter | MetadataFilters] = []
    if query.filters is not None and query.filters.filters:
        filters.append(query.filters)
    if query.node_ids:
        filters.append(MetadataFilter(key="id", value=query.node_ids, operator=Op.IN))
    if query.doc_ids:
        filters.append(MetadataFilter(key=DOCUMENTS, value=query.doc_ids, operator=Op.ANY))
    return MetadataFilters(filters=filters) if filters else None


def filtered_by(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's values by filter key: its columns, its metadata and its document's.

    Each metadata key is also available as `metadata.<key>`, for keys such as `level`.
    """
    source = json.loads(row["source"])["metadata"] if row["source"] else {}
    metadata = {**source, **json.loads(row["metadata"])}
    unprefixed = {key: value for key, value in metadata.items() if not key.startswith(METADATA)}
    prefixed = {METADATA + key: value for key, value in metadata.items()}
    similarity = row["source_similarity"] if row["source_similarity"] >= 0 else None
    columns = {key: row[key] for key in OF_NODE} | {"source_similarity": similarity}
    return {**unprefixed, **prefixed, DOCUMENTS: row[DOCUMENTS], **columns}


def check_depth(filters: Filter) -> None:
    """Raise InputError if filters are nested deeper than LanceDB can parse."""
    inside, depth = [filters], 0
    while inside:
        if depth > MOST_DEEP:
            raise InputError(
                f"Filters are nested more than {MOST_DEEP} deep; put filters with the same "
                "condition into one MetadataFilters."
            )
        inside = [f for each in inside if isinstance(each, MetadataFilters) for f in each.filters]
        depth += 1


def is_of_node(filters: Filter) -> bool | None:
    """Return True if all keys of filters refer to the node itself, False if none do, else None."""
    asked = {key in OF_NODE for key in keys(filters)}
    return asked.pop() if len(asked) == 1 else None if asked else True


def keys(filters: Filter) -> set[str]:
    """Return the keys that filters use."""
    if isinstance(filters, MetadataFilter):
        return {filters.key}
    return {key for each in filters.filters for key in keys(each)}


def asks_for_member(f: MetadataFilter) -> bool:
    """Return whether a filter is `=` or `in` on `documents`, which test for a common member."""
    return f.key == DOCUMENTS and (
        f.operator is Op.IN or (f.operator is Op.EQ and not isinstance(f.value, list))
    )


def conjuncts(filters: Filter) -> list[Filter]:
    """Split filters into the smallest ones that give the same result when combined with AND."""
    if isinstance(filters, MetadataFilter) or filters.condition is FilterCondition.OR:
        return [filters]
    if filters.condition is NOT:
        return [MetadataFilters(filters=[each], condition=NOT) for each in filters.filters]
    return [part for each in filters.filters for part in conjuncts(each)]


def residual(filters: Filter, place: Mapping[str, Any]) -> Filter | bool:
    """Return the filters left for the chunks under a node, or the result if the node decides it.

    Parameters
    ----------
    filters : MetadataFilter or MetadataFilters
    place : mapping
        The node's values of the keys `OF_NODE`.
    """
    of_node = is_of_node(filters)
    if of_node is not None:
        return holds(MetadataFilters(filters=[filters]), place) if of_node else filters
    assert isinstance(filters, MetadataFilters)  # a single filter has one key
    parts = [residual(each, place) for each in filters.filters]
    decisive = filters.condition in (FilterCondition.OR, NOT)
    if decisive in parts:  # a bool equals no filter
        return filters.condition is FilterCondition.OR
    undecided = [part for part in parts if not isinstance(part, bool)]
    if not undecided:
        return filters.condition is not FilterCondition.OR
    return MetadataFilters(filters=undecided, condition=filters.condition)


def holds(filters: MetadataFilters, metadata: Mapping[str, Any]) -> bool:
    """Return whether a node's metadata pass the filters.

    Values are compared without conversion: a number never equals its digits, and an ordering of
    unlike types is false. A missing key passes only NE, NIN and IS_EMPTY. NOT passes if none of
    its filters holds.

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
