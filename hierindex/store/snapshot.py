"""One generation of the table, from which a question is answered."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from hierindex.errors import InputError
from hierindex.store.filters import filters_of
from hierindex.store.nodes import node_of, to_nodes
from hierindex.store.passing import FILTERED, Passing, passing
from hierindex.store.prefilter import Prefilter, all_of, beginning, by_ids
from hierindex.store.schema import NODE_COLUMNS
from hierindex.store.search import Scope, answer, check_query
from hierindex.store.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    import pyarrow as pa


class Snapshot(TableSnapshot):
    """A generation of the table, which later writes do not change, and its nodes.

    A question reads from one snapshot, so that all it reads belongs to one tree.
    """

    def query(self, query: VectorStoreQuery, **options: Any) -> VectorStoreQueryResult:
        """Return the best nodes that pass the query's filters; see `HierarchyStore.aquery`."""
        rows = self.found(query, **options)
        return VectorStoreQueryResult(
            nodes=to_nodes(rows),
            similarities=rows["score"].to_pylist(),
            ids=rows["id"].to_pylist(),
        )

    def found(
        self,
        query: VectorStoreQuery,
        *columns: str,
        partial_summaries: bool = False,
        highest_of: frozenset[str] | None = None,
        **options: Any,
    ) -> "pa.Table":
        """Return columns, by default those of nodes, and the `score` of the rows of `query`.

        See `Passing` for `highest_of`.
        """
        check_query(query)
        columns = columns or (*NODE_COLUMNS,)
        if not self.exists:
            return self.select(*columns).append_column("score", [[]])
        if query.query_embedding:
            self.check_dimension(len(query.query_embedding))
        passes = passing(self, filters_of(query), partial=partial_summaries, highest_of=highest_of)
        most = len(query.node_ids) if query.node_ids else None
        return answer(Scope(self, passes, most, _read_by(passes, columns)), query, **options)

    def nodes(
        self,
        node_ids: Collection[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        partial_summaries: bool = False,
    ) -> list[TextNode]:
        """Return nodes with embeddings, by ids (in their order), by filters, by both, or all."""
        found = self.rows(node_ids, filters, partial_summaries=partial_summaries)
        return list(map(node_of, found))

    def rows(
        self,
        node_ids: Collection[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        where: Prefilter | None = None,
        partial_summaries: bool = False,
        columns: Sequence[str] = (*NODE_COLUMNS, "vector"),
    ) -> list[dict[str, Any]]:
        """Return columns of the rows of `nodes` that meet a condition, `id` among them."""
        if not self.exists:
            return []
        passes = passing(self, filters, partial=partial_summaries)
        parts = [passes.where, where, None if node_ids is None else by_ids(node_ids)]
        where = all_of([part for part in parts if part is not None])
        table = passes.rows(self.select(*_read_by(passes, columns), where=where))
        by_id = {row["id"]: row for row in table.to_pylist()}
        return [by_id[i] for i in (by_id if node_ids is None else node_ids) if i in by_id]

    def ids(
        self,
        filters: MetadataFilters,
        where: Prefilter,
        *,
        partial_summaries: bool = False,
        highest_of: frozenset[str] | None = None,
    ) -> list[str]:
        """Return the ids of the nodes that pass filters and meet a condition."""
        passes = passing(self, filters, partial=partial_summaries, highest_of=highest_of)
        rows = self.select(*_read_by(passes, ["id"]), where=passes.where & where)
        ids: list[str] = passes.rows(rows)["id"].to_pylist()
        return ids

    def ids_beginning(self, start: str) -> list[str]:
        """Return the ids that begin with a text, sorted."""
        ids = self.select("id", where=beginning(start))["id"].to_pylist()
        return sorted(node_id for node_id in ids if node_id.startswith(start))

    def id_beginning(self, start: str, *, or_document: bool = False) -> str:
        """Return the id that is a text, or the only one that begins with it.

        Raises
        ------
        InputError
            If no id or more than one begins with it; `or_document` adds that no document has it.
        """
        ids = self.ids_beginning(start)
        if start not in ids and len(ids) != 1:
            no = f"No document has the id {start!r}, and no" if or_document else "No"
            raise InputError(
                f"{len(ids) or no} nodes have an id that begins with {start!r}; "
                "`hierindex tree` and `hierindex query` show ids."
            )
        return start if start in ids else ids[0]

    def node_beginning(self, start: str) -> TextNode:
        """Return the node whose id is a text, or the only one whose id begins with it."""
        return self.nodes([self.id_beginning(start)])[0]


def _read_by(passes: Passing, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to read: the given ones, and those that the filters read in Python."""
    return tuple(dict.fromkeys((*columns, *(() if passes.where.exact else FILTERED))))
