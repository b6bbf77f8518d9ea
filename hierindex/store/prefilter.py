"""Metadata filters as conditions that LanceDB evaluates.

Each row has one digest for each metadata key and one for each value. A condition tests whether the
row's list of digests contains a digest, for which there is a LABEL_LIST index. No user input
becomes part of the SQL. A filter that cannot be expressed exactly becomes a condition that passes
more rows, never fewer; `holds` then decides in Python.
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

from hierindex.core.identity import hash_text
from hierindex.node import PREFIX
from hierindex.store.filters import (
    COMPARED,
    DOCUMENTS,
    OPPOSITE,
    Filter,
    Filters,
    asks_for_member,
)

if TYPE_CHECKING:
    from lancedb.expr import Expr

Kind = Literal["has", "is", "item", "empty", "node"]
Scalar = str | int | float | bool

TYPE_OF = {"id": str, "kind": str, "level": int, "level_max": int, "whole_document": str}


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
        Written by LanceDB's expressions, or made of hexadecimal digests and fixed words only:
        its expressions cannot test for members of a list. Empty if every row passes.
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


ANYTHING = Prefilter(exact=False)
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


def has_any(digests: Iterable[str], *, exact: bool = True) -> Prefilter:
    """Return the condition that a row has at least one of these digests."""
    listed = ", ".join(f"'{d}'" for d in sorted(set(digests)))
    return Prefilter(f"array_has_any(digests, [{listed}])" if listed else "false", exact)


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
    return _of_one(Filter(DOCUMENTS, [*documents], "any"))


def _is_plain(text: str) -> bool:
    """Return whether LanceDB reads a text in a condition unchanged; it unescapes quotes twice."""
    if text.isascii():
        return "'" not in text
    return not any(character == "'" or "\ud800" <= character <= "\udfff" for character in text)


def prefilter(filters: Filters) -> Prefilter:
    """Convert filters to a condition; see `holds` for their meaning."""
    parts = [prefilter(f) if isinstance(f, Filters) else _of_one(f) for f in filters.filters]
    match filters.condition:
        case "or":
            return any_of(parts) if parts else has_any([])
        case "not":
            return all_of([~part for part in parts])
    return all_of(parts)


def _of_one(f: Filter) -> Prefilter:
    column = f.key.removeprefix(PREFIX)
    if column == f.key or column not in TYPE_OF:
        return _keyed(f)
    return _scalar(f, column)


def _scalar(f: Filter, column: str) -> Prefilter:
    from lancedb.expr import col, lit

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
    values = [value for value in (f.value if is_list else [f.value]) if not _is_nan(value)]
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


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _typed(condition: "Expr") -> Prefilter:
    """A condition on scalar columns."""
    return Prefilter(condition.to_sql())
