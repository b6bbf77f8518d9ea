"""The vector store: every level of a tree in one LanceDB table."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import PrivateAttr
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
from hierindex.store.async_first import wait_for
from hierindex.store.checks import at_least, by_ids, check_columns, check_dimension, check_mode
from hierindex.store.facts import SCHEMA, named
from hierindex.store.filters import filtered_by, filters_of, holds
from hierindex.store.indices import tend
from hierindex.store.links import beside, has_lost, highest_level, linked_to, unlinked
from hierindex.store.location import Location
from hierindex.store.modes import answer, check_query
from hierindex.store.one_table import REPORT, OneTableStore
from hierindex.store.prefilter import Prefilter, prefilter
from hierindex.store.schema import NODE_COLUMNS, to_nodes, to_table
from hierindex.store.search import Scope
from hierindex.store.turns import turn

if TYPE_CHECKING:
    from lancedb.rerankers import Reranker

deleting = Lock()


class HierarchyStore(OneTableStore):
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

    Filters reach all metadata and the columns `id`, `kind`, `level`, `level_max` (a node
    belongs to every cut between them) and `documents`, which win over metadata keys of these
    names.

    Every method is written once, async; its sync twin waits for it on LanceDB's own event
    loop, as LanceDB's sync interface does, so that it also works inside a running loop.
    """

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
        super().__init__(uri, table_name, storage_options=storage_options, **kwargs)
        self._reranker = reranker

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "HierarchyStore"

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Insert nodes, replacing those of the same id; returns their ids.

        Raises
        ------
        InputError
            If a node has no embedding, or one of another dimension than the table's.
        """
        await self._upsert(nodes)
        if nodes:
            await tend(await self._location.existing())
        return [node.node_id for node in nodes]

    async def _upsert(self, nodes: Sequence[BaseNode]) -> None:
        if not nodes:
            return
        rows = to_table(nodes)
        table = await self._location.table()
        if table is None and await self._location.create(rows):
            return
        table = table or await self._location.existing()
        check_dimension(await table.schema(), len(nodes[0].embedding or ()), "the nodes have")
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        await merge.execute(rows)

    async def areplace(self, nodes: Sequence[BaseNode], report: dict[str, Any]) -> int:
        """Put these nodes in the place of all others, in one commit.

        A reader sees the old tree or the new one, never a mixture; then the indices are made.

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
        exists = await self._location.table() is not None
        table = await (await self._location.connect()).create_table(
            self.table_name, named(rows), mode="overwrite" if exists else "create"
        )
        await tend(table)
        return int(await table.version())

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's chunks and every summary that stands on them.

        What remains no longer points to what is gone. What has lost a summary above it, which
        a pipeline that grows trees of single documents will not write, is marked in the column
        `stale` until it is written again, and `HierarchicalIndex.info` counts it.
        """
        of_it = MetadataFilter(key="documents", value=[ref_doc_id], operator=FilterOperator.ANY)
        await self.adelete_nodes(filters=MetadataFilters(filters=[of_it]))

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
        if node_ids is None and not (filters and filters.filters):
            raise InputError("Name the nodes by ids or filters; clear() deletes all.")
        async with turn(deleting):  # each mends the links that the others have left
            await self._delete_nodes(node_ids, filters)

    async def _delete_nodes(
        self, node_ids: list[str] | None, filters: MetadataFilters | None
    ) -> None:
        if (table := await self._location.table()) is None:
            return
        check_columns(await table.schema())
        going = await self.aget_nodes(node_ids, filters)
        if not going:
            return
        gone = {node.node_id for node in going}
        links = await self._select("id", "parent_ids", "child_ids", "level_max", "stale")
        near = await self.aget_nodes(sorted({*linked_to(links, gone), *beside(going)} - gone))
        stale = set(links.filter(links["stale"])["id"].to_pylist())
        stale |= {node.node_id for node in near if has_lost(node, gone)}
        if near:
            rows = to_table(unlinked(near, gone, highest_level(links, gone)), stale=stale)
            await table.merge_insert("id").when_matched_update_all().execute(rows)
        texts = [node.get_content(MetadataMode.EMBED) for node in going]
        summaries = (await self._select("id", "text", where=Prefilter(at_least(1)))).to_pylist()
        staying = [summary["text"] for summary in summaries if summary["id"] not in gone]
        await asyncio.to_thread(forget, self.uri, texts, staying)
        await table.delete(by_ids(gone))
        await tend(table)

    async def aclear(self) -> None:
        """Drop the table and what was kept to build it."""
        if await self._location.table() is not None:
            await (await self._location.connect()).drop_table(self.table_name)
        remove(cache_file(self.uri))

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Nodes with their embeddings, by ids (in their order), by filters, by both, or all."""
        where = prefilter(filters)
        if node_ids is not None:
            where &= Prefilter(by_ids(node_ids))
        nodes: Sequence[BaseNode] = to_nodes(
            await self._select(*NODE_COLUMNS, "vector", where=where)
        )
        if filters is not None and not where.exact:
            nodes = [node for node in nodes if holds(filters, filtered_by(node))]
        by_id = {node.node_id: node for node in nodes}
        return [by_id[i] for i in (by_id if node_ids is None else node_ids) if i in by_id]

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The best nodes that pass the query's filters, best first; see the class for scores.

        Parameters
        ----------
        query : VectorStoreQuery
            In mode `default`, `hybrid`, `text_search` or `mmr`. Hybrid lists have
            `hybrid_top_k` results, by default `similarity_top_k`, fused from that many by
            vectors and `sparse_top_k` by words, by default at least 50 each.
        **kwargs
            `reranker`, of hybrid; `mmr_prefetch_k`, or `mmr_prefetch_factor` (4), for how
            many rows mmr chooses from. Others are ignored.

        Raises
        ------
        InputError
            If the embedding or the words that the mode needs are missing, the embedding is not
            finite or of another dimension than the table's, or the mode is another.
        """
        check_mode(query)
        check_query(query)
        table = await self._location.table()
        if table is None:
            return VectorStoreQueryResult(nodes=[], similarities=[], ids=[])
        facts = await self._facts.of(table)
        if query.query_embedding:
            check_dimension(facts[SCHEMA], len(query.query_embedding), "the question has")
        filters = filters_of(query)
        reranker = kwargs.pop("reranker", None) or self._reranker
        most = len(query.node_ids) if query.node_ids else None
        scope = Scope(table, filters, prefilter(filters), facts, most)
        rows = await answer(scope, query, reranker, **kwargs)
        return VectorStoreQueryResult(
            nodes=to_nodes(rows),
            similarities=rows["score"].to_pylist(),
            ids=rows["id"].to_pylist(),
        )

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
