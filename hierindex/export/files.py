"""Trees as JSON and Parquet, and what all exports need: the order of nodes, and new files."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from hierindex.errors import InputError
from hierindex.index import HierarchicalIndex
from hierindex.node import Maker, Node
from hierindex.store.rows import NODE_COLUMNS, describe, json_metadata, to_nodes
from hierindex.store.snapshot import Snapshot

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


def snapshot_of(index: HierarchicalIndex) -> Snapshot:
    """Return the newest generation.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, or it is empty.
    """
    snapshot = index.table.snapshot()
    if not snapshot.n_rows():
        raise InputError("The index is empty: there is nothing to export.")
    return snapshot


def ordered_nodes(snapshot: Snapshot) -> list[Node]:
    """Return all nodes without vectors, sorted by level, documents, position and id."""
    return sorted(to_nodes(snapshot.select(*NODE_COLUMNS)), key=_place)


def _place(node: Node) -> tuple[int, list[str], int, str]:
    return node.level, list(node.documents), node.start, node.id


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Raise InputError if a path cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error}.") from error


@contextmanager
def new(target: str | Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to the target on success and deleted on failure.

    Parameters
    ----------
    target : str or Path
        Missing parent folders are created.
    folder : bool
        Whether the target is a folder, which may exist if it is empty.

    Raises
    ------
    InputError
        If the target exists or cannot be written.
    """
    named = Path(target)
    target = named.absolute()
    partial = target.with_name(f".{target.name}-{uuid4().hex[:8]}")
    with writing(named):
        is_empty_folder = folder and named.is_dir() and not any(named.iterdir())
        if named.exists() and not is_empty_folder:
            raise InputError(f"{str(named)!r} exists already; choose another path or remove it.")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            if target.is_dir():
                target.rmdir()
            partial.rename(target)
        finally:
            if partial.is_dir():
                rmtree(partial)
            else:
                partial.unlink(missing_ok=True)


def to_tree(index: HierarchicalIndex) -> dict[str, Any]:
    """Return the tree as a dict of JSON values, without vectors and in a reproducible order.

    Parameters
    ----------
    index : HierarchicalIndex

    Returns
    -------
    dict
        `method`, `embed_model`, `summarizer`; the ids of `documents` and `roots`; and `nodes`, a
        flat list with the chunks first. Each node is as `HierarchicalIndex.describe` returns it;
        its `parents` have weights that sum to 1, and its `children` are ids.

    Raises
    ------
    IndexNotFoundError, InputError
        If there is no index, or it is empty.
    """
    found = ordered_nodes(snapshot_of(index))
    maker = found[0].maker or Maker()  # equal in all nodes
    nodes = [describe(node) for node in found]
    return {
        "method": maker.method,
        "embed_model": maker.embed_model,
        "summarizer": maker.summarizer,
        "documents": sorted({document for node in nodes for document in node["documents"]}),
        "roots": [node["id"] for node in nodes if not node["parents"]],
        "nodes": nodes,
    }


def to_json(index: HierarchicalIndex, path: str | Path) -> int:
    """Write the dict of `to_tree` to a new JSON file, in UTF-8.

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
        If the index is missing or empty, or the file exists or cannot be written.
    """
    with new(path) as partial:
        tree = to_tree(index)
        with partial.open("w", encoding="utf-8") as file:
            json.dump(tree, file, ensure_ascii=False, allow_nan=False, indent=1)
    return len(tree["nodes"])


def to_parquet(index: HierarchicalIndex, path: str | Path) -> int:
    """Write all nodes with their vectors to a new Parquet file.

    Columns are `id`, `title` (of the node), `level`, `level_max`, `kind`, `text`, `documents`,
    `parent_ids` and `parent_weights` (highest first, summing to 1), `child_ids`, `citations`
    (structs of `document`, `start`, `end` and the nullable `page`, `page_label`, `anchor` and
    `section`, a list of titles), `metadata` (a JSON object), `n_tokens` and `vector` (fixed-size
    list of float32). Rows are in the order in which the index stores them. They are read and
    written in batches.

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
        If the index is missing or empty, or the file exists or cannot be written.
    """
    with new(path) as partial:
        snapshot = snapshot_of(index)
        tables = map(_table, snapshot.batches(*READ))
        first = next(tables)
        with pq.ParquetWriter(partial, first.schema) as writer:
            for table in chain([first], tables):
                writer.write_table(table)
    return snapshot.n_rows()


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
