"""The vector store: every level of a tree in one LanceDB table."""

import asyncio
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import (
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from hierindex.errors import IndexNotFoundError, InputError
from hierindex.record import LEVEL, LEVEL_MAX
from hierindex.store.async_first import AsyncFirstStore, wait_for
from hierindex.store.cache import cache_file, forget, remove
from hierindex.store.checks import by_ids, check_dimension, vector_of
from hierindex.store.filters import filtered_by, filters_of, holds, to_expression
from hierindex.store.links import beside, highest_level, linked_to, unlinked
from hierindex.store.schema import NODE_COLUMNS, to_nodes, to_table

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import AsyncConnection, DBConnection
    from lancedb.expr import Expr
    from lancedb.table import AsyncTable

REPORT = "hierindex"  # key of the build's report in the table's own metadata


class HierarchyStore(AsyncFirstStore):
    """All levels of a tree in one LanceDB table; adding is an upsert by id.

    Parameters
    ----------
    uri : str or Path
        A folder, or whatever LanceDB connects to.
    table_name : str

    Raises
    ------
    InputError
        If there is a file in the folder's place.

    Notes
    -----
    Scores are cosine similarities, in [-1, 1]. Filters reach all metadata and the columns
    `id`, `kind`, `level`, `level_max` (a node belongs to every cut between them) and
    `documents`, which win over metadata keys of these names.

    Every method is written once, async; its sync twin waits for it on LanceDB's own event
    loop, as LanceDB's sync interface does, so that it also works inside a running loop.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    stores_text: bool = True
    uri: str
    table_name: str = Field(default="nodes")

    _connection: "AsyncConnection | None" = PrivateAttr(default=None)

    def __init__(self, uri: str | Path, table_name: str = "nodes", **kwargs: Any) -> None:
        if Path(uri).is_file():
            raise InputError(f"An index is a folder, {str(uri)!r} is a file; name another.")
        super().__init__(uri=str(uri), table_name=table_name, **kwargs)  # type: ignore[call-arg]

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "HierarchyStore"

    @property
    def client(self) -> "DBConnection":
        """A LanceDB connection, for what this class does not offer."""
        import lancedb

        return lancedb.connect(self.uri)

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Insert nodes, replacing those of the same id; returns their ids.

        Raises
        ------
        InputError
            If a node has no embedding, or one of another dimension than the table's.
        """
        if not nodes:
            return []
        rows = to_table(nodes)
        table = await self._table()
        if table is None:
            await (await self._connect()).create_table(self.table_name, rows)
        else:
            check_dimension(await table.schema(), len(nodes[0].embedding or ()), "the nodes have")
            merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            await merge.execute(rows)
        return [node.node_id for node in nodes]

    async def areplace(self, nodes: Sequence[BaseNode], report: dict[str, Any]) -> int:
        """Put these nodes in the place of all others, in one commit.

        A reader sees the old tree or the new one, never a mixture.

        Parameters
        ----------
        nodes : Sequence[BaseNode]
            Not empty.
        report : dict
            Of the build; kept with the table, see `report`.

        Returns
        -------
        int
            The generation: LanceDB's version of the table.
        """
        rows = to_table(nodes, {REPORT: json.dumps(report, ensure_ascii=False)})
        exists = await self._table() is not None
        table = await (await self._connect()).create_table(
            self.table_name, rows, mode="overwrite" if exists else "create"
        )
        return int(await table.version())

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's chunks and every summary that stands on them.

        What remains no longer points to what is gone.
        """
        rows = await self._select("id", "documents")
        ids, documents = rows["id"].to_pylist(), rows["documents"].to_pylist()
        gone = [i for i, docs in zip(ids, documents, strict=True) if ref_doc_id in docs]
        await self.adelete_nodes(gone)

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete the nodes with these ids that pass the filters, and unlink them from the rest.

        Raises
        ------
        InputError
            If neither ids nor filters are given: `clear` deletes everything.
        """
        if node_ids is None and filters is None:
            raise InputError("Name the nodes by ids or filters; clear() deletes all.")
        going = await self.aget_nodes(node_ids, filters)
        table = await self._table()
        if table is None or not going:
            return
        gone = {node.node_id for node in going}
        links = await self._select("id", "parent_ids", "child_ids", "level_max")
        near = sorted({*linked_to(links, gone), *beside(going)} - gone)
        top = highest_level(links, gone)
        await self.async_add(unlinked(await self.aget_nodes(near), gone, top))
        texts = [node.get_content(MetadataMode.EMBED) for node in going]
        await asyncio.to_thread(forget, self.uri, texts)
        await table.delete(by_ids(gone))

    async def aclear(self) -> None:
        """Drop the table and what was kept to build it."""
        if await self._table() is not None:
            await (await self._connect()).drop_table(self.table_name)
        remove(cache_file(self.uri))

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Nodes with their embeddings, by ids (in their order), by filters, by both, or all."""
        where = None if node_ids is None else by_ids(node_ids)
        nodes: Sequence[BaseNode] = to_nodes(
            await self._select(*NODE_COLUMNS, "vector", where=where)
        )
        if filters is not None:
            nodes = [node for node in nodes if holds(filters, filtered_by(node))]
        by_id = {node.node_id: node for node in nodes}
        return [by_id[i] for i in (by_id if node_ids is None else node_ids) if i in by_id]

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes most similar to the query's embedding that pass its filters, best first.

        Raises
        ------
        InputError
            If the embedding is missing, not finite or of another dimension than the table's,
            or the mode is not `default`.
        """
        vector = vector_of(query)
        table = await self._table()
        if table is None:
            return VectorStoreQueryResult(nodes=[], similarities=[], ids=[])
        check_dimension(await table.schema(), len(vector), "the question has")
        search = table.query().nearest_to(vector).distance_type("cosine")
        if filters := filters_of(query):
            where = to_expression(filters)
            search = search.where(by_ids(await self._passing(filters)) if where is None else where)
        rows = await (
            search.select([*NODE_COLUMNS, "_distance"]).limit(query.similarity_top_k).to_arrow()
        )
        return VectorStoreQueryResult(
            nodes=to_nodes(rows),
            similarities=[1.0 - distance for distance in rows["_distance"].to_pylist()],
            ids=rows["id"].to_pylist(),
        )

    async def _passing(self, filters: MetadataFilters) -> list[str]:
        nodes = to_nodes(await self._select(*NODE_COLUMNS))
        return [node.node_id for node in nodes if holds(filters, filtered_by(node))]

    def replace(self, nodes: Sequence[BaseNode], report: dict[str, Any]) -> int:
        """See `areplace`."""
        return wait_for(self.areplace(nodes, report))

    def columns(self, *names: str) -> dict[str, list[Any]]:
        """See `acolumns`."""
        return wait_for(self.acolumns(*names))

    def require(self) -> None:
        """Refuse to go on without a table.

        Raises
        ------
        IndexNotFoundError
            Says how to build one.
        """
        wait_for(self._existing())

    def exists(self) -> bool:
        """See `aexists`."""
        return wait_for(self.aexists())

    async def aexists(self) -> bool:
        """Whether there is a table."""
        return await self._table() is not None

    async def alevel_sizes(self) -> dict[int, int]:
        """How many nodes each level has as their own, ascending."""
        counts = (await self._select(LEVEL))[LEVEL].value_counts().to_pylist()
        return dict(sorted((each["values"], each["counts"]) for each in counts))

    def highest_level(self) -> int:
        """See `ahighest_level`."""
        return wait_for(self.ahighest_level())

    async def acolumns(
        self, *names: str, node_ids: Collection[str] | None = None
    ) -> dict[str, list[Any]]:
        """Columns of the table, of these nodes or of all; no rows where there is no table."""
        where = None if node_ids is None else by_ids(node_ids)
        columns: dict[str, list[Any]] = (await self._select(*names, where=where)).to_pydict()
        return columns

    async def ahighest_level(self) -> int:
        """The highest cut that there is; 0 where there is no table."""
        column = (await self._select(LEVEL_MAX))[LEVEL_MAX]
        return max(column.unique().to_pylist(), default=0)

    def report(self) -> dict[str, Any]:
        """The report of the build that wrote the table; empty where a pipeline filled it."""
        metadata = wait_for(self._existing_schema()).metadata or {}
        report: dict[str, Any] = json.loads(metadata.get(REPORT.encode(), b"{}"))
        return report

    def generation(self) -> int:
        """LanceDB's version of the table, which grows with every change."""

        async def version() -> int:
            return int(await (await self._existing()).version())

        return wait_for(version())

    async def _connect(self) -> "AsyncConnection":
        if self._connection is None:
            import lancedb

            self._connection = await lancedb.connect_async(self.uri)
        return self._connection

    async def _table(self) -> "AsyncTable | None":
        if "://" not in self.uri and not Path(self.uri).is_dir():  # connecting would create it
            return None
        try:
            return await (await self._connect()).open_table(self.table_name)
        except ValueError as error:
            if "not found" in str(error):
                return None
            raise

    async def _existing(self) -> "AsyncTable":
        table = await self._table()
        if table is None:
            raise IndexNotFoundError(
                f"{self.uri!r} holds no index; build one with "
                f"`hierindex build SOURCE --index {self.uri}`."
            )
        return table

    async def _existing_schema(self) -> "pa.Schema":
        return await (await self._existing()).schema()

    async def _select(self, *columns: str, where: "Expr | None" = None) -> "pa.Table":
        """Columns of all rows that pass; no rows where there is no table."""
        table = await self._table()
        if table is None:
            import pyarrow as pa

            return pa.table({name: [] for name in columns})
        query = table.query().select(list(columns))
        return await (query if where is None else query.where(where)).to_arrow()
