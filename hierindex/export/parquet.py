"""Export of a tree and its vectors to a Parquet file."""

import json
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hierindex.errors import InputError
from hierindex.export.nodes import NO_NODES, new
from hierindex.index import HierarchicalIndex
from hierindex.store.rows import NODE_COLUMNS, json_metadata, to_nodes

PLACE = {
    "document": pa.string(),
    "start": pa.int64(),
    "end": pa.int64(),
    "page": pa.int32(),
    "page_label": pa.string(),
    "section": pa.list_(pa.string()),
    "anchor": pa.string(),
}
CITATIONS = pa.list_(pa.struct(list(PLACE.items())))
COLUMNS = (
    "id title level level_max kind text documents parent_ids parent_weights child_ids citations"
    " metadata n_tokens vector".split()
)
READ = [*NODE_COLUMNS, "vector"]


def to_parquet(index: HierarchicalIndex, path: str | Path) -> int:
    """Write all nodes with their vectors to a new Parquet file.

    Columns are `id`, `title` (of the node), `level`, `level_max`, `kind`, `text`, `documents`,
    `parent_ids` and `parent_weights` (strongest first, summing to 1), `child_ids`, `citations`
    (structs of `document`, `start`, `end`, and nullable `page`, `page_label`, `section` (a list of
    titles) and `anchor`), `metadata` (a JSON object), `n_tokens` and `vector` (fixed-size list of
    float32). Rows are in the order of the table. They are read and written in batches.

    Parameters
    ----------
    index : HierarchicalIndex
    path : str or Path
        File to create; missing parent folders are created.

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
        tables = map(_table, index.table.snapshot().batches(*READ))
        if (first := next(tables, None)) is None:
            raise InputError(NO_NODES)
        n_nodes = 0
        with pq.ParquetWriter(partial, first.schema) as writer:
            for table in chain([first], tables):
                writer.write_table(table)
                n_nodes += table.num_rows
    return n_nodes


def _table(batch: pa.RecordBatch) -> pa.Table:
    nodes = to_nodes(batch.select(NODE_COLUMNS))
    citations = [[span.to_json() for span in node.citations] for node in nodes]
    metadata = [json.dumps(json_metadata(node), ensure_ascii=False) for node in nodes]
    columns = {
        **{name: batch[name] for name in READ},
        "citations": pa.array(citations, CITATIONS),
        "metadata": pa.array(metadata, pa.string()),
    }
    return pa.table({name: columns[name] for name in COLUMNS})
