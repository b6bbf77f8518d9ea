"""Export of a tree and its vectors to a Parquet file."""

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
    `parent_weights` (strongest first, summing to 1), `child_ids`, `citations` (structs of
    `document`, `start`, `end` and a nullable `page`), `metadata` (of the documents, as JSON),
    `n_tokens`, `grounding` (null if not measured) and `vector` (fixed-size list of float32).
    Rows are in the order of the table, and are read and written in batches.

    Returns
    -------
    int
        Number of nodes.

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
