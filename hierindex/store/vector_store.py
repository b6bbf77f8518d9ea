"""The LlamaIndex vector store of a tree."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from hierindex.cache.file import cache_file, remove
from hierindex.errors import InputError
from hierindex.store.all_documents import all_documents
from hierindex.store.connection import TABLE
from hierindex.store.deletion import delete_document, delete_nodes
from hierindex.store.generation_store import GenerationStore
from hierindex.store.generations import on_newest
from hierindex.store.rows import to_table
from hierindex.store.table import Table
from hierindex.threads import blocking


class HierarchyStore(GenerationStore):
    """A LlamaIndex vector store that keeps all levels of a tree in one LanceDB table.

    Parameters
    ----------
    uri : str or Path
        A folder, or a URI of an object store that LanceDB supports.
    table_name : str
    keep_generations : int
        Number of generations to keep, at least 1; older ones are removed by each write.
    storage_options : dict[str, str], optional
        Credentials, region and endpoint of the object store. They are kept out of `to_dict`, the
        repr and every file that the store writes.

    Raises
    ------
    InputError
        If `uri` is a file.

    Notes
    -----
    The score of a result depends on the query's mode:

    * `default`: cosine similarity to the question's embedding, in [-1, 1].
    * `text_search`: BM25 of the question's words, positive and unbounded. Quotes and operators
      are treated as punctuation. Text is split into words by Unicode rules, and by dictionary in
      Chinese, Japanese and Thai; accents, case, English suffixes and stop words are ignored.
    * `hybrid`: reciprocal rank fusion of these two, in [0, 1]; `alpha` is 0.5 by default:
      `61 * (alpha / (60 + rank by vectors) + (1 - alpha) / (60 + rank by words))`.
    * `mmr`: `mmr_threshold` (0.5 by default) times the cosine similarity, minus
      `1 - mmr_threshold` times the highest cosine similarity to a result chosen before.

    Results are ordered by score. Tables of up to 20,000 rows are searched exhaustively; in larger
    ones, an index picks candidates, which are scored exactly. A filtered query returns all rows
    that pass, up to the number asked for.

    Filters test the metadata of each chunk and of its document. A summary passes if every
    chunk under it passes, so that it reveals no excluded text; with `partial_summaries=True`, one
    passing chunk is enough. The keys `id`, `kind`, `level`, `level_max` (a node belongs to every
    cut from `level` to `level_max`) and `source_similarity` refer to the node itself, `documents`
    to a chunk's documents, and `whole_document` to the document whose chunks are exactly those
    under a node. Prefix metadata keys of these names, as in `metadata.level`.

    Every write publishes a new generation in one step, after its rows and indices are written.
    Each call reads the generation that is the newest when it begins; use `snapshot` to share one
    between calls. If it is removed meanwhile, the call reads the newest again. What a killed
    process has not published is never read, and the next write removes it. A deletion removes all
    earlier generations as well, so that no file contains what was deleted.

    One process writes at a time. In a folder, a lock ensures it: writes wait up to a minute for
    another writer, `writing` does not. In an object store, the second of two writers fails when it
    writes. Sync methods run the async ones on LanceDB's event loop, so they also work inside a
    running loop.
    """

    def __init__(
        self,
        uri: str | Path,
        table_name: str = TABLE,
        *,
        keep_generations: int = 2,
        storage_options: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        table = Table(str(uri), table_name, storage_options, keep_generations)
        kwargs |= {"table_name": table_name, "keep_generations": keep_generations}
        super().__init__(uri=str(uri), **kwargs)
        self._table = table

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises the class."""
        return "HierarchyStore"

    async def async_add(self, /, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Insert nodes, replacing those with the same id, and return their ids.

        Raises
        ------
        InputError
            If a node has no embedding, or one of another dimension than the table's, or names only
            the first of its documents, and its children are unknown.
        FormatError
            If another version of hierindex wrote the table.
        """
        if nodes:
            documents = await all_documents(nodes, self.asnapshot)
            await self._table.upsert(to_table(nodes, documents))
        return [node.node_id for node in nodes]

    add = blocking(async_add)

    async def adelete(self, /, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's chunks and every summary derived from them.

        Links to the deleted nodes are removed. A node that lost a parent or a child is marked in
        the column `stale` until it is written again; `HierarchicalIndex.info` counts these nodes.
        """
        await delete_document(self._table, ref_doc_id)

    delete = blocking(adelete)

    async def adelete_nodes(
        self,
        /,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete the nodes that match the given ids and filters, and the links to them.

        A deletion by filters includes every summary with a passing chunk under it, so that no
        remaining text reveals a deleted one. A deletion by ids keeps the summaries of a chunk and
        marks them as stale.

        Raises
        ------
        InputError
            If neither ids nor filters are given; `clear` deletes everything.
        """
        if node_ids is None and not (filters and filters.filters):
            raise InputError("Name the nodes to delete by ids or filters; clear() deletes all.")
        await delete_nodes(self._table, node_ids, filters)

    delete_nodes = blocking(adelete_nodes)

    async def aclear(self) -> None:
        """Drop the table and delete its cache."""
        await self._table.drop()
        remove(cache_file(self.uri))

    clear = blocking(aclear)

    @on_newest
    async def aget_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **kwargs: Any,
    ) -> list[BaseNode]:
        """Return nodes with embeddings, by ids (in their order), by filters, by both, or all.

        `kwargs` may contain `partial_summaries`; see the class.
        """
        return list(await (await self.asnapshot()).nodes(node_ids, filters, **kwargs))

    get_nodes = blocking(aget_nodes)

    @on_newest
    async def aquery(self, /, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the best nodes that pass the query's filters, ordered by score; see the class.

        Parameters
        ----------
        query : VectorStoreQuery
            In mode `default`, `hybrid`, `text_search` or `mmr`. A hybrid query returns
            `hybrid_top_k` results (default: `similarity_top_k`), fused from `similarity_top_k`
            results by vectors and `sparse_top_k` by words; at least 50 of each are fused where
            `hybrid_top_k` or `sparse_top_k`, respectively, is not given.
        **kwargs
            `partial_summaries`, see the class; `mmr_prefetch_k`, the number of candidates for mmr,
            or `mmr_prefetch_factor` (default: 4), that number divided by `similarity_top_k`.
            Others are ignored.

        Raises
        ------
        InputError
            If the mode is not supported, its embedding or words are missing, or the embedding is
            not finite or has another dimension than the table's.
        """
        return await (await self.asnapshot()).query(query, **kwargs)

    query = blocking(aquery)
