"""Metadata filters as conditions that LanceDB evaluates, as far as it can.

What a condition cannot say is left to `holds`: the condition then passes more rows than the
filters do, never fewer.
"""

import math
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar, cast

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from hierindex.record import GROUNDING
from hierindex.store.digests import digest, has_any, of_filter
from hierindex.store.filters import OPPOSITE, asks_for_member

if TYPE_CHECKING:
    from lancedb.expr import Expr

Op = FilterOperator
COMPARED = {Op.EQ: "eq", Op.NE: "ne", Op.LT: "lt", Op.LTE: "lte", Op.GT: "gt", Op.GTE: "gte"}
RANGES = {Op.LT, Op.LTE, Op.GT, Op.GTE}
TYPE_OF = {"id": str, "kind": str, "level": int, "level_max": int, "whole_document": str}

Search = TypeVar("Search")


@dataclass(frozen=True)
class Prefilter:
    """A condition in two parts that both hold; a part that is missing holds always.

    Parameters
    ----------
    typed : Expr, optional
        On scalar columns.
    listed : str, optional
        On the column of digests. It is made of hexadecimal digits and fixed words: LanceDB's
        expressions have no membership in lists.
    exact : bool
        Whether it passes no row that the filters do not.
    """

    typed: "Expr | None" = None
    listed: str | None = None
    exact: bool = True

    @property
    def passes_all(self) -> bool:
        """Whether there is nothing to evaluate."""
        return self.typed is None and self.listed is None

    def narrow(self, search: Search) -> Search:
        """A LanceDB query with this condition."""
        for part in (self.typed, self.listed):
            if part is not None:
                search = cast(Any, search).where(part)
        return search

    def __and__(self, other: "Prefilter") -> "Prefilter":
        return all_of([self, other])

    def __invert__(self) -> "Prefilter":
        if not self.exact or len(self._parts) != 1:
            return ANYTHING
        if self.typed is not None:
            return Prefilter(typed=~self.typed)
        return Prefilter(listed=f"NOT ({self.listed})")

    def where(self, condition: "Expr", otherwise: str) -> "Prefilter":
        """The same where a condition on scalar columns holds; elsewhere everything passes.

        Parameters
        ----------
        condition : Expr
        otherwise : str
            Its opposite, in fixed words.
        """
        typed = None if self.typed is None else ~condition | self.typed
        listed = None if self.listed is None else f"({otherwise} OR {self.listed})"
        return Prefilter(typed, listed, self.exact)

    @property
    def _parts(self) -> list[str]:
        return [name for name in ("typed", "listed") if getattr(self, name) is not None]


ANYTHING = Prefilter(exact=False)


def all_of(parts: Sequence[Prefilter]) -> Prefilter:
    """What passes all of these."""
    typed = [part.typed for part in parts if part.typed is not None]
    listed = [part.listed for part in parts if part.listed is not None]
    return Prefilter(
        reduce(lambda a, b: a & b, typed) if typed else None,
        _joined(" AND ", listed) if listed else None,
        all(part.exact for part in parts),
    )


def any_of(parts: Sequence[Prefilter]) -> Prefilter:
    """What passes one of these at least; there is one."""
    typed = [part.typed for part in parts if part.typed is not None]
    listed = [part.listed for part in parts if part.listed is not None]
    # (a & b) | (c & d) passes only what (a | c) & (b | d) passes, too.
    one_part = {name for part in parts for name in part._parts}
    return Prefilter(
        reduce(lambda a, b: a | b, typed) if len(typed) == len(parts) else None,
        _joined(" OR ", listed) if len(listed) == len(parts) else None,
        all(part.exact for part in parts) and len(one_part) == 1,
    )


def _joined(word: str, conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else f"({word.join(conditions)})"


def by_ids(node_ids: Collection[str]) -> Prefilter:
    """The nodes with these ids."""
    from lancedb.expr import col

    ids = sorted(node_id for node_id in node_ids if is_unicode(node_id))
    return Prefilter(col("id").isin(ids or [""]))  # no node has an empty id


def beginning(start: str) -> Prefilter:
    """The nodes whose ids begin with a text."""
    from lancedb.expr import col, lit

    if not is_unicode(start):
        return by_ids([])
    return Prefilter((col("id") >= lit(start)) & (col("id") <= lit(start + chr(sys.maxunicode))))


def at_least(level: int) -> Prefilter:
    """The nodes of this level and those above."""
    from lancedb.expr import col, lit

    return Prefilter(col("level") >= lit(level))


def is_chunk() -> "Expr":
    """The condition of a node of level 0."""
    from lancedb.expr import col, lit

    return col("level") == lit(0)


def is_unicode(text: str) -> bool:
    """Whether a table can hold a text, which no half of a surrogate pair may stand in."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def prefilter(filters: MetadataFilters | None) -> Prefilter:
    """The condition of filters; see `holds` for what they mean."""
    if filters is None:
        return Prefilter()
    parts = [
        prefilter(f) if isinstance(f, MetadataFilters) else _of_one(f) for f in filters.filters
    ]
    match filters.condition:
        case FilterCondition.OR:
            return any_of(parts) if parts else _listed([])
        case FilterCondition.NOT:
            return all_of([~part for part in parts])
    return all_of(parts)


def _of_one(f: MetadataFilter) -> Prefilter:
    if f.key in TYPE_OF:
        return _typed(f)
    return _grounded(f) if f.key == GROUNDING else _keyed(f)


def _typed(f: MetadataFilter) -> Prefilter:
    from lancedb.expr import col, lit

    kind = TYPE_OF[f.key]
    values: list[Any] = f.value if isinstance(f.value, list) else [f.value]
    if not values or any(type(value) is not kind for value in values):
        return ANYTHING
    if kind is int and any(abs(value) > 2**31 - 1 for value in values):
        return ANYTHING
    if kind is str and not all(map(is_unicode, values)):
        return ANYTHING
    match f.operator:
        case Op.IN:
            return Prefilter(col(f.key).isin(values))
        case Op.NIN:
            return Prefilter(~col(f.key).isin(values))
        case operator if operator in COMPARED and not isinstance(f.value, list):
            return Prefilter(getattr(col(f.key), COMPARED[operator])(lit(values[0])))
    return ANYTHING


def _grounded(f: MetadataFilter) -> Prefilter:
    from lancedb.expr import col, lit

    if f.operator not in RANGES or not isinstance(f.value, int | float):
        return ANYTHING
    if not math.isfinite(f.value):
        return ANYTHING
    column = col(GROUNDING)
    within = getattr(column, COMPARED[f.operator])(lit(float(f.value)))
    return Prefilter(within & (column >= lit(0.0)))  # -1 is none


def _keyed(f: MetadataFilter) -> Prefilter:
    """The condition of a key that lives inside JSON."""
    if f.operator in OPPOSITE:
        return ~_keyed(f.model_copy(update={"operator": OPPOSITE[f.operator]}))
    if asks_for_member(f):
        f = f.model_copy(update={"operator": Op.ANY})
    key = of_filter(f.key)
    many: list[Any] = f.value if isinstance(f.value, list) else [f.value]
    values = [value for value in many if not _is_nan(value)]
    as_is = [digest("is", key, value) for value in values]
    as_item = [digest("item", key, value) for value in values]
    more = digest("more", key)
    match f.operator:
        case Op.EQ if not isinstance(f.value, list):
            return _listed(as_is)
        case Op.IN:
            return _listed(as_is)
        case Op.ANY:
            return _listed([*as_is, *as_item, more], exact=False)
        case Op.CONTAINS if not isinstance(f.value, list):
            return _listed([*as_item, more], exact=False)
        case Op.ALL if len(values) == len(many) and values:
            pairs = zip(as_is, as_item, strict=True)
            return all_of([_listed([*pair, more], exact=False) for pair in pairs])
        case Op.IS_EMPTY:
            empty = _listed([digest("is", key, ""), digest("empty", key)])
            return any_of([~_listed([digest("has", key)]), empty])
    return _listed([digest("has", key)], exact=False)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _listed(digests: Iterable[str], *, exact: bool = True) -> Prefilter:
    return Prefilter(listed=has_any(digests), exact=exact)
