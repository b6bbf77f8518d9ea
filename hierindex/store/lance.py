"""The vector store: every level of a tree in one LanceDB table."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from hierindex.cache.file import cache_file, forget, remove
from hierindex.errors import InputError
from hierindex.store.adapter import adapter_nodes
from hierindex.store.async_first import AsyncFirstStore, wait_for
from hierindex.store.checks import at_least, check_dimension
from hierindex.store.filters import DOCUMENTS
from hierindex.store.indices import tend
from hierindex.store.links import delete_rows, doomed
from hierindex.store.location import Location
from hierindex.store.prefilter import Prefilter, prefilter
from hierindex.store.schema import NAME_KEY, check_format, new_table, to_table
from hierindex.store.snapshot import Snapshot
from hierindex.store.turns import turn

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.rerankers import Reranker
    from lancedb.table import AsyncTable

deleting = Lock()


class HierarchyStore(AsyncFirstStore):
    """All levels of a tree in one LanceDB table; adding is an upsert by id.

    Parameters
    ----------
    uri : str or Path
        A folder, or a URI of an object store that LanceDB connects to.
    table_name : str
    storage_options : dict[str, str], optional
        Of the object store: credentials, region, endpoint. They are kept out of `to_dict`, the
        repr and every file that the store writes.
    reranker : lancedb.rerankers.Reranker, optional
        Of the mode hybrid, in the place of reciprocal rank fusion; `query(..., reranker=)`
        goes before it.

    Raises
    ------
    InputError
        If there is a file in the folder's place.

    Notes
    -----
    What a score is depends on the query's mode:

    * `default`: the cosine to the question's embedding, in [-1, 1].
    * `text_search`: the BM25 of the question's words, above 0 and without an upper bound. The
      question is data: quotes and operators are punctuation. Words are what Unicode's rules
      and, in Chinese, Japanese and Thai, a dictionary say; accents, case and English endings
      do not count, and English stop words are not looked for.
    * `hybrid`: reciprocal rank fusion of both, in [0, 1]. It is 1 for what is first in both
      and `alpha` (by default 0.5) for what is first by vectors and unknown to the words:
      `61 * (alpha / (60 + rank) + (1 - alpha) / (60 + rank))`. With a reranker, its own.
    * `mmr`: `mmr_threshold` (by default 0.5) times the cosine, less the rest times the highest
      cosine to a result before it.

    Each list is in the order of its scores. Up to 20,000 rows search compares all vectors; in
    larger tables an index chooses candidates, whose scores are exact, and no filter makes
    results fewer than pass it.

    Filters are evaluated per chunk, on its own metadata and its document's. A summary passes if
    every chunk under it does, so that no excluded text is found within a summary; with
    `partial_summaries=True`, if any chunk under it does. The keys `id`, `kind`, `level`,
    `level_max` (a node belongs to every cut between them) and `grounding` ask of the node itself,
    `documents` of a chunk's documents, `whole_document` of the one whose chunks a node holds; a
    metadata key of such a name is `metadata.level` and so on.

    Every method is written once, async; its sync twin waits for it on LanceDB's own event
    loop, as LanceDB's sync interface does, so that it also works inside a running loop. What is
    read by one call is of one version of the table; `snapshot` gives a version for several.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    stores_text: bool = True
    uri: str
    table_name: str = Field(default="nodes")

    _location: Location = PrivateAttr()
    _reranker: "Reranker | None" = PrivateAttr(default=None)
    _known: tuple[tuple[bytes, int], dict[str, Any]] = PrivateAttr(default=((b"", 0), {}))

    def __init__(
        self,
        uri: str | Path,
        table_name: str = "nodes",
        *,
        storage_options: dict[str, str] | None = None,
        reranker: "Reranker | None" = None,
        **kwargs: Any,
    ) -> None:
        location = Location(str(uri), table_name, storage_options)
        super().__init__(uri=str(uri), table_name=table_name, **kwargs)  # type: ignore[call-arg]
        self._location = location
        self._reranker = reranker

    @property
    def client(self) -> "DBConnection":
        """A LanceDB connection, for what this class does not offer."""
        return self._location.client()

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "HierarchyStore"

    async def asnapshot(self) -> Snapshot:
        """The table as it is now, which stays so for whoever reads it.

        Raises
        ------
        FormatError
            If another version of hierindex wrote the table.
        """
        table = await self._location.table()
        if table is None:
            return Snapshot(self.uri)
        columns, version = await asyncio.gather(table.schema(), table.version())
        check_format(columns, self.uri)
        state, (before, known) = (columns.metadata[NAME_KEY], int(version)), self._known
        if state != before:
            known = {}
            self._known = state, known
        return Snapshot(self.uri, table, columns, state, known)

    def snapshot(self) -> Snapshot:
        """See `asnapshot`."""
        return wait_for(self.asnapshot())

    async def aexists(self) -> bool:
        """Whether there is a table, of whatever format."""
        return await self._location.table() is not None

    def exists(self) -> bool:
        """See `aexists`."""
        return wait_for(self.aexists())

    async def acolumns(self, *names: str) -> dict[str, list[Any]]:
        """Columns of the table; no rows where there is no table."""
        return await (await self.asnapshot()).columns(*names)

    def columns(self, *names: str) -> dict[str, list[Any]]:
        """See `acolumns`."""
        return wait_for(self.acolumns(*names))

    def batches(self, *columns: str) -> "Iterator[pa.RecordBatch]":
        """See `Snapshot.batches`."""
        batches = self.snapshot().batches(*columns)

        async def following() -> "pa.RecordBatch | None":
            return await anext(batches, None)

        while (batch := wait_for(following())) is not None:
            yield batch

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Insert nodes, replacing those of the same id; returns their ids.

        Raises
        ------
        InputError
            If a node has no embedding, or one of another dimension than the table's.
        FormatError
            If another version of hierindex wrote the table.
        """
        if not nodes:
            return []
        rows = to_table(nodes)
        with self._location.named_refusals():
            if await self.aexists() or not await self._location.create(new_table(rows)):
                await self._merge(rows)
            await tend(await self._table())
        return [node.node_id for node in nodes]

    async def _merge(self, rows: "pa.Table") -> None:
        table = await self._table()
        columns = await table.schema()
        check_format(columns, self.uri)
        check_dimension(columns, rows.schema.field("vector").type.list_size, "the nodes have")
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        await merge.execute(rows)

    async def _table(self) -> "AsyncTable":
        """The table, to be written to."""
        table = await self._location.table()
        assert table is not None  # as it was made or read before
        return table

    async def areplace(self, nodes: Sequence[BaseNode], report: dict[str, Any]) -> int:
        """Put these nodes in the place of all others, in one commit.

        A reader sees the old tree or the new one, never a mixture; then the indices are made.

        Parameters
        ----------
        nodes : Sequence[BaseNode]
            Not empty.
        report : dict
            Of the build; kept with the table, see `Snapshot.report`.

        Returns
        -------
        int
            The generation: LanceDB's version of the table.
        """
        rows = new_table(to_table(nodes), report)
        with self._location.named_refusals():
            exists = await self.aexists()
            table = await (await self._location.connect()).create_table(
                self.table_name, rows, mode="overwrite" if exists else "create"
            )
            await tend(table)
            return int(await table.version())

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's chunks and every summary that stands on them.

        What remains no longer points to what is gone. What has lost a summary above it, which
        a pipeline that grows trees of single documents will not write, is marked in the column
        `stale` until it is written again, and `HierarchicalIndex.info` counts it.
        """
        snapshot = await self.asnapshot()
        of_it = MetadataFilter(key=DOCUMENTS, value=[ref_doc_id], operator=FilterOperator.ANY)
        where = prefilter(MetadataFilters(filters=[of_it]))
        rows = (await snapshot.select("id", DOCUMENTS, where=where)).to_pylist()
        await self.adelete_nodes([row["id"] for row in rows if ref_doc_id in row[DOCUMENTS]])

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete the nodes with these ids that pass the filters, and unlink them from the rest.

        By filters, a summary goes if any chunk under it passes: nothing of what is deleted is
        said by what stays. By ids, the summaries of a chunk stay, marked as stale.

        Raises
        ------
        InputError
            If neither ids nor filters are given: `clear` deletes everything.
        """
        if node_ids is None and not (filters and filters.filters):
            raise InputError("Name the nodes by ids or filters; clear() deletes all.")
        async with turn(deleting):  # each mends the links that the others have left
            with self._location.named_refusals():
                await self._delete_nodes(node_ids, filters)

    async def _delete_nodes(
        self, node_ids: list[str] | None, filters: MetadataFilters | None
    ) -> None:
        snapshot = await self.asnapshot()
        going = await doomed(snapshot, node_ids, filters)
        if not going:
            return
        gone = {node.node_id for node in going}
        texts = [node.get_content(MetadataMode.EMBED) for node in going]
        summaries = await snapshot.select("id", "text", where=Prefilter(at_least(1)))
        staying = [row["text"] for row in summaries.to_pylist() if row["id"] not in gone]
        await asyncio.to_thread(forget, self.uri, texts, staying)
        table = await self._table()
        await delete_rows(gone, snapshot, table)
        await tend(table)

    async def aclear(self) -> None:
        """Drop the table and what was kept to build it."""
        if await self.aexists():
            await (await self._location.connect()).drop_table(self.table_name)
        remove(cache_file(self.uri))

    async def aget_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **kwargs: Any,
    ) -> list[BaseNode]:
        """Nodes with their embeddings, by ids (in their order), by filters, by both, or all.

        Of `kwargs`, `partial_summaries`; see the class.
        """
        return list(await (await self.asnapshot()).nodes(node_ids, filters, **kwargs))

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The best nodes that pass the query's filters, best first; see the class for scores.

        Parameters
        ----------
        query : VectorStoreQuery
            In mode `default`, `hybrid`, `text_search` or `mmr`. Hybrid lists have
            `hybrid_top_k` results, by default `similarity_top_k`, fused from that many by
            vectors and `sparse_top_k` by words, by default at least 50 each.
        **kwargs
            `partial_summaries`, see the class; `reranker`, of hybrid; `mmr_prefetch_k`, or
            `mmr_prefetch_factor` (4), for how many rows mmr chooses from. Others are ignored.

        Raises
        ------
        InputError
            If the embedding or the words that the mode needs are missing, the embedding is not
            finite or of another dimension than the table's, or the mode is another.
        """
        reranker = kwargs.pop("reranker", None) or self._reranker
        return await (await self.asnapshot()).query(query, reranker, **kwargs)

    async def aimport_lancedb(
        self,
        uri: str | Path,
        table_name: str = "vectors",
        *,
        storage_options: dict[str, str] | None = None,
    ) -> int:
        """Add the nodes of a table that LlamaIndex's `LanceDBVectorStore` wrote.

        The adapter need not be installed, and its table stays as it is.

        Returns
        -------
        int
            How many nodes.

        Raises
        ------
        InputError
            If there is no such table, or it has another layout.
        """
        n_nodes = 0
        async for nodes in adapter_nodes(Location(str(uri), table_name, storage_options)):
            n_nodes += len(await self.async_add(nodes))
        return n_nodes

    def import_lancedb(
        self,
        uri: str | Path,
        table_name: str = "vectors",
        *,
        storage_options: dict[str, str] | None = None,
    ) -> int:
        """See `aimport_lancedb`."""
        return wait_for(self.aimport_lancedb(uri, table_name, storage_options=storage_options))

    def replace(self, nodes: Sequence[BaseNode], report: dict[str, Any]) -> int:
        """See `areplace`."""
        return wait_for(self.areplace(nodes, report))
