"""Rows that pass metadata filters: chunks by their metadata, summaries by their chunks.

A filter on the node itself (`hierindex_level`, ...) is evaluated on its row. Any other filter is
evaluated on chunks: a summary passes if every chunk under it passes, so that no summary reveals an
excluded chunk. The merged metadata of summaries are not used, because their lists are truncated.
"""

import json
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from hierindex.errors import InputError, NotFoundError, nearest
from hierindex.node import PREFIX
from hierindex.store.filters import (
    CHILDLESS,
    CHUNKS,
    DOCUMENTS,
    EVERYTHING,
    NO_ROW,
    NOTHING,
    OF_NODE,
    OURS,
    SUMMARIES,
    Filter,
    Filters,
    Op,
    Part,
    Prefilter,
    all_of,
    by_ids,
    conjuncts,
    is_of_node,
    keys,
    prefilter,
    replaced,
)

if TYPE_CHECKING:
    from lancedb.query import MatchQuery

    from hierindex.store.snapshot import Snapshot


MOST_KEPT = 10  # cached results of filters
MOST_LISTED = 20

CONTAINED: Op = "text_match_insensitive"
COMPARED: dict[str, Op] = {">": ">", ">=": ">=", "<": "<", "<=": "<=", "~": CONTAINED}
BEGINS = "^[^=!<>~]+(!=|[<>=~])"  # a condition, for descriptions
CONDITION = re.compile(r"\s*(?P<key>[^=!<>~]+?)\s*(?P<sign>!=|>=|<=|=|>|<|~)\s*(?P<value>.*)", re.S)


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
    """Return the condition that rows meet another one and pass filters; warn about unknown keys.

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


def without_a_passing_chunk(snapshot: "Snapshot", filters: Filters | None) -> Set[str]:
    """Return the ids of summaries with no chunk under them that passes the filters on chunks."""
    parts = conjuncts(filters) if filters is not None else []
    of_chunks = [part for part in parts if is_of_node(part) is False]
    return outside(snapshot, Filters(tuple(of_chunks)), partial=True) if of_chunks else frozenset()


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

    def renamed(f: Filter, negated: bool) -> Part:
        if f.key in known:
            return replace(f, key=known[f.key])
        return EVERYTHING if negated else NOTHING  # so that the NOT matches nothing, too

    return replaced(filters, renamed)


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
