"""The LlamaIndex vector store of a tree."""

import math
import warnings
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)

from hierindex.cache import cache_file, remove
from hierindex.core.arguments import require
from hierindex.errors import InputError
from hierindex.node import Node
from hierindex.store.connection import Connection
from hierindex.store.deletion import delete_nodes, ids_to_delete
from hierindex.store.filters import (
    EVERY_ROW,
    Filters,
    by_ids,
    combined,
    keys,
    of_documents,
    on_documents,
)
from hierindex.store.generations import on_newest
from hierindex.store.rows import NODE_COLUMNS, to_nodes, to_table
from hierindex.store.search import ALPHA, DEPTH, diverse, fused, matching, nearest
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.text_node import check_keys, from_text_node, to_text_node
from hierindex.threads import threaded

if TYPE_CHECKING:
    from lancedb.db import DBConnection

Mode = VectorStoreQueryMode
MODES = (Mode.DEFAULT, Mode.HYBRID, Mode.TEXT_SEARCH, Mode.MMR)
MMR_THRESHOLD = 0.5  # LlamaIndex's
MMR_PREFETCH_FACTOR = 4.0  # LlamaIndex's


class HierarchyStore(BasePydanticVectorStore):
    """A LlamaIndex vector store that keeps all levels of a tree in one LanceDB table.

    Parameters
    ----------
    uri : str or Path
        A folder, or a URI of an object store that LanceDB supports.
    keep_generations : int
        Number of generations to keep, 2 by default, at least 1; each write removes older ones.
    storage_options : dict[str, str], optional
        Credentials, region and endpoint of the object store. They are kept out of `to_dict`, the
        repr and every file that the store writes.
    stores_text, is_embedding_query : bool
        Read by LlamaIndex; leave both True.

    Raises
    ------
    InputError
        If `uri` is a file or cannot be the name of a folder.

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
      `1 - mmr_threshold` times the highest cosine similarity to a result chosen earlier.

    Results are ordered by score. Tables of up to 20,000 rows are searched exhaustively; in larger
    ones, a search index picks candidates, which are scored exactly. A filtered query returns all
    rows that pass, up to the requested number.

    Filters test the metadata of each chunk and of its document. A summary passes if every chunk
    under it passes, so that it reveals no excluded text; with `partial_summaries=True`, one passing
    chunk is enough. If no node has a key, a condition on it matches nothing, not even if it is
    negated; a warning names the key. `hierindex_documents` (`documents` for short, unless a chunk
    has metadata of that name) is used like a metadata key; it tests the id of a chunk's document.
    The following keys refer to the node itself, and can be combined with other keys only by AND:

    * `hierindex_id` and `hierindex_kind`
    * `hierindex_level` and `hierindex_level_max`: the first and the last level of the node
    * `hierindex_whole_document`: the id of the document that the node covers exactly

    Every write publishes a new generation (version of the table) in one step, after its rows and
    search indices are written. Each call reads the generation that is newest when it starts. If
    that generation is removed during the call, the call starts again with the newest one. To use
    one generation for several calls, use `snapshot`. Unpublished data of a killed process is never
    read, and the next write removes it. A deletion also removes all earlier generations, so that no
    file contains deleted text.

    When an `IngestionPipeline` with a docstore runs again, it passes on only new and changed
    documents. To add them to the existing tree, pass this store to the hierarchy as `store=`.

    One process writes at a time. In a folder, a lock ensures this: writes wait up to a minute for
    another writer. In an object store, if two processes write at once, the second fails. Async
    methods run the sync ones in a thread.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    stores_text: bool = True
    uri: str
    keep_generations: int = Field(default=2, ge=1)

    _table: Table = PrivateAttr()
    _expected: tuple[int, Set[str]] = PrivateAttr(default=(0, frozenset()))

    def __init__(
        self,
        uri: str | Path,
        *,
        keep_generations: int = 2,
        storage_options: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        table = Table(Connection(str(uri), storage_options), keep_generations)
        super().__init__(**kwargs | {"uri": str(uri), "keep_generations": keep_generations})
        self._table = table

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises the class."""
        return "HierarchyStore"

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return a store for an open table."""
        store = cls(table.uri, keep_generations=table.keep)
        store._table = table
        return store

    @property
    def table(self) -> Table:
        """The table of the nodes."""
        return self._table

    @property
    def client(self) -> "DBConnection":
        """A LanceDB connection to the database."""
        return self._table.connection.connect()

    def snapshot(self, generation: int | None = None) -> Snapshot:
        """Return a snapshot of a generation, by default the newest; later writes do not change it.

        Raises
        ------
        GenerationError
            If the store does not hold this generation; also raised by a snapshot that is read
            after later writes have removed its generation.
        FormatError
            If another version of hierindex wrote the table.
        """
        return self._table.snapshot(generation)

    def at(self, snapshot: Snapshot) -> Self:
        """Return a read-only copy of this store that always reads the given snapshot."""
        store = self.model_copy()
        store._table = self._table.at(snapshot)
        return store

    def generations(self) -> list[dict[str, Any]]:
        """Return the generations that are kept, the oldest first.

        Each is a dict of its number (`generation`), the `time` of its publication (ISO 8601, UTC),
        the counts of `documents`, `levels` and `nodes`, the kind of write (`what`, such as
        "build"), and `changes`, a dict of counts by kind of change.
        """
        return self._table.history()

    def rollback(self, generation: int | None = None) -> int:
        """Publish an earlier generation again, by default the previous one; return its new number.

        Raises
        ------
        InputError
            If the store does not hold this generation, or it is the current one.
        """
        return self._table.rollback(generation)

    def add(self, /, nodes: Sequence[BaseNode]) -> list[str]:  # type: ignore[override]  # no options
        """Insert nodes, replacing those with the same id, and return their ids.

        If the hierarchy that made the nodes was given this store as `store=`, the new nodes replace
        all nodes in the store. Otherwise, if a pipeline passes on only the changed documents, their
        nodes form a tree beside the existing one, and a warning is issued.

        Raises
        ------
        InputError
            If a node has no embedding, or one whose dimension differs from the table's; or if the
            store was written to while the hierarchy built the tree.
        FormatError
            If another version of hierindex wrote the table.
        """
        for node in nodes:
            check_keys(node)
        added = [*map(from_text_node, nodes)]
        if added:
            with self._table.writing("add", None):
                self._table.upsert(to_table(added), alone=self._is_expected(added))
        if any(node.maker and node.maker.method and not node.parents for node in added):
            roots = self.snapshot().roots()
            if {*roots} - {node.id for node in added}:
                warnings.warn(
                    f"{self.uri!r} now has {len(roots)} roots. Pass store= to the hierarchy if a "
                    "pipeline passes on only changed documents. To build one tree now, run "
                    f"`hierindex update --index {self.uri}` or call "
                    f"HierarchicalIndex.open({self.uri!r}).regrow().",
                    stacklevel=2,
                )
        return [node.node_id for node in nodes]

    def expect_tree(self, generation: int, node_ids: Set[str]) -> None:
        """Let the next `add` replace all nodes of `generation` if it gets exactly `node_ids`."""
        self._expected = generation, node_ids

    def delete(self, /, ref_doc_id: str) -> None:  # type: ignore[override]  # no options
        """Delete a document's chunks and every summary derived from them.

        Links to deleted nodes are removed. A node that lost a parent or a child is marked as stale
        until it is written again; `HierarchicalIndex.info` counts the stale nodes, and
        `HierarchicalIndex.regrow` rebuilds the tree.
        """
        rows = self.snapshot().select("id", where=of_documents([ref_doc_id]))
        delete_nodes(self._table, rows["id"].to_pylist(), None)

    def delete_nodes(  # type: ignore[override]  # LlamaIndex's returns None
        self,
        /,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        dry_run: bool = False,
    ) -> int:
        """Delete the nodes that match the given ids and filters, and the links to them.

        A deletion by filters alone also deletes every summary with a matching chunk under it, so
        that no remaining text reveals a deleted one. A deletion by ids keeps the summaries of a
        chunk and marks them as stale.

        Returns
        -------
        int
            Number of nodes deleted, or to be deleted if `dry_run`.

        Raises
        ------
        InputError
            If neither ids nor filters are given (`clear` deletes everything), or a filter has a key
            that no chunk has.
        """
        ours = Filters.of(filters)
        if node_ids is None and not (ours and keys(ours)):
            raise InputError("Name the nodes to delete by ids or filters; clear() deletes all.")
        if dry_run:
            return len(ids_to_delete(self.snapshot(), node_ids, ours))
        return delete_nodes(self._table, node_ids, ours)

    def clear(self) -> None:
        """Drop the table and delete its cache."""
        self._table.drop()
        remove(cache_file(self.uri))

    @on_newest
    def get_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        partial_summaries: bool = False,
    ) -> list[BaseNode]:
        """Return nodes with embeddings, in the order of the ids if these are given.

        See the class for `partial_summaries`.
        """
        ours, partial = Filters.of(filters), partial_summaries
        found = self.snapshot().nodes(node_ids, ours, partial_summaries=partial)
        return [*map(to_text_node, found)]

    @on_newest
    def query(self, /, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the best nodes that pass the query's filters, ordered by score; see the class.

        Parameters
        ----------
        query : VectorStoreQuery
            In mode `default`, `hybrid`, `text_search` or `mmr`. A hybrid query returns
            `hybrid_top_k` results (by default `similarity_top_k`). It fuses two lists:
            `similarity_top_k` nodes by vectors (at least 50, unless `hybrid_top_k` is given) and
            `sparse_top_k` nodes by words (by default `max(similarity_top_k, 50)`).
        **kwargs
            `partial_summaries` (see the class); for mode `mmr`, `mmr_prefetch_k`, the number of
            candidates, or `mmr_prefetch_factor` (4 by default), the number of candidates per
            result.

        Raises
        ------
        InputError
            If the mode is not supported, a number is out of range, the embedding or text that the
            mode needs is missing, or the embedding has the wrong dimension, is all zero, or
            contains NaN or infinity.
        """
        _check_query(query)
        rows = self._found(query, **kwargs)
        return VectorStoreQueryResult(
            nodes=[*map(to_text_node, to_nodes(rows))],
            similarities=rows["score"].to_pylist(),
            ids=rows["id"].to_pylist(),
        )

    async_add = threaded(add)  # type: ignore[arg-type]  # no options
    adelete = threaded(delete)  # type: ignore[arg-type]  # no options
    adelete_nodes = threaded(delete_nodes)  # type: ignore[arg-type]  # returns a number
    aclear = threaded(clear)
    aget_nodes = threaded(get_nodes)
    aquery = threaded(query)

    def _found(
        self,
        query: VectorStoreQuery,
        *,
        partial_summaries: bool = False,
        mmr_prefetch_k: int | None = None,
        mmr_prefetch_factor: float = MMR_PREFETCH_FACTOR,
    ) -> pa.Table:
        """Return the rows of a query, best first, with their `score`."""
        snapshot, top_k = self.snapshot(), query.similarity_top_k
        if not snapshot.exists:
            return snapshot.select(*NODE_COLUMNS).append_column("score", [[]])
        of = None if query.doc_ids is None else on_documents(query.doc_ids)
        filters = combined(of, Filters.of(query.filters))
        # [] is what VectorStoreIndex passes for all nodes
        where = by_ids(query.node_ids) if query.node_ids else EVERY_ROW
        scope = snapshot.scope(filters, where, partial_summaries=partial_summaries)
        if query.mode == Mode.TEXT_SEARCH:
            return matching(scope, _words_of(query), query.sparse_top_k or top_k)
        vector = _vector_of(query)
        snapshot.check_dimension(len(vector))
        if query.mode == Mode.MMR:
            candidates = max(mmr_prefetch_k or int(top_k * mmr_prefetch_factor), top_k)
            threshold = MMR_THRESHOLD if query.mmr_threshold is None else query.mmr_threshold
            return diverse(scope, vector, top_k, candidates=candidates, threshold=threshold)
        if query.mode == Mode.HYBRID:
            dense = top_k if query.hybrid_top_k else max(top_k, DEPTH)
            sparse = query.sparse_top_k or max(top_k, DEPTH)
            alpha = ALPHA if query.alpha is None else query.alpha
            rows = fused(scope, vector, _words_of(query), dense=dense, sparse=sparse, alpha=alpha)
            return rows[: query.hybrid_top_k or top_k]
        return nearest(scope, vector, top_k)

    def _is_expected(self, nodes: Sequence[Node]) -> bool:
        generation, ids = self._expected
        if ids != {node.id for node in nodes}:
            return False
        if generation != self.snapshot().generation:
            raise InputError(
                f"{self.uri!r} was written to while the tree was built over its chunks; run the "
                "pipeline again."
            )
        return True


def _check_query(query: VectorStoreQuery) -> None:
    """Raise InputError if a mode is unsupported, or a number is out of range."""
    modes = ", ".join(repr(mode.value) for mode in MODES)
    require(query.mode in MODES, "query mode", f"one of {modes}", query.mode.value)
    for name in ("similarity_top_k", "sparse_top_k", "hybrid_top_k"):
        value = getattr(query, name)
        require(value is None or value >= 1, name, "at least 1", value)
    for name in ("alpha", "mmr_threshold"):
        value = getattr(query, name)
        require(value is None or 0 <= value <= 1, name, "in [0, 1]", value)


def _vector_of(query: VectorStoreQuery) -> list[float]:
    """Return a query's embedding; raise InputError if it is missing, all zero or not finite."""
    vector = query.query_embedding
    if not vector or not any(vector) or not all(map(math.isfinite, vector)):
        raise InputError("A query needs an embedding of finite numbers, not all zero.")
    return vector


def _words_of(query: VectorStoreQuery) -> str:
    """Return a query's text; raise InputError if it is missing."""
    if query.query_str is None:
        raise InputError(f"A query in mode {query.mode.value!r} needs a query_str.")
    return query.query_str
