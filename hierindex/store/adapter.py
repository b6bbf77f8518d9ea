"""Tables that LlamaIndex's own `LanceDBVectorStore` wrote, read without importing it."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import BaseNode

from hierindex.errors import InputError
from hierindex.store.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 5_000  # rows


async def adapter_nodes(table: Table) -> AsyncIterator[list[BaseNode]]:
    """Yield the nodes of a table that `LanceDBVectorStore` wrote, in batches.

    Raises
    ------
    InputError
        If the table does not exist or has another layout.
    """
    from llama_index.core.vector_stores.utils import metadata_dict_to_node

    opened = await table.open()
    if opened is None:
        raise InputError(f"{table.uri!r} holds no table {table.name!r}.")
    if not _is_the_adapters(await opened.schema()):
        raise InputError(
            f"Table {table.name!r} in {table.uri!r} was not written by LlamaIndex's "
            "LanceDBVectorStore: it must have the columns id, vector and metadata, and "
            "metadata must contain _node_content."
        )
    columns = ["id", "vector", "metadata"]
    batches = await opened.query().select(columns).to_batches(max_batch_length=BATCH)
    async for batch in batches:
        rows: list[dict[str, Any]] = batch.to_pylist()
        nodes = [metadata_dict_to_node(row["metadata"]) for row in rows]
        for node, row in zip(nodes, rows, strict=True):
            node.embedding = row["vector"]
        yield nodes


def _is_the_adapters(schema: "pa.Schema") -> bool:
    import pyarrow as pa

    types = {field.name: field.type for field in schema}
    metadata = types.get("metadata", pa.null())
    return (
        "id" in types
        and pa.types.is_fixed_size_list(types.get("vector", pa.null()))
        and pa.types.is_struct(metadata)
        and metadata.get_field_index("_node_content") >= 0
    )
