"""Metadata filters: their meaning, the rows that pass, and the conditions that LanceDB evaluates.

A filter on the node itself (`hierindex_level`, ...) is evaluated on its row. Any other filter is
evaluated on chunks: a summary passes if every chunk under it passes, so that no summary reveals an
excluded chunk. The merged metadata of summaries are not used, because their lists are truncated.

Each row has a list of digests, one for each metadata key and one for each value, which has a
LABEL_LIST index, and a JSON object of its strings and numbers, for the other operators. User
input enters the SQL only as digests, numbers, hexadecimal digits and plain words.
"""

import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from hierindex.core.arguments import require
from hierindex.core.identity import hash_text
from hierindex.errors import InputError, NotFoundError, nearest
from hierindex.node import PREFIX
from hierindex.text.characters import paired

if TYPE_CHECKING:
    from lancedb.query import MatchQuery
    from llama_index.core.vector_stores.types import MetadataFilters

    from hierindex.store.snapshot import Snapshot

TYPE_OF = {"id": str, "kind": str, "level": int, "level_max": int, "whole_document": str}
OF_NODE = tuple(PREFIX + column for column in TYPE_OF)
"""Keys that refer to the node itself; all others refer to the chunks under it."""
DOCUMENTS = PREFIX + "documents"
OURS = (DOCUMENTS, *OF_NODE)
PLAIN = re.compile(r"[\w ./-]*", re.ASCII)  # in quotes, it stands for itself

Kind = Literal["has", "is", "list", "item", "str", "float"]
Scalar = str | int | float | bool
Comparison = Literal["==", "!=", "<", "<=", ">", ">="]
OfText = Literal["text_match", "text_match_insensitive"]
OfList = Literal["in", "nin", "any", "all", "contains", "is_empty"]
Op = Comparison | OfText | OfList
"""LlamaIndex's operators."""

MOST_KEPT = 10  # cached results of filters
MOST_LISTED = 20

CONTAINED: Op = "text_match_insensitive"
COMPARED: dict[str, Op] = {">": ">", ">=": ">=", "<": "<", "<=": "<=", "~": CONTAINED}
BEGINS = "^[^=!<>~]+(!=|[<>=~])"  # a condition, for descriptions
CONDITION = re.compile(r"\s*(?P<key>[^=!<>~]+?)\s*(?P<sign>!=|>=|<=|=|>|<|~)\s*(?P<value>.*)", re.S)


@dataclass(frozen=True)
class Filter:
    """A condition on the metadata value of a key; see `prefilter` for its meaning."""

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
            If they are of another type.
        """
        if not given:
            return None
        require(hasattr(given, "filters"), "filters", "MetadataFilters", given)
        if not given.filters:
            return None
        return given if isinstance(given, cls) else cls._of(given)

    @classmethod
    def _of(cls, given: Any) -> "Filters":
        filters = tuple(
            cls._of(each)
            if hasattr(each, "filters")
            else Filter(each.key, each.value, each.operator.value)
            for each in given.filters
        )
        condition: Any = given.condition or "and"
        return cls(filters, getattr(condition, "value", condition))


OPPOSITE: dict[Op, Op] = {"!=": "==", "nin": "in"}
Part = Filter | Filters


def is_of_node(filters: Part) -> bool | None:
    """Return True if all keys of filters refer to the node itself, False if none do, else None."""
    asked = {key in OF_NODE for key in keys(filters)}
    return asked.pop() if len(asked) == 1 else None if asked else True


def on_chunks(filters: Filters | None) -> Filters | None:
    """Return the filters without those on the node itself."""
    parts = [] if filters is None else conjuncts(filters)
    return combined(*(part for part in parts if is_of_node(part) is False))


def combined(*parts: Part | None) -> Filters | None:
    """Combine filters with AND, without those that are None; None if there are none."""
    given = tuple(part for part in parts if part is not None)
    return Filters(given) if given else None


def keys(filters: Part) -> set[str]:
    """Return the keys that filters use."""
    if isinstance(filters, Filter):
        return {filters.key}
    return {key for each in filters.filters for key in keys(each)}


def _renamed(filters: Filters, known: Mapping[str, str], *, negated: bool = False) -> Filters:
    """Rename keys; conditions on keys that are not known match nothing, also within a NOT."""
    negated ^= filters.condition == "not"
    parts = list[Part]()
    for part in filters.filters:
        if isinstance(part, Filters):
            parts.append(_renamed(part, known, negated=negated))
        elif part.key in known:
            parts.append(replace(part, key=known[part.key]))
        else:
            parts.append(Filters(condition="and" if negated else "or"))  # all rows, or none
    return replace(filters, filters=tuple(parts))


def conjuncts(filters: Part) -> list[Part]:
    """Split filters into the smallest ones that give the same result when combined with AND."""
    if isinstance(filters, Filter) or filters.condition == "or":
        return [filters]
    if filters.condition == "not":
        return [Filters((each,), "not") for each in filters.filters]
    return [part for each in filters.filters for part in conjuncts(each)]


def row_digests(metadata: Mapping[str, Any], documents: Sequence[str]) -> list[str]:
    """Return the digests of a row, distinct and sorted.

    For each metadata key, there are several kinds of digests: `has` is of the key, `is` of a scalar
    value, `list` of a list, and `item` of each scalar in a list.

    Parameters
    ----------
    metadata : mapping of JSON values
        The user's metadata merged with the document's.
    documents : sequence of str
        Ids of the row's source documents.
    """
    entries = {**metadata, DOCUMENTS: list(documents)}
    return sorted({digest for item in entries.items() for digest in _entry_digests(*item)})


def _entry_digests(key: str, value: Any) -> Iterator[str]:
    if value is None:  # equivalent to a missing key
        return
    yield hash_entry("has", key)
    if isinstance(value, Scalar | list):
        yield _value_digest(key, value)
    if isinstance(value, list):
        items = (item for item in value if item is None or isinstance(item, Scalar))
        yield from (hash_entry("item", key, item) for item in items)


def _value_digest(key: str, value: Any) -> str:
    if isinstance(value, list):
        return hash_entry("list", key, json.dumps([*map(_same_number, value)]))
    return hash_entry("is", key, value)


@lru_cache(maxsize=2**16, typed=True)  # untyped, it would take 1, 1.0 and True for one argument
def hash_entry(kind: Kind, key: str, value: Scalar | None = None) -> str:
    """Return a digest of 32 hexadecimal digits, the same for equal numbers of different types."""
    return blake2b(
        json.dumps([kind, key, _same_number(value)]).encode(), digest_size=16
    ).hexdigest()


def _same_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def row_scalars(metadata: Mapping[str, Any]) -> str:
    """Return JSON of the strings and the finite numbers in metadata, by digests of their keys."""
    strings = {hash_entry("str", k): v for k, v in metadata.items() if isinstance(v, str)}
    numbers = {hash_entry("float", k): float(v) for k, v in metadata.items() if _is_number(v)}
    return json.dumps({**strings, **numbers}, ensure_ascii=False)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= sys.float_info.max


@dataclass(frozen=True)
class Prefilter:
    """A condition that LanceDB evaluates, as SQL; empty if every row meets it."""

    sql: str = ""

    def narrow(self, search: Any) -> Any:
        """Add this condition to a LanceDB query."""
        return search.where(self.sql) if self.sql else search

    def __and__(self, other: "Prefilter") -> "Prefilter":
        return all_of([self, other])

    def __or__(self, other: "Prefilter") -> "Prefilter":
        return any_of([self, other])

    def __invert__(self) -> "Prefilter":
        return Prefilter(f"NOT ({self.sql or 'true'})")


EVERY_ROW, NO_ROW = Prefilter(), Prefilter("false")
CHUNKS, SUMMARIES = Prefilter("level = 0"), Prefilter("level > 0")
END_CHUNKS = Prefilter("level = 0 AND (previous_id = '' OR next_id = '')")
ROOTS = Prefilter("array_length(parent_ids) = 0")
STALE = Prefilter("stale <> ''")
WHOLE = Prefilter("whole_document > ''")
"""The highest node over exactly the chunks of each document."""
CHILDLESS = Prefilter("(stale = 'child' OR array_length(child_ids) = 0)")


def all_of(parts: Sequence[Prefilter]) -> Prefilter:
    """Combine conditions with AND."""
    return Prefilter(_joined(" AND ", parts))


def any_of(parts: Sequence[Prefilter]) -> Prefilter:
    """Combine conditions with OR; no row meets none of them."""
    if not parts:
        return NO_ROW
    return Prefilter(_joined(" OR ", parts)) if all(part.sql for part in parts) else EVERY_ROW


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
    return _one_of("id", sorted(map(_string, node_ids)))


def by_texts(texts: Iterable[str]) -> Prefilter:
    """Return the condition that a node has one of these texts, or one of the same hash."""
    return _one_of("text_hash", [str(hash_text(text)) for text in texts])


def _one_of(column: str, literals: Sequence[str]) -> Prefilter:
    return Prefilter(f"{column} IN ({', '.join(literals)})") if literals else NO_ROW


def at_cut(level: int) -> Prefilter:
    """Return the condition that a node belongs to the cut at a level."""
    return Prefilter(f"level <= {level:d} AND level_max >= {level:d}")


def on_documents(documents: Iterable[str]) -> Filter:
    """Return a filter for the chunks of these documents."""
    return Filter(DOCUMENTS, [*documents], "any")


def of_documents(documents: Iterable[str]) -> Prefilter:
    """Return the condition that a node has text of one of these documents."""
    return prefilter(on_documents(documents))


def prefilter(filters: Part) -> Prefilter:
    """Return the condition that a row passes filters.

    Values are compared without conversion: a number never equals its digits, and an ordering of
    unlike types is false. A missing key passes only NE, NIN and IS_EMPTY. Orderings compare numbers
    as 64-bit floats. NOT passes if none of its filters holds.
    """
    if isinstance(filters, Filter):
        return _condition(filters)
    parts = [*map(prefilter, filters.filters)]
    match filters.condition:
        case "or":
            return any_of(parts)
        case "not":
            return ~any_of(parts)
    return all_of(parts)


def _condition(f: Filter) -> Prefilter:
    values: list[Any] = f.value if isinstance(f.value, list) else [f.value]
    match f.operator:
        case "!=" | "nin":
            return ~_condition(replace(f, operator=OPPOSITE[f.operator]))
        case "any":
            return _is(f.key, values) | _has_item(f.key, values)
        case "in":
            return _has_item(f.key, values) if f.key == DOCUMENTS else _is(f.key, values)
        case "==" if f.key == DOCUMENTS and isinstance(f.value, str):
            return _has_item(f.key, values)
        case "==":
            return _is(f.key, [f.value])
        case "all":
            return all_of([_has(f.key), *(_is(f.key, [v]) | _has_item(f.key, [v]) for v in values)])
        case "contains":
            return _has_item(f.key, [f.value])
        case "is_empty":
            return ~_has(f.key) | _is(f.key, ["", []])
        case "text_match":
            return _compared(f.key, str(f.value), "contains({}, {})")
        case "text_match_insensitive":
            return _compared(f.key, str(f.value), "contains(upper({}), upper({}))")
    return _compared(f.key, f.value, f"{{}} {f.operator} {{}}")


def _has(key: str) -> Prefilter:
    return EVERY_ROW if key in OF_NODE else having(key)


def _is(key: str, values: Sequence[Any]) -> Prefilter:
    """Return the condition that a row has one of these values, or one of these lists of scalars."""
    values = [value for value in values if value == value]  # but not NaN
    if key in OF_NODE:
        column, texts = key.removeprefix(PREFIX), [*filter(_is_unicode, values)]
        if TYPE_OF[column] is str:
            return _one_of(column, sorted(map(_string, texts)))
        return any_of([_compared(key, value, "{} = {}") for value in values])
    return has_any([_value_digest(key, value) for value in values])


def _has_item(key: str, values: Sequence[Any]) -> Prefilter:
    """Return the condition that a row has a list with one of these items."""
    items = (value for value in values if value == value and not isinstance(value, list))
    return NO_ROW if key in OF_NODE else has_any([hash_entry("item", key, item) for item in items])


def _compared(key: str, wanted: Any, condition: str) -> Prefilter:
    """Return a condition of a row's value and a wanted one, false if they are of unlike types."""
    if _is_unicode(wanted):
        kind, literal = "str", _string(wanted)
    elif _is_number(wanted):
        kind, literal = "float", f"cast('{float(wanted)!r}' as double)"
    else:
        return NO_ROW
    column = key.removeprefix(PREFIX)
    if key not in OF_NODE:
        function = "json_get_string" if kind == "str" else "json_get_float"
        found = f"{function}(scalars, '{hash_entry(kind, key)}')"
        return Prefilter(f"coalesce({condition.format(found, literal)}, false)")
    if (TYPE_OF[column] is str) != (kind == "str"):
        return NO_ROW
    if kind == "float" and wanted % 1 == 0 and abs(wanted) < 2**31:
        literal = str(int(wanted))  # of the column's type, for its index
    elif kind == "float":
        column = f"cast({column} as double)"
    return Prefilter(condition.format(column, literal))


def _is_unicode(value: Any) -> bool:
    return isinstance(value, str) and value == paired(value)


def _string(value: str) -> str:
    """Return an SQL expression of a string, NULL if it is not Unicode."""
    if PLAIN.fullmatch(value):
        return f"'{value}'"
    return f"try_cast(X'{value.encode('utf-8', 'surrogatepass').hex()}' as string)"


@dataclass(frozen=True)
class Scope:
    """Rows of a snapshot that are searched or read.

    Parameters
    ----------
    snapshot : Snapshot
        A snapshot whose table exists.
    where : Prefilter
        The condition that these rows meet.
    columns : sequence of str
        Columns to return.
    """

    snapshot: "Snapshot"
    where: Prefilter
    columns: Sequence[str]

    def search(self, sought: "list[float] | MatchQuery | None", n_rows: int, *scores: str) -> Any:
        """Return a LanceDB search for the best of the rows that meet the condition."""
        search = self.where.narrow(self.snapshot.require().search(sought))
        limit = min(n_rows, 1 + self.snapshot.n_rows())
        return search.select([*self.columns, *scores]).limit(limit)


def passing(
    snapshot: "Snapshot", filters: Filters | None, where: Prefilter, *, partial: bool
) -> Prefilter:
    """Return a condition combined with filters; warn about unknown keys.

    Parameters
    ----------
    snapshot : Snapshot
    filters : Filters, optional
    where : Prefilter
    partial : bool
        Whether one passing chunk under a summary is enough for it to pass.

    Raises
    ------
    InputError
        If OR or NOT combines filters on the node itself with others.
    """
    if filters is None:
        return where
    parts = conjuncts(with_known_keys(snapshot, filters))
    if any(is_of_node(part) is None for part in parts):
        raise InputError(
            f"A filter on the node itself ({', '.join(OF_NODE)}) and a filter on metadata can be "
            "combined only by AND."
        )
    of_node = all_of([where, *(prefilter(part) for part in parts if is_of_node(part))])
    of_chunks = Filters(tuple(part for part in parts if not is_of_node(part)))
    if not of_chunks.filters:
        return of_node
    return of_node & (
        CHUNKS & prefilter(of_chunks) | _summaries(snapshot, of_node, of_chunks, partial)
    )


def _summaries(
    snapshot: "Snapshot", of_node: Prefilter, of_chunks: Filters, partial: bool
) -> Prefilter:
    """Return the condition that summaries pass filters on chunks, if any passes those on nodes."""
    if not snapshot.count(of_node & SUMMARIES):
        return NO_ROW
    kept: dict[str, Prefilter] = snapshot.known.setdefault("passing summaries", {})
    key = f"{of_chunks!r} {partial}"
    if (found := kept.get(key)) is None:
        failing = outside(snapshot, of_chunks, partial=partial)
        others = snapshot.parents_of_summaries().keys() - failing
        is_shorter = len(others) < len(failing)
        found = SUMMARIES & (by_ids(others) if is_shorter else ~by_ids(failing))
        if len(kept) >= MOST_KEPT:
            kept.clear()
        kept[key] = found
    return found


def outside(snapshot: "Snapshot", filters: Filters, *, partial: bool) -> Set[str]:
    """Return the ids of the summaries that fail filters, evaluated on every chunk under them.

    A summary that has lost a child fails as well, because its text may contain that child.
    With `partial`, a summary fails only if no remaining chunk under it passes.
    """
    import pyarrow.compute as pc

    parents = snapshot.parents_of_summaries()
    passes = prefilter(filters)
    rows = snapshot.select("parent_ids", where=CHUNKS & (passes if partial else ~passes))
    above = pc.list_flatten(rows["parent_ids"]).unique().to_pylist()
    found = with_ancestors({*above}, parents)
    return parents.keys() - found if partial else found | incomplete(snapshot)


def incomplete(snapshot: "Snapshot") -> Set[str]:
    """Return the ids of summaries that have lost a child or have none, and of their ancestors."""
    rows = snapshot.select("id", where=SUMMARIES & CHILDLESS)
    return with_ancestors({*rows["id"].to_pylist()}, snapshot.parents_of_summaries())


def with_ancestors(of: Set[str], parents: Mapping[str, Sequence[str]]) -> Set[str]:
    """Return the ids of nodes and of all their ancestors, given the parents of nodes by id."""
    reached, coming = set[str](), set(of)
    while coming:
        reached |= coming
        coming = {parent for node_id in coming for parent in parents.get(node_id, ())} - reached
    return reached


def with_known_keys(snapshot: "Snapshot", filters: Filters, *, strict: bool = False) -> Filters:
    """Replace conditions on keys that no chunk has by ones that match nothing, with a warning.

    The key `documents` means hierindex's own unless a chunk has it in its metadata. Only digests
    are read; an error message also needs the metadata of all chunks.

    Raises
    ------
    NotFoundError
        If `strict` and a key is in no chunk; the message names the existing keys.
    """
    asked = keys(filters)
    known = {key: key for key in asked if key in OURS or snapshot.has_key(key)}
    unprefixed = DOCUMENTS.removeprefix(PREFIX)
    if unprefixed in asked:
        known.setdefault(unprefixed, DOCUMENTS)
    for key in sorted(asked - known.keys()) if snapshot.exists else ():
        if strict:
            every = [*metadata_keys(snapshot), *OURS]
            there = [name if re.fullmatch(r"[\w.-]+", name) else repr(name) for name in every]
            raise NotFoundError(
                f"No chunk has the key {key!r}{nearest(key, there)}; there are "
                f"{', '.join(there[:MOST_LISTED])}."
            )
        warnings.warn(f"The filter on {key!r} matches nothing: no node has this key.", stacklevel=2)
    return _renamed(filters, known)


def metadata_keys(snapshot: "Snapshot") -> list[str]:
    """Return the keys of the chunks' metadata, the most common first."""
    counts = Counter[str]()
    for row in snapshot.select("metadata", "source", where=CHUNKS).to_pylist():
        source = json.loads(row["source"])["metadata"] if row["source"] else {}
        values = {**source, **json.loads(row["metadata"])}
        counts.update(key for key, value in values.items() if value is not None)
    return sorted(counts, key=lambda key: (-counts[key], key))


def known_filters(conditions: Sequence[str] | None, snapshot: "Snapshot") -> Filters | None:
    """Return filters written as conditions, such as "author=Ada"; None without conditions.

    All conditions must hold. `=` also matches a list that contains the value; `~` matches a string
    that contains it, ignoring case. Numeric values are compared as numbers; `=` also compares them
    as strings.

    Raises
    ------
    InputError
        If a condition cannot be parsed, or no chunk has its key.
    """
    if not conditions:
        return None
    return with_known_keys(snapshot, Filters(tuple(map(_filter, conditions))), strict=True)


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
