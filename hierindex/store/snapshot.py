"""One version of the table, from which a question is answered."""

from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from hierindex.errors import IndexNotFoundError, InputError
from hierindex.record import LEVEL, LEVEL_MAX, NodeRecord
from hierindex.store.failing import FILTERED
from hierindex.store.filters import OF_NODE, filters_of
from hierindex.store.hashed_metadata import filter_key, has_any, hash_entry
from hierindex.store.modes import answer, check_query
from hierindex.store.passing import Passing, passing
from hierindex.store.prefilter import CHUNKS, SUMMARIES, Prefilter, all_of, beginning, by_ids
from hierindex.store.rows import node_of, to_nodes
from hierindex.store.schema import NODE_COLUMNS, check_dimension, report_of
from hierindex.store.search import Scope

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import AsyncTable

T = TypeVar("T")
BATCH = 8192  # rows
MOST_KEPT = 10_000  # places in memory: 15 MB of vectors


class Place(NamedTuple):
    """The part of a node that ranking and traversal of the tree read."""

    id: str
    level: int
    child_ids: list[str]
    vector: "np.ndarray[Any, Any]"  # (n_dims,) float32, as stored


def once(
    read: "Callable[[Snapshot], Coroutine[Any, Any, T]]",
) -> "Callable[[Snapshot], Coroutine[Any, Any, T]]":
    """Cache the result of a method for all snapshots of one version."""

    @wraps(read)
    async def cached(snapshot: "Snapshot") -> T:
        if read.__name__ not in snapshot.known:
            snapshot.known[read.__name__] = await read(snapshot)
        return cast(T, snapshot.known[read.__name__])

    return cached


class Snapshot:
    """A version of the table, which later writes do not change.

    A question reads from one snapshot, so that all it reads belongs to one tree.

    Parameters
    ----------
    uri : str
        Of the index, for error messages.
    table : AsyncTable, optional
        Opened at this version; None if the table does not exist.
    schema : Schema, optional
        Of the table.
    state : (bytes, int)
        The table's random name, and LanceDB's version number.
    known : dict
        Cache shared by the snapshots of one version. Its values must be small beside the table:
        numbers, the parents of summaries, the summaries of sections, the places of the highest
        nodes, the tree's rows, and the hashes of copied texts.
    """

    def __init__(
        self,
        uri: str,
        table: "AsyncTable | None" = None,
        schema: "pa.Schema | None" = None,
        state: tuple[bytes, int] = (b"", 0),
        known: dict[str, Any] | None = None,
    ) -> None:
        self.uri = uri
        self.state = state
        self.known = {} if known is None else known
        self._table = table
        self._schema = schema

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same version of the same table."""
        if not isinstance(other, Snapshot):
            return NotImplemented
        return self.state == other.state

    def __hash__(self) -> int:
        return hash(self.state)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the snapshot without its table, which cannot be pickled."""
        return Snapshot, (self.uri,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    @property
    def version(self) -> int:
        """LanceDB's version number, which grows with every write and every new index."""
        return self.state[1]

    @property
    def exists(self) -> bool:
        """Whether the table exists."""
        return self._table is not None

    def require(self) -> "AsyncTable":
        """Return the table.

        Raises
        ------
        IndexNotFoundError
            If it does not exist.
        """
        if self._table is None:
            raise IndexNotFoundError(
                f"{self.uri!r} holds no index; build one with "
                f"`hierindex build SOURCE --index {self.uri}`."
            )
        return self._table

    def report(self) -> dict[str, Any]:
        """Return the report of the build that wrote the table; empty if a pipeline wrote it."""
        return {} if self._schema is None else report_of(self._schema)

    def check_dimension(self, n_dims: int) -> None:
        """Raise InputError if a question's vector has another dimension than the table's."""
        if self._schema is not None:
            check_dimension(self._schema, n_dims, "the question has")

    async def query(
        self,
        query: VectorStoreQuery,
        *,
        partial_summaries: bool = False,
        **options: Any,
    ) -> VectorStoreQueryResult:
        """Return the best nodes that pass the query's filters; see `HierarchyStore.aquery`."""
        rows = await self.found(query, partial_summaries=partial_summaries, **options)
        return VectorStoreQueryResult(
            nodes=to_nodes(rows),
            similarities=rows["score"].to_pylist(),
            ids=rows["id"].to_pylist(),
        )

    async def found(
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
        if self._table is None:
            return (await self.select(*columns)).append_column("score", [[]])
        if query.query_embedding:
            self.check_dimension(len(query.query_embedding))
        passes = await passing(
            self, filters_of(query), partial=partial_summaries, highest_of=highest_of
        )
        most = len(query.node_ids) if query.node_ids else None
        return await answer(Scope(self, passes, most, _read_by(passes, columns)), query, **options)

    async def nodes(
        self,
        node_ids: Collection[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        partial_summaries: bool = False,
    ) -> list[TextNode]:
        """Return nodes with embeddings, by ids (in their order), by filters, by both, or all."""
        found = await self.rows(node_ids, filters, partial_summaries=partial_summaries)
        return list(map(node_of, found))

    async def rows(
        self,
        node_ids: Collection[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        where: Prefilter | None = None,
        partial_summaries: bool = False,
        columns: Sequence[str] = (*NODE_COLUMNS, "vector"),
    ) -> list[dict[str, Any]]:
        """Return columns of the rows of `nodes` that meet a condition, `id` among them."""
        if self._table is None:
            return []
        passes = await passing(self, filters, partial=partial_summaries)
        parts = [passes.where, where, None if node_ids is None else by_ids(node_ids)]
        where = all_of([part for part in parts if part is not None])
        table = passes.rows(await self.select(*_read_by(passes, columns), where=where))
        by_id = {row["id"]: row for row in table.to_pylist()}
        return [by_id[i] for i in (by_id if node_ids is None else node_ids) if i in by_id]

    async def ids(
        self,
        filters: MetadataFilters,
        where: Prefilter | None = None,
        *,
        partial_summaries: bool = False,
        highest_of: frozenset[str] | None = None,
    ) -> list[str]:
        """Return the ids of the nodes that pass filters and meet a condition."""
        passes = await passing(self, filters, partial=partial_summaries, highest_of=highest_of)
        columns = ["id"] if passes.where.exact else FILTERED
        within = passes.where if where is None else passes.where & where
        ids: list[str] = passes.rows(await self.select(*columns, where=within))["id"].to_pylist()
        return ids

    async def columns(
        self, *names: str, node_ids: Collection[str] | None = None
    ) -> dict[str, list[Any]]:
        """Return columns of these nodes or of all; empty if the table does not exist."""
        where = None if node_ids is None else by_ids(node_ids)
        columns: dict[str, list[Any]] = (await self.select(*names, where=where)).to_pydict()
        return columns

    async def id_beginning(self, start: str, *, or_document: bool = False) -> str:
        """Return the id that is a text, or the only one that begins with it.

        Raises
        ------
        InputError
            If no id or more than one begins with it; `or_document` adds that no document has it.
        """
        ids = (await self.select("id", where=beginning(start)))["id"].to_pylist()
        ids = [node_id for node_id in ids if node_id.startswith(start)]
        if start not in ids and len(ids) != 1:
            no = f"No document has the id {start!r}, and no" if or_document else "No"
            raise InputError(
                f"{len(ids) or no} nodes have an id that begins with {start!r}; "
                "`hierindex tree` and `hierindex query` show ids."
            )
        return start if start in ids else ids[0]

    async def node_beginning(self, start: str) -> TextNode:
        """Return the node whose id is a text, or the only one whose id begins with it."""
        return (await self.nodes([await self.id_beginning(start)]))[0]

    async def batches(
        self, *columns: str, where: Prefilter | None = None
    ) -> "AsyncIterator[pa.RecordBatch]":
        """Yield columns of the rows that meet a condition, in batches of up to 8,192.

        Raises
        ------
        IndexNotFoundError
            If the table does not exist.
        """
        query = self.require().query().select(list(columns))
        narrow = query if where is None else where.narrow(query)
        async for batch in await narrow.to_batches(max_batch_length=BATCH):
            yield batch

    async def select(self, *columns: str, where: Prefilter | None = None) -> "pa.Table":
        """Return columns of the rows that meet a condition; empty if the table does not exist."""
        if self._table is None:
            import pyarrow as pa

            return pa.table({name: [] for name in columns})
        query = self._table.query().select(list(columns))
        return await (query if where is None else where.narrow(query)).to_arrow()

    @once
    async def record(self) -> NodeRecord:
        """Return any node's record, as all name the same method and models; a default if empty."""
        first = await self.require().query().select(NODE_COLUMNS).limit(1).to_arrow()
        metadata = [node.metadata for node in to_nodes(first)]
        return NodeRecord.from_metadata(next(iter(metadata), {}))

    @once
    async def n_rows(self) -> int:
        """Return the number of nodes."""
        return await self.require().count_rows()

    @once
    async def copied_texts(self) -> frozenset[int]:
        """Return the hashes of texts that several nodes have; reads 8 bytes of each node."""
        import pyarrow.compute as pc

        counts = (await self.select("text_hash"))["text_hash"].value_counts()
        several = pc.greater(counts.field("counts"), 1)
        return frozenset(counts.field("values").filter(several).to_pylist())

    async def has_key(self, key: str) -> bool:
        """Return whether any chunk has a value for the key of a filter; reads digests alone."""
        has = CHUNKS & Prefilter(has_any([hash_entry("has", filter_key(key))]))
        return key in OF_NODE or await self.require().count_rows(has.sql) > 0

    @once
    async def highest_level(self) -> int:
        """Return the highest level; 0 if the table does not exist."""
        return max((await self.select(LEVEL_MAX))[LEVEL_MAX].unique().to_pylist(), default=0)

    @once
    async def level_sizes(self) -> dict[int, int]:
        """Return how many nodes have each level as their own, in ascending order of levels."""
        counts = (await self.select(LEVEL))[LEVEL].value_counts().to_pylist()
        return dict(sorted((each["values"], each["counts"]) for each in counts))

    @once
    async def roots(self) -> list[str]:
        """Return the ids of the nodes without a parent."""
        rows = await self.columns("id", "parent_ids")
        pairs = zip(rows["id"], rows["parent_ids"], strict=True)
        return [node_id for node_id, parents in pairs if not parents]

    @once
    async def parents_of_summaries(self) -> dict[str, tuple[str, ...]]:
        """Return the parents of each summary, the strongest first; empty for a root.

        Cached: for a million nodes, 200,000 summaries take 0.2 s to read and 50 MB.
        """
        rows = await self.select("id", "parent_ids", where=SUMMARIES)
        parents = map(tuple, rows["parent_ids"].to_pylist())
        return dict(zip(rows["id"].to_pylist(), parents, strict=True))

    async def places(self, node_ids: Collection[str]) -> list[Place]:
        """Return the places of nodes in any order; those of the upper levels are cached."""
        upper = await self._upper()
        below = [node_id for node_id in node_ids if node_id not in upper]
        cached = [upper[node_id] for node_id in node_ids if node_id in upper]
        return [*cached, *await self._places(by_ids(below))] if below else cached

    @once
    async def _upper(self) -> dict[str, Place]:
        """Return the places in the highest levels that have at most `MOST_KEPT` nodes together."""
        n_nodes, lowest = 0, 1 + await self.highest_level()
        for level, size in reversed((await self.level_sizes()).items()):
            n_nodes += size
            lowest = level if n_nodes <= MOST_KEPT else lowest
        places = await self._places(Prefilter(f"level >= {lowest:d}"))
        return {place.id: place for place in places}

    async def _places(self, where: Prefilter) -> list[Place]:
        rows = await self.select("id", "level", "child_ids", "vector", where=where)
        X = np.stack(rows["vector"].to_numpy(zero_copy_only=False)) if len(rows) else ()
        columns = (rows[name].to_pylist() for name in ("id", "level", "child_ids"))
        return list(map(Place, *columns, X))


def _read_by(passes: Passing, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to read: the given ones, and those that the filters read in Python."""
    return tuple(dict.fromkeys((*columns, *(() if passes.where.exact else FILTERED))))
