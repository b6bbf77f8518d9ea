"""The LlamaIndex vector store of a tree."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

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
from hierindex.record import fields_in
from hierindex.store.connection import TABLE, Connection
from hierindex.store.deletion import delete_document, delete_nodes, doomed, with_the_rest
from hierindex.store.description import generation_json
from hierindex.store.filters import keys
from hierindex.store.fragments import Fragments
from hierindex.store.generations import ADDED, on_newest
from hierindex.store.rows import all_documents, to_table
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.store.waiting import RowFile
from hierindex.threads import in_daemon_thread

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection


class HierarchyStore(BasePydanticVectorStore):
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
    passing chunk is enough. Keys that begin with `hierindex_` are not metadata: `hierindex_id`,
    `hierindex_kind`, `hierindex_level`, `hierindex_level_max` (a node is part of every level
    from the former to the latter) and `hierindex_source_similarity` refer to the node itself,
    `hierindex_documents` to a chunk's documents, and `hierindex_whole_document` to the document
    whose chunks are exactly those under a node. `documents` is short for `hierindex_documents`
    unless a chunk has metadata of that name. A condition on a key that no node has matches
    nothing, also if it is negated, and a warning names the key.

    Every write publishes a new generation in one step, after its rows and indices are written.
    Each call reads the generation that is the newest when it begins; use `snapshot` to share one
    between calls. If it is removed meanwhile, the call reads the newest again. What a killed
    process has not published is never read, and the next write removes it. A deletion removes all
    earlier generations as well, so that no file contains what was deleted.

    One process writes at a time. In a folder, a lock ensures it: writes wait up to a minute for
    another writer, `writing` does not. In an object store, the second of two writers fails when it
    writes. Async methods run the sync ones in a thread.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    stores_text: bool = True
    uri: str
    table_name: str = Field(default=TABLE)
    keep_generations: int = Field(default=2, ge=1)

    _table: Table = PrivateAttr()
    _only: Snapshot | None = PrivateAttr(default=None)

    def __init__(
        self,
        uri: str | Path,
        table_name: str = TABLE,
        *,
        keep_generations: int = 2,
        storage_options: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        table = Table(Connection(str(uri), table_name, storage_options), keep_generations)
        kwargs |= {"table_name": table_name, "keep_generations": keep_generations}
        super().__init__(**kwargs | {"uri": str(uri)})
        self._table = table

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises the class."""
        return "HierarchyStore"

    @property
    def connection(self) -> Connection:
        """The connection to the table's database."""
        return self._table.connection

    @property
    def client(self) -> "DBConnection":
        """A LanceDB connection to the database."""
        return self._table.connection.connect()

    def snapshot(self, generation: int | None = None) -> Snapshot:
        """Return a generation, by default the newest; later writes do not change it.

        Raises
        ------
        GenerationError
            If the store does not hold this generation; also raised by a snapshot that is read
            after later writes have removed its generation.
        FormatError
            If another version of hierindex wrote the table.
        """
        if self._only is not None and generation is None:
            return self._only
        return self._table.snapshot(generation)

    def at(self, snapshot: Snapshot) -> Self:
        """Return this store with a snapshot instead of the newest generation, to read from."""
        store = self.model_copy()
        store._only = snapshot
        return store

    @on_newest
    def generations(self) -> list[dict[str, Any]]:
        """Return the generations that the store holds, the oldest first.

        Each is a dict of `generation`, `time`, when it was published, its numbers of `documents`,
        `levels` and `nodes`, `what` wrote it, such as "build", and the numbers of its `changes`.
        """
        numbers = self._table.generations()
        return [generation_json(self.snapshot(number)) for number in numbers]

    def rollback(self, generation: int | None = None) -> int:
        """Publish an earlier generation, by default the previous one, and return its new number.

        Raises
        ------
        InputError
            If the store does not hold this generation, or it is the current one.
        """
        return self._table.rollback(generation)

    def writing(self, what: str) -> AbstractContextManager[None]:
        """Exclude all other writers for a `with` block, in which this store can write.

        Parameters
        ----------
        what : str
            What is done, such as "build"; other writers and `generations` show it.

        Raises
        ------
        InputError
            If another writer is at work; the error names it.
        """
        return self._table.lock.held(what, patience=0)

    def replace(
        self,
        nodes: Sequence[BaseNode] | RowFile | Fragments,
        report: dict[str, Any],
        *,
        purge: bool = False,
    ) -> int:
        """Replace all nodes; a reader sees the old tree or the new one, never a mixture.

        Parameters
        ----------
        nodes : Sequence[BaseNode], RowFile or Fragments
            At least one.
        report : dict
            Of the build; stored with the nodes, see `Snapshot.report`. Its `changes`, a dict of
            numbers by kind of change, are shown by `generations`.
        purge : bool
            Whether to remove all earlier generations, so that no file contains their text.

        Returns
        -------
        int
            The number of the generation: 1 for the first that is published.

        Raises
        ------
        InputError
            If there are no nodes, or one of them cannot be written, see `HierarchyStore.add`.
        """
        rows = nodes if isinstance(nodes, Fragments) else self._reader(nodes)
        if rows is None or (isinstance(rows, Fragments) and not rows.n_rows):
            raise InputError("There are no nodes to write.")
        changes = report.get("changes", {})
        return self._table.replace(rows, report, changes, purge=purge)

    def revise(
        self,
        nodes: Sequence[BaseNode] | RowFile,
        gone: Collection[str],
        report: dict[str, Any],
        *,
        purge: bool = False,
        moved: Mapping[str, str] | None = None,
    ) -> int:
        """Replace nodes by id, insert new ones and remove others, in one generation.

        Parameters
        ----------
        nodes : Sequence[BaseNode] or RowFile
        gone : Collection[str]
            Ids of the nodes to remove.
        report, purge
            See `replace`.
        moved : Mapping[str, str], optional
            New paths of sources, by the old ones. All rows are then written again.
        """
        changes = report.get("changes", {})
        reader = self._reader(nodes)
        rows = None if reader is None else reader.read_all()
        if not (purge or moved):
            return self._table.revise(rows, gone, report, changes)
        snapshot = self.snapshot()
        every = with_the_rest(rows, {*gone}, snapshot, moved)
        added = ADDED in snapshot.details()
        return self._table.replace(every, report, changes, added=added, purge=purge)

    def add(self, /, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Insert nodes, replacing those with the same id, and return their ids.

        Warns if the store then has other roots than those of these nodes, as after a pipeline
        with a docstore has passed on only the documents that changed.

        Raises
        ------
        InputError
            If a node has no embedding, or one of another dimension than the table's, or names only
            the first of its documents, and its children are unknown.
        FormatError
            If another version of hierindex wrote the table.
        """
        _check_options("add", kwargs)
        if nodes:
            documents = all_documents(nodes, self.snapshot)
            self._table.upsert(to_table(nodes, documents))
        grown = [node for node in nodes if fields_in(node.metadata).get("method")]
        if any(node.parent_node is None for node in grown):
            roots = self.snapshot().roots()
            if {*roots} - {node.node_id for node in nodes}:
                warnings.warn(
                    f"{self.uri!r} now has {len(roots)} roots. If a pipeline passed on only what "
                    f"changed, grow one tree again: run `hierindex update --index {self.uri}` or "
                    f"call HierarchicalIndex.open({self.uri!r}).regrow().",
                    stacklevel=2,
                )
        return [node.node_id for node in nodes]

    def delete(self, /, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document's chunks and every summary derived from them.

        Links to the deleted nodes are removed. A node that lost a parent or a child is marked in
        the column `stale` until it is written again; `HierarchicalIndex.info` counts these nodes.
        """
        _check_options("delete", delete_kwargs)
        delete_document(self._table, ref_doc_id)

    def delete_nodes(  # type: ignore[override]  # LlamaIndex's returns None
        self,
        /,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        dry_run: bool = False,
        **delete_kwargs: Any,
    ) -> int:
        """Delete the nodes that match the given ids and filters, and the links to them.

        A deletion by filters includes every summary with a passing chunk under it, so that no
        remaining text reveals a deleted one. A deletion by ids keeps the summaries of a chunk and
        marks them as stale.

        Returns
        -------
        int
            The number of nodes that were deleted, or with `dry_run`, that would be.

        Raises
        ------
        InputError
            If neither ids nor filters are given; `clear` deletes everything. If no chunk has a
            key of the filters.
        """
        _check_options("delete_nodes", delete_kwargs, "dry_run")
        if node_ids is None and not (filters and keys(filters)):
            raise InputError("Name the nodes to delete by ids or filters; clear() deletes all.")
        if dry_run:
            return len(doomed(self.snapshot(), node_ids, filters))
        return delete_nodes(self._table, node_ids, filters)

    def clear(self) -> None:
        """Drop the table and delete its cache."""
        self._table.drop()
        remove(cache_file(self.uri))

    @on_newest
    def get_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **kwargs: Any,
    ) -> list[BaseNode]:
        """Return nodes with embeddings, by ids (in their order), by filters, by both, or all.

        `kwargs` may contain `partial_summaries`; see the class.
        """
        _check_options("get_nodes", kwargs, "partial_summaries")
        return list(self.snapshot().nodes(node_ids, filters, **kwargs))

    @on_newest
    def query(self, /, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
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

        Raises
        ------
        InputError
            If there is another option, the mode is not supported, its embedding or words are
            missing, or the embedding is not finite or has another dimension than the table's.
        """
        options = "partial_summaries", "mmr_prefetch_k", "mmr_prefetch_factor"
        _check_options("query", kwargs, *options)
        return self.snapshot().query(query, **kwargs)

    async def async_add(self, /, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Do what `add` does, in a thread."""
        return await in_daemon_thread(partial(self.add, nodes, **kwargs))

    async def adelete(self, /, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Do what `delete` does, in a thread."""
        await in_daemon_thread(partial(self.delete, ref_doc_id, **delete_kwargs))

    async def adelete_nodes(  # type: ignore[override]  # LlamaIndex's returns None
        self,
        /,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> int:
        """Do what `delete_nodes` does, in a thread."""
        return await in_daemon_thread(
            partial(self.delete_nodes, node_ids, filters, **delete_kwargs)
        )

    async def aclear(self) -> None:
        """Do what `clear` does, in a thread."""
        await in_daemon_thread(self.clear)

    async def aget_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **kwargs: Any,
    ) -> list[BaseNode]:
        """Do what `get_nodes` does, in a thread."""
        return await in_daemon_thread(partial(self.get_nodes, node_ids, filters, **kwargs))

    async def aquery(self, /, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Do what `query` does, in a thread."""
        return await in_daemon_thread(partial(self.query, query, **kwargs))

    def _reader(self, nodes: Sequence[BaseNode] | RowFile) -> "pa.RecordBatchReader | None":
        """Return the rows of nodes; None if there are none."""
        if isinstance(nodes, RowFile):
            return nodes.reader()
        documents = all_documents(nodes, self.snapshot)
        return to_table(nodes, documents).to_reader() if nodes else None


def _check_options(method: str, given: Mapping[str, Any], *known: str) -> None:
    """Raise InputError if a method is given an option that it does not have."""
    for name in given.keys() - {*known}:
        has = f"its options are {', '.join(known)}" if known else "it has none"
        raise InputError(f"HierarchyStore.{method} has no option {name!r}; {has}.")
