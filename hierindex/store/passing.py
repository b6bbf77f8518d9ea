"""Which rows pass filters: a chunk by its metadata, a summary by those of all chunks under it.

A filter on the node itself (`level`, `kind`, ...) is asked of the row. Any other is asked of
chunks: a summary passes if every chunk under it does, so that nothing of a chunk that is
filtered out is said within a summary. The metadata of a summary, merged into lists of bounded
length, decide nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.store.failing import outside
from hierindex.store.filters import (
    Filter,
    all_of,
    check_depth,
    conjuncts,
    filtered_by,
    holds,
    is_of_node,
    keys,
)
from hierindex.store.prefilter import Prefilter, is_chunk, prefilter

if TYPE_CHECKING:
    import pyarrow as pa

    from hierindex.store.snapshot import Snapshot


@dataclass(frozen=True)
class Passing:
    """The rows of a table that pass filters.

    Parameters
    ----------
    filters : MetadataFilters, optional
    where : Prefilter
        A condition that they meet; if it is `exact`, no other row meets it.
    of_node : MetadataFilters, optional
        What is asked of a summary itself; None where summaries are seen as chunks are.
    outside : set of str
        Ids of the summaries that fail by the chunks under them.
    """

    filters: MetadataFilters | None = None
    where: Prefilter = field(default_factory=Prefilter)
    of_node: MetadataFilters | None = None
    outside: frozenset[str] = frozenset()

    def rows(self, found: "pa.Table") -> "pa.Table":
        """The rows that pass."""
        import pyarrow as pa

        if self.filters is None or self.where.exact:
            return found
        return found.filter(pa.array([self._holds(row) for row in found.to_pylist()], pa.bool_()))

    def _holds(self, row: Mapping[str, Any]) -> bool:
        assert self.filters is not None
        if row["level"] == 0 or self.of_node is None:
            return holds(self.filters, filtered_by(row))
        return row["id"] not in self.outside and holds(self.of_node, filtered_by(row))


async def passing(
    snapshot: "Snapshot", filters: MetadataFilters | None, *, partial: bool = False
) -> Passing:
    """The rows of a version of the table that pass filters.

    Parameters
    ----------
    snapshot : Snapshot
    filters : MetadataFilters, optional
    partial : bool
        Whether a summary passes if any chunk under it does, and not only if every chunk does.

    Raises
    ------
    InputError
        If the filters are nested too deep.

    Notes
    -----
    Filters that no summary can pass by its level, as those for chunks, cost nothing here. For
    others see `outside`.
    """
    if filters is None:
        return Passing()
    check_depth(filters)
    of_row = prefilter(filters)
    if is_of_node(filters):
        return Passing(filters, of_row)
    parts = conjuncts(filters)
    of_node = all_of(part for part in parts if is_of_node(part))
    if not _has_level(of_node.filters, await snapshot.level_sizes()):
        return Passing(filters, of_row & Prefilter(is_chunk()))
    of_chunks = all_of(part for part in parts if not is_of_node(part))
    failing = await outside(snapshot, of_chunks, partial=partial)
    of_summary = prefilter(of_node) & Prefilter(failing.others)
    where = of_row.where(is_chunk(), "level > 0") & of_summary.where(~is_chunk(), "level = 0")
    return Passing(filters, where, of_node, failing.ids)


def _has_level(of_node: Sequence[Filter], levels: Iterable[int]) -> bool:
    """Whether a level above the chunks passes the filters that ask of the level alone."""
    of_level = all_of(each for each in of_node if keys(each) == {"level"})
    return any(level > 0 and holds(of_level, {"level": level}) for level in levels)
