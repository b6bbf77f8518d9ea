"""The vector store: LlamaIndex's interface to the table that holds every level of a tree."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from hierindex.cache.file import cache_file, remove
from hierindex.errors import InputError
from hierindex.store.adapter import adapter_nodes
from hierindex.store.deletion import delete_document, delete_nodes
from hierindex.store.schema import new_table, to_table
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.threads import wait_for

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection
    from lancedb.rerankers import Reranker


class HierarchyStore(BasePydanticVectorStore):
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

    _table: Table = PrivateAttr()
    _reranker: "Reranker | None" = PrivateAttr(default=None)

    def __init__(
        self,
        uri: str | Path,
        table_name: str = "nodes",
        *,
        storage_options: dict[str, str] | None = None,
        reranker: "Reranker | None" = None,
        **kwargs: Any,
    ) -> None:
        table = Table(str(uri), table_name, storage_options)
        super().__init__(uri=str(uri), table_name=table_name, **kwargs)  # type: ignore[call-arg]
        self._table = table
        self._reranker = reranker

    @property
    def client(self) -> "DBConnection":
        """A LanceDB connection, for what this class does not offer."""
        return self._table.client()

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
        return await self._table.snapshot()

    def snapshot(self) -> Snapshot:
        """See `asnapshot`."""
        return wait_for(self.asnapshot())

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
        if nodes:
            await self._table.upsert(to_table(nodes))
        return [node.node_id for node in nodes]

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """See `async_add`."""
        return wait_for(self.async_add(nodes))

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
        return await self._table.replace(new_table(to_table(nodes), report))

    def replace(self, nodes: Sequence[BaseNode], report: dict[str, Any]) -> int:
        """See `areplace`."""
        return wait_for(self.areplace(nodes, report))

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's chunks and every summary that stands on them.

        What remains no longer points to what is gone. What has lost a summary above it, which
        a pipeline that grows trees of single documents will not write, is marked in the column
        `stale` until it is written again, and `HierarchicalIndex.info` counts it.
        """
        await delete_document(self._table, ref_doc_id)

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """See `adelete`."""
        wait_for(self.adelete(ref_doc_id))

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
        await delete_nodes(self._table, node_ids, filters)

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """See `adelete_nodes`."""
        wait_for(self.adelete_nodes(node_ids, filters))

    async def aclear(self) -> None:
        """Drop the table and what was kept to build it."""
        await self._table.drop()
        remove(cache_file(self.uri))

    def clear(self) -> None:
        """See `aclear`."""
        wait_for(self.aclear())

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

    def get_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **kwargs: Any,
    ) -> list[BaseNode]:
        """See `aget_nodes`."""
        return wait_for(self.aget_nodes(node_ids, filters, **kwargs))

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

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """See `aquery`."""
        return wait_for(self.aquery(query, **kwargs))

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
        async for nodes in adapter_nodes(Table(str(uri), table_name, storage_options)):
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
