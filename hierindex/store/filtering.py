"""Rows that pass metadata filters: chunks by their metadata, summaries by their chunks.

A filter on the node itself (`hierindex_level`, ...) is evaluated on its row. Any other filter is
evaluated on chunks: a summary passes if every chunk under it passes, so that no summary reveals an
excluded chunk. The merged metadata of summaries are not used, because their lists are truncated.
"""

import re
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hierindex.errors import InputError, NotFoundError, nearest
from hierindex.node import PREFIX
from hierindex.store.filters import (
    CHUNKS,
    COLUMNS,
    DOCUMENTS,
    EVERY_ROW,
    EVERYTHING,
    NOTHING,
    OURS,
    SUMMARIES,
    Filter,
    Filters,
    Op,
    Part,
    Prefilter,
    by_ids,
    columns_of,
    conjuncts,
    filtered_by,
    holds,
    is_of_node,
    keys,
    prefilter,
    replaced,
    settled,
)
from hierindex.store.rows import LOST_CHILD

if TYPE_CHECKING:
    from lancedb.query import MatchQuery

    from hierindex.store.snapshot import Snapshot


MOST_KEPT = 10  # cached results of filters
FILTERED = ("documents", "metadata", "source", "parent_ids", *COLUMNS)  # columns that filters read
FAMILY = "id", "parent_ids", "child_ids", "stale"  # columns that `incomplete` reads
LEVEL = PREFIX + "level"
MOST_LISTED = 20

CONTAINED: Op = "text_match_insensitive"
COMPARED: dict[str, Op] = {">": ">", ">=": ">=", "<": "<", "<=": "<=", "~": CONTAINED}
BEGINS = "^[^=!<>~]+(!=|[<>=~])"  # a condition, for descriptions
CONDITION = re.compile(r"\s*(?P<key>[^=!<>~]+?)\s*(?P<sign>!=|>=|<=|=|>|<|~)\s*(?P<value>.*)", re.S)


@dataclass(frozen=True)
class Scope:
    """The rows of a snapshot that pass filters, which are searched or read.

    Parameters
    ----------
    snapshot : Snapshot
        A snapshot whose table exists.
    filters : Filters, optional
    where : Prefilter
        A condition that all these rows meet. If it is `exact`, no other row meets it.
    of_node : Filters, optional
        The filters on a summary itself; None if summaries are filtered like chunks.
    outside : set of str
        Ids of the summaries that fail because of the chunks under them.
    highest_of : set of str, optional
        Ids of summaries. Only these and chunks pass, but none with a parent among these summaries.
    columns : tuple of str
        Columns to return, including those that the filters read.
    """

    snapshot: "Snapshot"
    filters: Filters | None = None
    where: Prefilter = EVERY_ROW
    of_node: Filters | None = None
    outside: frozenset[str] = frozenset()
    highest_of: frozenset[str] | None = None
    columns: tuple[str, ...] = ()

    def search(self, sought: "list[float] | MatchQuery | None" = None) -> Any:
        """Return a LanceDB search restricted to the rows that meet the condition."""
        search = self.snapshot.require().search(sought).with_row_id(True)
        return self.where.narrow(search)

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return the rows that pass."""
        if self.where.exact:
            return rows
        return rows.filter(
            pa.array(map(self._holds, rows.select(FILTERED).to_pylist()), pa.bool_())
        )

    def _holds(self, row: Mapping[str, Any]) -> bool:
        of = self.highest_of
        if of is not None:
            may_pass = row["level"] == 0 or row["id"] in of
            if not may_pass or not of.isdisjoint(row["parent_ids"]):
                return False
        if self.filters is None:
            return True
        if row["level"] == 0 or self.of_node is None:
            return holds(self.filters, filtered_by(row))
        return row["id"] not in self.outside and holds(self.of_node, filtered_by(row))


def passing(snapshot: "Snapshot", filters: Filters | None, *, partial: bool = False) -> Scope:
    """Find the rows of a snapshot that pass filters; warn about keys that no chunk has.

    Parameters
    ----------
    snapshot : Snapshot
    filters : Filters, optional
    partial : bool
        Whether one passing chunk under a summary is enough for it to pass.

    Notes
    -----
    Filters that exclude summaries by `level` cost nothing here. Others read rows once for each
    version of the table; see `outside`.
    """
    if filters is None:
        return Scope(snapshot)
    filters = with_known_keys(snapshot, filters)
    of_row = prefilter(filters)
    if is_of_node(filters):
        return Scope(snapshot, filters, of_row)
    parts = conjuncts(filters)
    of_node = Filters(tuple(part for part in parts if is_of_node(part)))
    of_level = Filters(tuple(part for part in of_node.filters if keys(part) == {LEVEL}))
    levels = range(1, 1 + snapshot.highest_level())
    if not any(holds(of_level, {LEVEL: level}) for level in levels):
        return Scope(snapshot, filters, of_row & CHUNKS)
    of_chunks = Filters(tuple(part for part in parts if not is_of_node(part)))
    failing = outside(snapshot, of_chunks, partial=partial)
    others = snapshot.parents_of_summaries().keys() - failing
    inside = by_ids(others) if len(others) < len(failing) else ~by_ids(failing)  # the shorter list
    where = (SUMMARIES | of_row) & (CHUNKS | prefilter(of_node) & inside)
    return Scope(snapshot, filters, where, of_node, failing)


def outside(snapshot: "Snapshot", filters: Filters, *, partial: bool) -> frozenset[str]:
    """Return the ids of the summaries that fail filters, evaluated on every chunk under them.

    A summary that has lost a child fails as well, because its text may contain that child.
    With `partial`, a summary fails only if no remaining chunk under it passes.

    Parameters
    ----------
    snapshot : Snapshot
        Snapshot that caches the result.
    filters : Filters
        Filters on chunks, possibly combined with filters on the node itself.
    partial : bool
    """
    kept: dict[str, frozenset[str]] = snapshot.known.setdefault("outside", {})
    key = f"{filters!r} {partial}"
    found = kept.get(key)
    if found is None:
        if len(kept) >= MOST_KEPT:
            kept.clear()
        parts = _settled(snapshot, filters)
        failing = [_failing(snapshot, of_chunks, ids, partial) for of_chunks, ids in parts]
        found = kept[key] = frozenset().union(*failing)
    return found


def without_a_passing_chunk(snapshot: "Snapshot", filters: Filters | None) -> Set[str]:
    """Return the ids of summaries with no chunk under them that passes the filters on chunks."""
    parts = conjuncts(filters) if filters is not None else []
    of_chunks = [part for part in parts if is_of_node(part) is False]
    if not of_chunks:
        return frozenset()
    return outside(snapshot, Filters(tuple(of_chunks)), partial=True)


def _settled(snapshot: "Snapshot", filters: Filters) -> list[tuple[Filters, Set[str]]]:
    """Group summaries by the filters on chunks that remain once their own columns are known."""
    if is_of_node(filters) is False:
        return [(filters, snapshot.parents_of_summaries().keys())]
    groups = dict[str, tuple[Filters, set[str]]]()
    for row in snapshot.select(*COLUMNS, where=SUMMARIES).to_pylist():
        rest = settled(filters, columns_of(row))
        groups.setdefault(repr(rest), (rest, set()))[1].add(row["id"])
    return [*groups.values()]


def _failing(
    snapshot: "Snapshot", filters: Filters, summaries: Set[str], partial: bool
) -> Set[str]:
    parents = snapshot.parents_of_summaries()
    if partial:
        opposite = Filters((filters,), "not")
        return summaries - with_ancestors(_above_failing(snapshot, opposite), parents)
    of = with_ancestors(_above_failing(snapshot, filters), parents)
    return summaries & (of | incomplete_of(snapshot))


def _above_failing(snapshot: "Snapshot", filters: Filters) -> set[str]:
    """Return the ids of the parents of the chunks that fail."""
    fails = ~prefilter(filters)
    columns = ["parent_ids"] if fails.exact else FILTERED
    rows = snapshot.select(*columns, where=fails & CHUNKS).to_pylist()
    if not fails.exact:
        rows = [row for row in rows if not holds(filters, filtered_by(row))]
    return {parent for row in rows for parent in row["parent_ids"]}


def incomplete_of(snapshot: "Snapshot") -> Set[str]:
    """Return the ids of the summaries of a snapshot that `incomplete` names."""
    return incomplete(snapshot.select(*FAMILY, where=SUMMARIES).to_pylist())


def incomplete(summaries: Collection[Mapping[str, Any]]) -> Set[str]:
    """Return the ids of summaries that have lost a child or have none, and of their ancestors.

    `summaries` are the columns `FAMILY` of all summaries.
    """
    of = {row["id"] for row in summaries if row["stale"] == LOST_CHILD or not row["child_ids"]}
    return with_ancestors(of, {row["id"]: row["parent_ids"] for row in summaries})


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

    def renamed(f: Filter, negated: bool) -> Part:
        if f.key in known:
            return replace(f, key=known[f.key])
        return EVERYTHING if negated else NOTHING  # so that the NOT matches nothing, too

    return replaced(filters, renamed)


def metadata_keys(snapshot: "Snapshot") -> list[str]:
    """Return the keys of the chunks' metadata, the most common first."""
    counts = Counter[str]()
    for row in snapshot.select(*FILTERED, where=CHUNKS).to_pylist():
        values = filtered_by(row).items()
        counts.update(key for key, value in values if value is not None and key not in OURS)
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
