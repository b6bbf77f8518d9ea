"""A tree as a Parquet file, with its vectors."""

import json
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hierindex.errors import InputError
from hierindex.export.nodes import NO_NODES
from hierindex.export.target import new
from hierindex.index import HierarchicalIndex
from hierindex.record import NodeRecord, Span, user_metadata
from hierindex.store.schema import NODE_COLUMNS, to_nodes

CITATION = pa.struct(
    [
        pa.field("document", pa.string(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("page", pa.int32()),
    ]
)
COLUMNS = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("level", pa.int32(), nullable=False),
    pa.field("level_max", pa.int32(), nullable=False),
    pa.field("kind", pa.string(), nullable=False),
    pa.field("text", pa.string(), nullable=False),
    pa.field("documents", pa.list_(pa.string())),
    pa.field("parent_ids", pa.list_(pa.string())),
    pa.field("parent_weights", pa.list_(pa.float64())),
    pa.field("child_ids", pa.list_(pa.string())),
    pa.field("citations", pa.list_(CITATION)),
    pa.field("metadata", pa.string(), nullable=False),  # JSON
    pa.field("n_tokens", pa.int32(), nullable=False),
    pa.field("grounding", pa.float64()),
]
READ = [*NODE_COLUMNS, "vector"]


def to_parquet(index: HierarchicalIndex, path: str | Path) -> int:
    """Write all nodes with their vectors to a new Parquet file.

    Columns are `id`, `level`, `level_max`, `kind`, `text`, `documents`, `parent_ids` and
    `parent_weights` (the strongest first, they sum to 1), `child_ids`, `citations` (of
    `document`, `start`, `end`, and `page` or null), `metadata` (the documents' own, as JSON),
    `n_tokens`, `grounding` (null where nobody looked) and `vector`, float32 and of a fixed
    size. Rows are in the table's order; some thousand at a time are in memory.

    Returns
    -------
    int
        How many nodes.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, it is empty, or the file exists or cannot be written.
    """
    with new(path) as partial:
        batches = index.store.batches(*READ)
        if (first := next(batches, None)) is None:
            raise InputError(NO_NODES)
        schema = pa.schema([*COLUMNS, first.schema.field("vector")])
        n_nodes = 0
        with pq.ParquetWriter(partial, schema) as writer:
            for batch in chain([first], batches):
                writer.write_table(_table(batch, schema))
                n_nodes += batch.num_rows
    return n_nodes


def _table(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    found = [node.metadata for node in to_nodes(batch.select(NODE_COLUMNS))]
    records = list(map(NodeRecord.from_metadata, found))
    columns = {
        **{name: batch[name] for name in READ},
        "citations": [[Span._asdict(span) for span in r.citations] for r in records],
        "metadata": [json.dumps(user_metadata(each), ensure_ascii=False) for each in found],
        "grounding": [record.grounding for record in records],
    }
    return pa.table([columns[name] for name in schema.names], schema=schema)
