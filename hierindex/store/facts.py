"""What was read of a table, known as long as the table stays as it was."""

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import AsyncTable

NAME = b"hierindex_table"
"""Key of a table's own name: one that is dropped and made anew counts its versions anew."""

SCHEMA, N_ROWS = "schema", "n_rows"


def named(rows: "pa.Table") -> "pa.Table":
    """Rows to make a table of, with a name of its own."""
    return rows.replace_schema_metadata({**(rows.schema.metadata or {}), NAME: uuid4().hex})


class Facts:
    """Values by name, of one version of a table; another version knows nothing yet.

    What is kept must be small beside the table: numbers, each summary's parent, and the places of
    the highest nodes.
    """

    def __init__(self) -> None:
        self._state: tuple[bytes, int] | None = None
        self.latest: dict[str, Any] = {}

    async def of(self, table: "AsyncTable") -> dict[str, Any]:
        """What is known of the table as it is, its schema at least; to be added to."""
        schema, version = await asyncio.gather(table.schema(), table.version())
        state = (schema.metadata or {}).get(NAME, b""), int(version)
        if state != self._state:
            self._state, self.latest = state, {SCHEMA: schema}
        return self.latest
