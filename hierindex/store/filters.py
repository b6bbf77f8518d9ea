"""Metadata filters: their meaning, and the conditions by which LanceDB evaluates them.

Each row has one digest for each metadata key and one for each value. A condition tests whether the
row's list of digests contains a digest, for which there is a LABEL_LIST index. No user input
becomes part of the SQL. A filter that cannot be expressed exactly becomes a condition that passes
more rows, never fewer; `holds` then decides in Python.
"""

import json
import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

from hierindex.core.arguments import require
from hierindex.core.identity import hash_text
from hierindex.errors import InputError
from hierindex.node import PREFIX

if TYPE_CHECKING:
    from lancedb.expr import Expr
    from llama_index.core.vector_stores.types import MetadataFilters

MOST_DEEP = 12  # LanceDB parses 48 nested expressions, and NOT needs three per level
TYPE_OF = {"id": str, "kind": str, "level": int, "level_max": int, "whole_document": str}
COLUMNS = tuple(TYPE_OF)
OF_NODE = tuple(PREFIX + column for column in COLUMNS)
"""Keys that refer to the node itself; all others refer to the chunks under it."""
DOCUMENTS = PREFIX + "documents"
OURS = (DOCUMENTS, *OF_NODE)

Kind = Literal["has", "is", "item", "empty", "node"]
Scalar = str | int | float | bool
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


def replaced(
    filters: Filters, by: Callable[[Filter, bool], Part], *, negated: bool = False
) -> Filters:
    """Replace each condition by `by(condition, negated)`; `negated` counts enclosing NOTs."""
    negated ^= filters.condition == "not"
    parts = [
        replaced(f, by, negated=negated) if isinstance(f, Filters) else by(f, negated)
        for f in filters.filters
    ]
    return replace(filters, filters=tuple(parts))


def settled(filters: Filters, own: Mapping[str, Any]) -> Filters:
    """Replace filters on the node itself by their results; `own` has its values, see `OF_NODE`."""

    def result(f: Filter, _: bool) -> Part:
        if f.key not in own:
            return f
        return EVERYTHING if holds(f, own) else NOTHING

    return replaced(filters, result)


def asks_for_member(f: Filter) -> bool:
    """Return whether a filter is `=` or `in` on documents: one common document is enough."""
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


def holds(filters: Part, metadata: Mapping[str, Any]) -> bool:
    """Return whether a node's metadata pass a filter or several.

    Values are compared without conversion: a number never equals its digits, and an ordering of
    unlike types is false. A missing key passes only NE, NIN and IS_EMPTY. NOT passes if none of
    its filters holds.

    Examples
    --------
    >>> holds(Filter("price", 3, "<"), {"price": 2})
    True
    """
    if isinstance(filters, Filter):
        return _passes(filters, metadata.get(filters.key))
    results = (holds(each, metadata) for each in filters.filters)
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
    texts = isinstance(found, str) and isinstance(wanted, str)
    numbers = isinstance(found, int | float) and isinstance(wanted, int | float)
    return (texts or numbers) and bool(COMPARED[f.operator](found, wanted))


def _same(a: Any, b: Any) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def row_digests(node_id: str, metadata: Mapping[str, Any], documents: Sequence[str]) -> list[str]:
    """Return the digests of a row, distinct and sorted.

    There are several kinds of digests. `node` is of the row's id. For each metadata key, `has` is
    of the key, `is` of a scalar value and `item` of each item of a list. `empty` marks an empty
    list.

    Parameters
    ----------
    node_id : str
    metadata : mapping of JSON values
        The user's metadata merged with the document's.
    documents : sequence of str
        Ids of the row's source documents.
    """
    entries = {**metadata, DOCUMENTS: list(documents)}
    digests = {digest for item in entries.items() for digest in _entry_digests(*item)}
    return sorted({hash_entry("node", node_id), *digests})


def _entry_digests(key: str, value: Any) -> Iterator[str]:
    if value is None:  # equivalent to a missing key
        return
    yield hash_entry("has", key)
    if isinstance(value, Scalar):
        yield hash_entry("is", key, value)
    elif isinstance(value, list) and not value:
        yield hash_entry("empty", key)
    elif isinstance(value, list):
        items = (item for item in value if item is None or isinstance(item, Scalar))
        yield from (hash_entry("item", key, item) for item in items)


@lru_cache(maxsize=2**16, typed=True)  # untyped, it would take 1, 1.0 and True for one argument
def hash_entry(kind: Kind, key: str, value: Scalar | None = None) -> str:
    """Return a digest of 32 hexadecimal digits, the same for equal numbers of different types."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return blake2b(json.dumps([kind, key, value]).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Prefilter:
    """A condition that LanceDB evaluates.

    Parameters
    ----------
    sql : str
        Written by LanceDB's expressions. Only for members of lists, which these cannot test, made
        of hexadecimal digests and fixed words. Empty if every row passes.
    exact : bool
        Whether all rows that meet it pass the filters; otherwise they must be checked.
    """

    sql: str = ""
    exact: bool = True

    def narrow(self, search: Any) -> Any:
        """Add this condition to a LanceDB query."""
        return search.where(self.sql) if self.sql else search

    def __and__(self, other: "Prefilter") -> "Prefilter":
        return all_of([self, other])

    def __or__(self, other: "Prefilter") -> "Prefilter":
        return any_of([self, other])

    def __invert__(self) -> "Prefilter":
        return Prefilter(f"NOT ({self.sql or 'true'})") if self.exact else ANYTHING


EVERY_ROW, ANYTHING = Prefilter(), Prefilter(exact=False)
CHUNKS, SUMMARIES = Prefilter("level = 0"), Prefilter("level > 0")
END_CHUNKS = Prefilter("level = 0 AND (previous_id = '' OR next_id = '')")
ROOTS = Prefilter("array_length(parent_ids) = 0")
STALE = Prefilter("stale <> ''")


def all_of(parts: Sequence[Prefilter]) -> Prefilter:
    """Combine conditions with AND."""
    return Prefilter(_joined(" AND ", parts), all(part.exact for part in parts))


def any_of(parts: Sequence[Prefilter]) -> Prefilter:
    """Combine one or more conditions with OR."""
    conditions = _joined(" OR ", parts) if all(part.sql for part in parts) else ""
    return Prefilter(conditions, all(part.exact for part in parts))


def _joined(word: str, parts: Sequence[Prefilter]) -> str:
    conditions = [part.sql for part in parts if part.sql]
    return f"({word.join(conditions)})" if len(conditions) > 1 else "".join(conditions)


def has_any(digests: Iterable[str]) -> Prefilter:
    """Return the condition that a row has at least one of these digests."""
    listed = ", ".join(f"'{d}'" for d in sorted(set(digests)))
    return Prefilter(f"array_has_any(digests, [{listed}])" if listed else "false")


def having(key: str) -> Prefilter:
    """Return the condition that a row's metadata have a key."""
    return has_any([hash_entry("has", key)])


def by_ids(node_ids: Collection[str]) -> Prefilter:
    """Return the condition that a node has one of these ids."""
    from lancedb.expr import col

    plain = sorted(filter(_is_plain, node_ids))
    quoted = [hash_entry("node", node_id) for node_id in node_ids if not _is_plain(node_id)]
    named = _typed(col("id").isin(plain or [""]))  # no node has an empty id
    return named | has_any(quoted) if quoted else named


def by_texts(texts: Iterable[str]) -> Prefilter:
    """Return the condition that a node has one of these texts, or one of the same hash."""
    from lancedb.expr import col

    return _typed(col("text_hash").isin(sorted(map(hash_text, texts))))


def at_cut(level: int) -> Prefilter:
    """Return the condition that a node belongs to the cut at a level."""
    return Prefilter(f"level <= {level:d} AND level_max >= {level:d}")


def of_documents(documents: Iterable[str]) -> Prefilter:
    """Return the condition that a node has text of one of these documents."""
    return _keyed(Filter(DOCUMENTS, [*documents], "any"))


def _is_plain(text: str) -> bool:
    """Return whether LanceDB reads a text in a condition unchanged; it unescapes quotes twice."""
    if text.isascii():
        return "'" not in text
    return not any(character == "'" or "\ud800" <= character <= "\udfff" for character in text)


def prefilter(filters: Part) -> Prefilter:
    """Convert filters to a condition; see `holds` for their meaning."""
    if isinstance(filters, Filter):
        return _scalar(filters) if filters.key in OF_NODE else _keyed(filters)
    parts = [*map(prefilter, filters.filters)]
    match filters.condition:
        case "or":
            return any_of(parts) if parts else has_any([])
        case "not":
            return all_of([~part for part in parts])
    return all_of(parts)


def _scalar(f: Filter) -> Prefilter:
    """Return the condition of a filter on a column of its own."""
    from lancedb.expr import col, lit

    column = f.key.removeprefix(PREFIX)
    kind = TYPE_OF[column]
    values: list[Any] = f.value if isinstance(f.value, list) else [f.value]
    if not values or any(type(value) is not kind for value in values):
        return ANYTHING
    if kind is int and any(abs(value) > 2**31 - 1 for value in values):
        return ANYTHING
    if kind is str and not all(map(_is_plain, values)):
        return ANYTHING
    match f.operator:
        case "in":
            return _typed(col(column).isin(values))
        case "nin":
            return _typed(~col(column).isin(values))
        case operator if operator in COMPARED and not isinstance(f.value, list):
            return _typed(COMPARED[operator](col(column), lit(values[0])))
    return ANYTHING


def _keyed(f: Filter) -> Prefilter:
    """Return the condition of a filter on metadata, which are stored as JSON."""
    if f.operator in OPPOSITE:
        return ~_keyed(replace(f, operator=OPPOSITE[f.operator]))
    if asks_for_member(f):
        f = replace(f, operator="any")
    is_list = isinstance(f.value, list)
    given = f.value if is_list else [f.value]
    values = [value for value in given if not (isinstance(value, float) and math.isnan(value))]
    as_is = [hash_entry("is", f.key, value) for value in values]
    as_item = [hash_entry("item", f.key, value) for value in values]
    match f.operator:
        case "==" if not is_list:
            return has_any(as_is)
        case "in":
            return has_any(as_is)
        case "any":
            return has_any([*as_is, *as_item])
        case "contains" if not is_list:
            return has_any(as_item)
        case "is_empty":
            empty = [hash_entry("is", f.key, ""), hash_entry("empty", f.key)]
            return ~having(f.key) | has_any(empty)
    return replace(having(f.key), exact=False)


def _typed(condition: "Expr") -> Prefilter:
    """A condition on scalar columns."""
    return Prefilter(condition.to_sql())
