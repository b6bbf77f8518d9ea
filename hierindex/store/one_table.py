"""A store that is one LanceDB table: where that is, and what it holds as a whole."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr

from hierindex.store.async_first import AsyncFirstStore, wait_for
from hierindex.store.location import Location
from hierindex.store.prefilter import Prefilter

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection

REPORT = "hierindex"  # key of the build's report in the table's own metadata


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
        """
        wait_for(self._location.existing())

    def exists(self) -> bool:
        """Whether there is a table."""
        return wait_for(self._location.table()) is not None

    async def acolumns(self, *names: str) -> dict[str, list[Any]]:
        """Whole columns of the table; no rows where there is no table."""
        columns: dict[str, list[Any]] = (await self._select(*names)).to_pydict()
        return columns

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
        query = table.query().select(list(columns))
        return await (query if where is None else where.narrow(query)).to_arrow()
