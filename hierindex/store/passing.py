"""Rows that pass metadata filters: chunks by their metadata, summaries by their chunks.

A filter on the node itself (`hierindex_level`, ...) is evaluated on its row. Any other filter is
evaluated on chunks: a summary passes if every chunk under it does, so that no summary reveals
an excluded chunk. The merged metadata of a summary are not used, as their lists are truncated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.record import LEVEL
from hierindex.store.failing import FILTERED, outside
from hierindex.store.filters import (
    PREFIX,
    Filter,
    check_depth,
    conjuncts,
    filtered_by,
    holds,
    is_of_node,
    keys,
)
from hierindex.store.keys import with_known_keys
from hierindex.store.prefilter import ANYTHING, CHUNKS, SUMMARIES, Prefilter, prefilter
from hierindex.store.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Passing:
    """The rows of a table that pass filters.

    Parameters
    ----------
    filters : MetadataFilters, optional
    where : Prefilter
        A condition that all of them meet; if it is `exact`, no other row does.
    of_node : MetadataFilters, optional
        The filters on a summary itself; None if summaries are filtered as chunks are.
    outside : set of str
        Ids of the summaries that fail because of the chunks under them.
    highest_of : set of str, optional
        Ids of summaries; only these and chunks pass, and none with a parent among these.
    """

    filters: MetadataFilters | None = None
    where: Prefilter = field(default_factory=Prefilter)
    of_node: MetadataFilters | None = None
    outside: frozenset[str] = frozenset()
    highest_of: frozenset[str] | None = None

    def rows(self, rows: "pa.Table") -> "pa.Table":
        """Return the rows that pass."""
        import pyarrow as pa

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


async def passing(
    snapshot: TableSnapshot,
    filters: MetadataFilters | None,
    *,
    partial: bool = False,
    highest_of: frozenset[str] | None = None,
) -> Passing:
    """Find the rows of a snapshot that pass filters; warn of keys that no chunk has.

    Parameters
    ----------
    snapshot : TableSnapshot
    filters : MetadataFilters, optional
    partial : bool
        Whether one passing chunk under a summary is enough for it to pass.
    highest_of : set of str, optional
        See `Passing`.

    Raises
    ------
    InputError
        If the filters are nested too deep.

    Notes
    -----
    Filters that exclude summaries by `level` cost nothing here. Others read rows once for each
    version of the table; see `outside`.
    """
    if highest_of is not None:
        passes = await passing(snapshot, filters, partial=partial)
        return replace(passes, where=passes.where & ANYTHING, highest_of=highest_of)
    if filters is None:
        return Passing()
    check_depth(filters)
    filters = await with_known_keys(snapshot, filters)
    of_row = prefilter(filters)
    if is_of_node(filters):
        return Passing(filters, of_row)
    parts = conjuncts(filters)
    of_node = MetadataFilters(filters=[part for part in parts if is_of_node(part)])
    if not _has_level(of_node.filters, await snapshot.level_sizes()):
        return Passing(filters, of_row & CHUNKS)
    of_chunks = MetadataFilters(filters=[part for part in parts if not is_of_node(part)])
    failing = await outside(snapshot, of_chunks, partial=partial)
    where = (SUMMARIES | of_row) & (CHUNKS | prefilter(of_node) & failing.others)
    return Passing(filters, where, of_node, failing.ids)


def _has_level(of_node: Sequence[Filter], levels: Iterable[int]) -> bool:
    """Return whether the filters on the level alone admit a level above the chunks."""
    of_level = MetadataFilters(filters=[f for f in of_node if keys(f) == {PREFIX + LEVEL}])
    return any(level > 0 and holds(of_level, {PREFIX + LEVEL: level}) for level in levels)
