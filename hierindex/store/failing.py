"""Summaries that fail metadata filters because of the chunks under them."""

from collections import defaultdict
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.store.filters import (
    COLUMNS,
    NOT,
    columns_of,
    conjuncts,
    filtered_by,
    holds,
    is_of_node,
    residual,
)
from hierindex.store.prefilter import CHUNKS, SUMMARIES, Prefilter, by_ids, prefilter
from hierindex.store.schema import LOST_CHILD
from hierindex.store.table_snapshot import TableSnapshot

MOST_IDS = 1_000_000  # in the cached results of all filters
FILTERED = ("documents", "metadata", "source", "parent_ids", *COLUMNS)  # columns that filters read


class Outside(NamedTuple):
    """Ids of the summaries that fail; `others` is the condition that excludes them."""

    ids: frozenset[str]
    others: Prefilter


async def outside(snapshot: TableSnapshot, filters: MetadataFilters, *, partial: bool) -> Outside:
    """Find the summaries that fail filters, which are evaluated on every chunk under them.

    A summary that has lost a child fails as well, because its text may contain that child.
    With `partial`, a summary fails only if no remaining chunk under it passes.

    Parameters
    ----------
    snapshot : TableSnapshot
        Caches the result for its version.
    filters : MetadataFilters
        On chunks, possibly combined with filters on the node itself.
    partial : bool
    """
    kept: dict[str, Outside] = snapshot.known.setdefault("outside", {})
    key = f"{filters!r} {partial}"
    found = kept.get(key)
    if found is None:
        if sum(len(each.ids) for each in list(kept.values())) > MOST_IDS:
            kept.clear()
        ids: set[str] = set()
        for of_chunks, summaries in await _residuals(snapshot, filters):
            ids |= await _failing(snapshot, of_chunks, summaries, partial)
        every = (await snapshot.parents_of_summaries()).keys()
        found = kept[key] = Outside(frozenset(ids), _none_of(ids, every))
    return found


async def without_a_passing_chunk(
    snapshot: TableSnapshot, filters: MetadataFilters | None
) -> Set[str]:
    """Return the ids of the summaries under which no chunk passes the filters on chunks."""
    parts = conjuncts(filters) if filters is not None else []
    of_chunks = [part for part in parts if is_of_node(part) is False]
    if not of_chunks:
        return frozenset()
    return (await outside(snapshot, MetadataFilters(filters=of_chunks), partial=True)).ids


async def _residuals(
    snapshot: TableSnapshot, filters: MetadataFilters
) -> list[tuple[MetadataFilters | bool, Set[str]]]:
    """Group summaries by the filters on chunks that remain once their own columns are known."""
    if is_of_node(filters) is False:
        return [(filters, (await snapshot.parents_of_summaries()).keys())]
    rows = (await snapshot.select(*COLUMNS, where=SUMMARIES)).to_pylist()
    remaining: dict[str, MetadataFilters | bool] = {}
    ids: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        rest = residual(filters, columns_of(row))
        key = repr(rest)
        remaining[key] = rest if isinstance(rest, bool) else MetadataFilters(filters=[rest])
        ids[key].add(row["id"])
    return [(remaining[key], ids[key]) for key in remaining]


async def _failing(
    snapshot: TableSnapshot, filters: MetadataFilters | bool, summaries: Set[str], partial: bool
) -> Set[str]:
    if isinstance(filters, bool):
        return frozenset() if filters else summaries
    parents = await snapshot.parents_of_summaries()
    if partial:
        opposite = MetadataFilters(filters=[filters], condition=NOT)
        return summaries - _with_ancestors(await _above_failing(snapshot, opposite), parents)
    of = await _above_failing(snapshot, filters) | await incomplete(snapshot)
    return summaries & _with_ancestors(of, parents)


async def _above_failing(snapshot: TableSnapshot, filters: MetadataFilters) -> set[str]:
    """Return the ids of the parents of the chunks that fail."""
    fails = ~prefilter(filters)
    columns = ["parent_ids"] if fails.exact else FILTERED
    rows = (await snapshot.select(*columns, where=fails & CHUNKS)).to_pylist()
    if not fails.exact:
        rows = _failing_rows(rows, filters)
    return {parent for row in rows for parent in row["parent_ids"]}


def _failing_rows(rows: list[dict[str, Any]], filters: MetadataFilters) -> list[dict[str, Any]]:
    """Return the rows that fail; metadata that several rows share are evaluated once."""
    passes: dict[tuple[Any, ...], bool] = {}
    failing = []
    for row in rows:
        seen = row["metadata"], row["source"], *row["documents"]
        if seen not in passes:
            passes[seen] = holds(filters, filtered_by(row))
        if not passes[seen]:
            failing.append(row)
    return failing


async def incomplete(snapshot: TableSnapshot) -> Set[str]:
    """Return the ids of summaries that have lost a child or have none, and of their ancestors."""
    rows = await snapshot.select("id", "child_ids", "stale", where=SUMMARIES)
    of = {
        row["id"] for row in rows.to_pylist() if row["stale"] == LOST_CHILD or not row["child_ids"]
    }
    return _with_ancestors(of, await snapshot.parents_of_summaries())


def _with_ancestors(of: Set[str], parents: Mapping[str, tuple[str, ...]]) -> Set[str]:
    reached, coming = set[str](), set(of)
    while coming:
        reached |= coming
        coming = {parent for node_id in coming for parent in parents.get(node_id, ())} - reached
    return reached


def _none_of(ids: Set[str], summaries: Set[str]) -> Prefilter:
    """Return the condition that an id is none of these, written with the shorter list of ids."""
    others = summaries - ids
    return by_ids(others) if len(others) < len(ids) else ~by_ids(ids)
