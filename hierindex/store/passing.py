"""Which rows pass filters: a chunk by its metadata, a summary by those of all chunks under it.

A filter on the node itself (`level`, `kind`, ...) is asked of the row. Any other is asked of
chunks: a summary passes if every chunk under it does, so that nothing of a chunk that is
filtered out is said within a summary. The metadata of a summary, merged into lists of bounded
length, decide nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from llama_index.core.vector_stores.types import (
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
)

from hierindex.store.checks import is_chunk
from hierindex.store.failing import Failing, failing
from hierindex.store.filters import filtered_by, holds, is_of_node
from hierindex.store.prefilter import Prefilter, prefilter

if TYPE_CHECKING:
    import pyarrow as pa

    from hierindex.store.snapshot import Snapshot

AND, OR, NOT = FilterCondition.AND, FilterCondition.OR, FilterCondition.NOT
Filter = MetadataFilter | MetadataFilters


@dataclass(frozen=True)
class Clause:
    """Filters one of which holds: of the node itself, or of every chunk under it."""

    node: tuple[Filter, ...] = ()
    chunk: tuple[Filter, ...] = ()

    @property
    def of_chunks(self) -> MetadataFilters:
        """Those of chunks, as one."""
        return MetadataFilters(filters=list(self.chunk), condition=OR)

    @property
    def of_node(self) -> MetadataFilters:
        """Those of the node, as one."""
        return MetadataFilters(filters=list(self.node), condition=OR)


def clauses(filters: Filter, *, opposite: bool = False) -> list[Clause]:
    """Filters, or their opposite, in conjunctive normal form: all of the clauses hold.

    A part that asks of nodes alone, or of chunks alone, is not taken apart.
    """
    of_node = is_of_node(filters)
    if of_node is not None:
        one: Filter = MetadataFilters(filters=[filters], condition=NOT) if opposite else filters
        return [Clause(node=(one,)) if of_node else Clause(chunk=(one,))]
    assert isinstance(filters, MetadataFilters)  # a single filter asks of one or the other
    within = opposite != (filters.condition is NOT)
    parts = [clauses(each, opposite=within) for each in filters.filters]
    if (filters.condition is OR) == opposite:  # all of them hold
        return [clause for part in parts for clause in part]
    return [
        Clause(tuple(f for c in one for f in c.node), tuple(f for c in one for f in c.chunk))
        for one in product(*parts)
    ]


@dataclass(frozen=True)
class Passing:
    """The rows of a table that pass filters.

    Parameters
    ----------
    filters : MetadataFilters, optional
    where : Prefilter
        A condition that they meet; if it is `exact`, they alone.
    clauses : sequence of (Clause, Failing)
        What a summary must meet, each with the summaries of which some chunk fails it, if it
        asks of chunks.
    partial : bool
        Whether a summary passes if any chunk under it does. The clauses are then those of the
        opposite, which must not hold.
    """

    filters: MetadataFilters | None = None
    where: Prefilter = field(default_factory=Prefilter)
    clauses: Sequence[tuple[Clause, Failing | None]] | None = None
    partial: bool = False

    def of(self, rows: "pa.Table") -> "pa.Table":
        """The rows that pass."""
        import pyarrow as pa

        if self.filters is None or self.where.exact:
            return rows
        return rows.filter(pa.array([self.holds(row) for row in rows.to_pylist()], pa.bool_()))

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row passes."""
        if self.filters is None:
            return True
        seen = filtered_by(row)
        if row["level"] == 0 or self.clauses is None:
            return holds(self.filters, seen)
        every = all(
            holds(clause.of_node, seen) or (fails is not None and row["id"] not in fails.ids)
            for clause, fails in self.clauses
        )
        return every != self.partial


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

    Notes
    -----
    Filters that no summary can pass by its level, as those for chunks, cost nothing here. The
    ids of the summaries with a chunk that fails are read once for each version and filter: of
    the chunks that fail, their parents.
    """
    if filters is None:
        return Passing()
    of_row = prefilter(filters)
    if is_of_node(filters):
        return Passing(filters, of_row)
    if not _may_pass(clauses(filters), await snapshot.level_sizes()):
        return Passing(filters, of_row & Prefilter(is_chunk()))
    found = [
        (
            clause,
            await failing(snapshot, clause.of_chunks, partial=partial) if clause.chunk else None,
        )
        for clause in clauses(filters, opposite=partial)
    ]
    conditions = [_condition(clause, fails) for clause, fails in found]
    of_summary = _any(~condition for condition in conditions) if partial else _all(conditions)
    where = of_row.where(is_chunk(), "level > 0") & of_summary.where(~is_chunk(), "level = 0")
    return Passing(filters, where, found, partial)


def _may_pass(every: Iterable[Clause], levels: Iterable[int]) -> bool:
    """Whether a summary of some level meets the clauses that ask of the level alone."""
    of_level = [c.of_node for c in every if not c.chunk and _keys(c.of_node) == {"level"}]
    return any(
        all(holds(filters, {"level": level}) for filters in of_level)
        for level in levels
        if level > 0
    )


def _keys(filters: Filter) -> set[str]:
    if isinstance(filters, MetadataFilter):
        return {filters.key}
    return {key for each in filters.filters for key in _keys(each)}


def _condition(clause: Clause, fails: Failing | None) -> Prefilter:
    """What a summary that meets a clause meets, as a condition on scalar columns."""
    parts = [prefilter(clause.of_node)] if clause.node else []
    if fails is not None:
        parts.append(Prefilter(fails.others))
    return _any(parts)


def _all(conditions: Iterable[Prefilter]) -> Prefilter:
    both = Prefilter()
    for condition in conditions:
        both &= condition
    return both


def _any(conditions: Iterable[Prefilter]) -> Prefilter:
    first, *others = conditions
    for other in others:
        first |= other
    return first
