"""Summaries that fail filters by the chunks under them."""

from collections import defaultdict
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.store.filters import (
    NOT,
    OF_NODE,
    all_of,
    conjuncts,
    filtered_by,
    holds,
    is_of_node,
    residual,
)
from hierindex.store.prefilter import Prefilter, at_least, is_chunk, prefilter
from hierindex.store.schema import LOST_CHILD

if TYPE_CHECKING:
    from lancedb.expr import Expr

    from hierindex.store.snapshot import Snapshot

MOST_IDS = 1_000_000  # of all filters that are kept
FILTERED = ("documents", "metadata", "source", *OF_NODE)  # columns that filters look at


class Outside(NamedTuple):
    """Ids of the summaries that fail; `others` is the condition that an id is none of them."""

    ids: frozenset[str]
    others: "Expr"


async def outside(snapshot: "Snapshot", filters: MetadataFilters, *, partial: bool) -> Outside:
    """The summaries that fail filters, each asked of every chunk under it.

    A summary whose chunks are not all known fails: one that has lost a child still says what
    that said. With `partial`, a summary fails if no chunk under it, as far as known, passes.

    Parameters
    ----------
    snapshot : Snapshot
        Read once for each filter: the parents of the chunks that fail.
    filters : MetadataFilters
        Of chunks, or mixed with such of the node itself.
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
    snapshot: "Snapshot", filters: MetadataFilters | None
) -> Set[str]:
    """Ids of the summaries under which nothing passes what filters ask of chunks."""
    parts = conjuncts(filters) if filters is not None else []
    of_chunks = [part for part in parts if is_of_node(part) is False]
    if not of_chunks:
        return frozenset()
    return (await outside(snapshot, all_of(of_chunks), partial=True)).ids


async def _residuals(
    snapshot: "Snapshot", filters: MetadataFilters
) -> list[tuple[MetadataFilters | bool, Set[str]]]:
    """What is left to ask of chunks once a summary's own place is known, and of which summaries."""
    if is_of_node(filters) is False:
        return [(filters, (await snapshot.parents_of_summaries()).keys())]
    rows = (await snapshot.select(*OF_NODE, where=at_least(1))).to_pylist()
    left: dict[str, MetadataFilters | bool] = {}
    ids: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        rest = residual(filters, row)
        key = repr(rest)
        left[key] = rest if isinstance(rest, bool) else all_of([rest])
        ids[key].add(row["id"])
    return [(left[key], ids[key]) for key in left]


async def _failing(
    snapshot: "Snapshot", filters: MetadataFilters | bool, summaries: Set[str], partial: bool
) -> Set[str]:
    """The summaries, of these, that fail."""
    if isinstance(filters, bool):
        return frozenset() if filters else summaries
    parents = await snapshot.parents_of_summaries()
    if partial:
        opposite = MetadataFilters(filters=[filters], condition=NOT)
        return summaries - _with_ancestors(await _above_failing(snapshot, opposite), parents)
    of = await _above_failing(snapshot, filters) | await incomplete(snapshot)
    return summaries & _with_ancestors(of, parents)


async def _above_failing(snapshot: "Snapshot", filters: MetadataFilters) -> set[str]:
    """Ids of the parents of the chunks that fail."""
    fails = ~prefilter(filters)
    columns = ["parent_ids", *(() if fails.exact else FILTERED)]
    rows = (await snapshot.select(*columns, where=fails & Prefilter(is_chunk()))).to_pylist()
    if not fails.exact:
        rows = _failing_rows(rows, filters)
    return {parent for row in rows for parent in row["parent_ids"]}


def _failing_rows(rows: list[dict[str, Any]], filters: MetadataFilters) -> list[dict[str, Any]]:
    """The rows that fail; chunks of one document mostly have the same metadata, read once."""
    passes: dict[tuple[Any, ...], bool] = {}
    failing = []
    for row in rows:
        seen = row["metadata"], row["source"], *row["documents"]
        if seen not in passes:
            passes[seen] = holds(filters, filtered_by(row))
        if not passes[seen]:
            failing.append(row)
    return failing


async def incomplete(snapshot: "Snapshot") -> Set[str]:
    """Ids of the summaries that have lost a child, or have none, and of all above them."""
    rows = await snapshot.select("id", "child_ids", "stale", where=at_least(1))
    of = {
        row["id"] for row in rows.to_pylist() if row["stale"] == LOST_CHILD or not row["child_ids"]
    }
    return _with_ancestors(of, await snapshot.parents_of_summaries())


def _with_ancestors(of: Set[str], parents: Mapping[str, tuple[str, ...]]) -> Set[str]:
    """Summaries and all above them."""
    reached, coming = set[str](), set(of)
    while coming:
        reached |= coming
        coming = {parent for node_id in coming for parent in parents.get(node_id, ())} - reached
    return reached


def _none_of(ids: Set[str], summaries: Set[str]) -> "Expr":
    """The condition that a summary's id is none of these, by the shorter list of ids."""
    from lancedb.expr import col

    others = summaries - ids
    if len(others) < len(ids):
        return col("id").isin(sorted(others) or [""])  # no node has an empty id
    return ~col("id").isin(sorted(ids) or [""])
