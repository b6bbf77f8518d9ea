"""A store that is one LanceDB table: where that is, and what it holds as a whole."""

import json
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr

from hierindex.record import LEVEL, LEVEL_MAX, NodeRecord
from hierindex.store.async_first import AsyncFirstStore, wait_for
from hierindex.store.checks import at_least, by_ids, check_columns, check_dimension
from hierindex.store.facts import SCHEMA, Facts
from hierindex.store.location import Location
from hierindex.store.prefilter import Prefilter

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection

BATCH = 8192  # rows
REPORT = "hierindex"  # key of the build's report in the table's own metadata


MOST_KEPT = 10_000  # places: 15 MB of vectors, read in 0.1 s


class Place(NamedTuple):
    """A node as a way down the tree passes it; `vector` as it is stored."""

    id: str
    level: int
    child_ids: list[str]
    vector: "np.ndarray[Any, Any]"  # (n_dims,) float32


class OneTableStore(AsyncFirstStore):
    """What `HierarchyStore` knows of its table.

    Parameters
    ----------
    uri : str or Path
    table_name : str
    storage_options : dict[str, str], optional
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    stores_text: bool = True
    uri: str
    table_name: str = Field(default="nodes")

    _location: Location = PrivateAttr()
    _facts: Facts = PrivateAttr(default_factory=Facts)

    def __init__(
        self,
        uri: str | Path,
        table_name: str = "nodes",
        *,
        storage_options: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        location = Location(str(uri), table_name, storage_options)
        super().__init__(uri=str(uri), table_name=table_name, **kwargs)  # type: ignore[call-arg]
        self._location = location

    @property
    def client(self) -> "DBConnection":
        """A LanceDB connection, for what this class does not offer."""
        return self._location.client()

    def columns(self, *names: str) -> dict[str, list[Any]]:
        """See `acolumns`."""
        return wait_for(self.acolumns(*names))

    def require(self) -> None:
        """Refuse to go on without a table.

        Raises
        ------
        IndexNotFoundError
            Says how to build one.
        InputError
            If another version of hierindex wrote it.
        """
        check_columns(wait_for(self._existing_schema()))

    def exists(self) -> bool:
        """See `aexists`."""
        return wait_for(self.aexists())

    def highest_level(self) -> int:
        """See `ahighest_level`."""
        return wait_for(self.ahighest_level())

    async def aexists(self) -> bool:
        """Whether there is a table."""
        return await self._location.table() is not None

    async def acolumns(
        self, *names: str, node_ids: Collection[str] | None = None
    ) -> dict[str, list[Any]]:
        """Columns of the table, of these nodes or of all; no rows where there is no table."""
        where = None if node_ids is None else Prefilter(by_ids(node_ids))
        columns: dict[str, list[Any]] = (await self._select(*names, where=where)).to_pydict()
        return columns

    def batches(self, *columns: str) -> "Iterator[pa.RecordBatch]":
        """See `abatches`."""
        batches = self.abatches(*columns)

        async def following() -> "pa.RecordBatch | None":
            return await anext(batches, None)

        while (batch := wait_for(following())) is not None:
            yield batch

    async def abatches(self, *columns: str) -> "AsyncIterator[pa.RecordBatch]":
        """Columns of all rows of one version of the table, some thousand rows at a time.

        Raises
        ------
        IndexNotFoundError
            If there is no table.
        """
        table = await self._location.existing()
        check_columns(await table.schema(), columns)
        query = table.query().select(list(columns))
        async for batch in await query.to_batches(max_batch_length=BATCH):
            yield batch

    async def ahighest_level(self) -> int:
        """The highest cut that there is; 0 where there is no table."""
        facts = await self._known()
        if LEVEL_MAX not in facts:
            column = (await self._select(LEVEL_MAX))[LEVEL_MAX]
            facts[LEVEL_MAX] = max(column.unique().to_pylist(), default=0)
        return int(facts[LEVEL_MAX])

    async def acheck_dimension(self, n_dims: int) -> None:
        """Refuse a question of another dimension than the table's vectors.

        Raises
        ------
        InputError
            Names both.
        """
        if SCHEMA in (known := await self._known()):
            check_dimension(known[SCHEMA], n_dims, "the question has")

    async def aroots(self) -> list[str]:
        """Ids of the nodes without a parent."""
        facts = await self._known()
        if "roots" not in facts:
            import pyarrow.compute as pc

            rows = await self._select("id", "parent_ids")
            alone = pc.equal(pc.list_value_length(rows["parent_ids"]), 0) if len(rows) else []
            facts["roots"] = rows.filter(alone)["id"].to_pylist() if len(rows) else []
        return list(facts["roots"])

    async def alevel_sizes(self) -> dict[int, int]:
        """How many nodes each level has as their own, ascending."""
        facts = await self._known()
        if LEVEL not in facts:
            counts = (await self._select(LEVEL))[LEVEL].value_counts().to_pylist()
            facts[LEVEL] = dict(sorted((each["values"], each["counts"]) for each in counts))
        return dict(facts[LEVEL])

    async def aparents_of_summaries(self) -> dict[str, str | None]:
        """The strongest parent of each summary, None of a root, in the table last searched.

        Read once for each version: of a million nodes some 200,000, which takes a fifth of a
        second and 40 MB.
        """
        facts = self._facts.latest or await self._known()
        if "parents" not in facts:
            rows = await self._select("id", "parent_ids", where=Prefilter(at_least(1)))
            parents = (next(iter(ids), None) for ids in rows["parent_ids"].to_pylist())
            facts["parents"] = dict(zip(rows["id"].to_pylist(), parents, strict=True))
        known: dict[str, str | None] = facts["parents"]
        return known

    async def aplaces(self, node_ids: Collection[str]) -> list[Place]:
        """Where nodes stand in the tree, in no order; those of the highest are kept in memory."""
        upper = await self._upper()
        below = [node_id for node_id in node_ids if node_id not in upper]
        there = [upper[node_id] for node_id in node_ids if node_id in upper]
        return [*there, *await self._places(Prefilter(by_ids(below)))] if below else there

    async def _upper(self) -> dict[str, Place]:
        """The places in the highest levels, as many levels as have `MOST_KEPT` nodes together."""
        facts = await self._known()
        if "upper" not in facts:
            n_nodes, lowest = 0, 1 + await self.ahighest_level()
            for level, size in reversed((await self.alevel_sizes()).items()):
                n_nodes += size
                lowest = level if n_nodes <= MOST_KEPT else lowest
            places = await self._places(Prefilter(at_least(lowest)))
            facts["upper"] = {place.id: place for place in places}
        upper: dict[str, Place] = facts["upper"]
        return upper

    async def _places(self, where: Prefilter) -> list[Place]:
        rows = await self._select("id", "level", "child_ids", "vector", where=where)
        X = np.stack(rows["vector"].to_numpy(zero_copy_only=False)) if len(rows) else ()
        columns = (rows[name].to_pylist() for name in ("id", "level", "child_ids"))
        return list(map(Place, *columns, X))

    async def _known(self) -> dict[str, Any]:
        """What is known of the table as it is."""
        table = await self._location.table()
        return {} if table is None else await self._facts.of(table)

    def any_record(self) -> NodeRecord:
        """A node's record: all name the same method and models; the default of an empty table."""

        async def metadata() -> list[str]:
            query = (await self._location.existing()).query().select(["metadata"])
            return list((await query.limit(1).to_arrow())["metadata"].to_pylist())

        return NodeRecord.from_metadata(json.loads(next(iter(wait_for(metadata())), "{}")))

    def report(self) -> dict[str, Any]:
        """The report of the build that wrote the table; empty where a pipeline filled it."""
        metadata = wait_for(self._existing_schema()).metadata or {}
        report: dict[str, Any] = json.loads(metadata.get(REPORT.encode(), b"{}"))
        return report

    def generation(self) -> int:
        """LanceDB's version of the table, which grows with every change and every index made."""

        async def version() -> int:
            return int(await (await self._location.existing()).version())

        return wait_for(version())

    async def _existing_schema(self) -> "pa.Schema":
        return await (await self._location.existing()).schema()

    async def _select(self, *columns: str, where: Prefilter | None = None) -> "pa.Table":
        """Columns of all rows that pass; no rows where there is no table."""
        table = await self._location.table()
        if table is None:
            import pyarrow as pa

            return pa.table({name: [] for name in columns})
        check_columns(await table.schema(), columns)
        query = table.query().select(list(columns))
        return await (query if where is None else where.narrow(query)).to_arrow()
