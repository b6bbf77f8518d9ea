"""Summaries that stand on a chunk which filters leave out."""

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.store.checks import at_least, is_chunk
from hierindex.store.filters import OF_NODE, filtered_by, holds
from hierindex.store.prefilter import Prefilter, prefilter
from hierindex.store.schema import LOST_CHILD

if TYPE_CHECKING:
    from lancedb.expr import Expr

    from hierindex.store.snapshot import Snapshot

MOST_FILTERS = 32  # whose summaries are kept
FILTERED = ("documents", "metadata", "source", *OF_NODE)  # columns that filters look at


class Failing(NamedTuple):
    """Summaries with a chunk under them that fails; `others` is the condition of all other ids."""

    ids: frozenset[str]
    others: "Expr"


async def failing(
    snapshot: "Snapshot", filters: MetadataFilters, *, partial: bool = False
) -> Failing:
    """The summaries with a chunk under them, through any membership, that fails.

    Unless `partial`, also those whose chunks are not all known: a summary that has lost a child
    still says what that said.

    Parameters
    ----------
    snapshot : Snapshot
        Read once for each filter: of the chunks that fail, their parents.
    filters : MetadataFilters
        Of chunks alone.
    partial : bool
    """
    kept = snapshot.known.setdefault("failing", {})
    key = f"{filters!r} {partial}"
    if key not in kept:
        if len(kept) >= MOST_FILTERS:
            kept.clear()
        of = await _above_failing(snapshot, filters)
        of |= set() if partial else await _incomplete(snapshot)
        parents = await snapshot.parents_of_summaries()
        ids = _with_ancestors(of, parents)
        kept[key] = Failing(ids, _none_of(ids, parents.keys()))
    found: Failing = kept[key]
    return found


def _none_of(ids: frozenset[str], summaries: Set[str]) -> "Expr":
    """The condition that a summary's id is none of these, by the shorter list of ids."""
    from lancedb.expr import col

    others = summaries - ids
    if len(others) < len(ids):
        return col("id").isin(sorted(others) or [""])  # no node has an empty id
    return ~col("id").isin(sorted(ids) or [""])


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


async def _incomplete(snapshot: "Snapshot") -> set[str]:
    """Ids of the summaries that have lost a child, or have none."""
    if "incomplete" not in snapshot.known:
        rows = await snapshot.select("id", "child_ids", "stale", where=Prefilter(at_least(1)))
        snapshot.known["incomplete"] = {
            row["id"]
            for row in rows.to_pylist()
            if row["stale"] == LOST_CHILD or not row["child_ids"]
        }
    return set(snapshot.known["incomplete"])


def _with_ancestors(of: set[str], parents: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Summaries and all above them."""
    reached, coming = set[str](), of
    while coming:
        reached |= coming
        coming = {parent for node_id in coming for parent in parents.get(node_id, ())} - reached
    return frozenset(reached)
