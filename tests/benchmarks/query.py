"""Milliseconds of a question at 100,000 and 1,000,000 nodes, beside bare LanceDB searches.

The nodes are those of a tree over FOLDER, again and again: ids and texts of their own, vectors
with noise, a tree for each copy, level by level as a build writes them. The question's embedding
is not in the times. All modes take turns with the bare search, which reads the same columns of
the same table.

Usage: python tests/benchmarks/query.py FOLDER [NODES...]
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lancedb.rerankers import RRFReranker
from lancedb.table import Table
from llama_index.core.schema import QueryBundle

from hierindex import HierarchicalIndex, HierarchyRetriever, HierarchyStore
from hierindex.core.identity import hash_text
from hierindex.store.rows import NODE_COLUMNS

NODES = (100_000, 1_000_000)
NOISE = 0.02  # of each coordinate; those of a unit vector are about 0.05
TOP_K = 10
QUESTIONS = 100
MODES: dict[str, dict[str, Any]] = {
    "auto": {},
    "collapsed": {"mode": "collapsed"},
    "level 0": {"level": 0},
    "document": {"mode": "document"},
}
Ask = Callable[[QueryBundle], Any]


def copies(rows: pa.Table, n_nodes: int) -> Iterator[pa.RecordBatch]:
    """The rows again and again, level by level as a build writes them.

    Each time with ids, texts and vectors of their own; as many times as make the nodes.
    """
    rng = np.random.default_rng(0)
    for level in sorted(pc.unique(rows["level"]).to_pylist()):
        here = rows.filter(pc.equal(rows["level"], level))
        for copy in range(round(n_nodes / rows.num_rows)):
            yield from _copied(here, copy, rng).combine_chunks().to_batches()


def _copied(rows: pa.Table, copy: int, rng: np.random.Generator) -> pa.Table:
    vector = rows.schema.field("vector")
    X = np.stack(rows["vector"].to_numpy(zero_copy_only=False))  # (n_rows, n_dims)
    noisy = (X + NOISE * rng.standard_normal(X.shape)).astype(np.float32)
    noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
    columns = {"vector": pa.FixedSizeListArray.from_arrays(noisy.ravel(), vector.type.list_size)}
    for name in ("id", "parent_ids", "child_ids", "previous_id", "next_id"):
        columns[name] = _renamed(rows[name], copy)
    own = [f"{text} {copy}" for text in rows["text"].to_pylist()]
    columns["text"] = columns["words"] = pa.array(own)
    columns["text_hash"] = pa.array(map(hash_text, own))
    for name, column in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
    return rows


def _renamed(column: pa.ChunkedArray, copy: int) -> pa.Array:
    """Ids begin with the number of the copy."""
    array = column.combine_chunks()
    pattern, new = r"\b[0-9a-f]{4}([0-9a-f]{28})\b", rf"{copy:04x}\1"
    if pa.types.is_list(array.type):
        values = pc.replace_substring_regex(array.values, pattern, new)
        return pa.ListArray.from_arrays(array.offsets, values)
    return pc.replace_substring_regex(array, pattern, new)


def written(store: HierarchyStore, rows: pa.Table, n_nodes: int) -> Table:
    """A table of so many nodes, with the indices that a store makes."""
    batches = pa.RecordBatchReader.from_batches(rows.schema, copies(rows, n_nodes))
    store.table.replace(batches, {})
    table = store.table.connection.open()
    assert table is not None
    return table


def bare(table: Table) -> Ask:
    def ask(question: QueryBundle) -> None:
        search = table.search(question.embedding).distance_type("cosine")
        search.select([*NODE_COLUMNS, "_distance"]).limit(TOP_K).to_arrow()

    return ask


def hybrid(table: Table) -> Ask:
    def ask(question: QueryBundle) -> None:
        both = table.search(query_type="hybrid", fts_columns="words").distance_type("cosine")
        both = both.vector(question.embedding).text(question.query_str).rerank(RRFReranker())
        both.select([*NODE_COLUMNS]).limit(TOP_K).to_arrow()

    return ask


def measured(ways: dict[str, Ask], questions: list[QueryBundle]) -> dict[str, np.ndarray]:
    """Milliseconds of each way for each question, in turn."""
    took = {name: list[float]() for name in ways}
    for ask in ways.values():
        ask(questions[0])  # opens and reads what later questions find there
    for question in questions:
        for name, ask in ways.items():
            start = time.perf_counter()
            ask(question)
            took[name].append(1000 * (time.perf_counter() - start))
    return {name: np.array(each) for name, each in took.items()}


def compare(rows: pa.Table, questions: list[QueryBundle], folder: str, n: int) -> None:
    store = HierarchyStore(Path(folder) / "whole")
    table = written(store, rows, n)
    model = HierarchicalIndex.open(store.uri).embed_model
    ways = {"bare search": bare(table), "bare hybrid": hybrid(table)}
    for name, options in MODES.items():
        ways[name] = HierarchyRetriever(store, model, top_k=TOP_K, **options).retrieve
    took = measured(ways, questions)
    n_rows = table.count_rows()
    print(f"\n{n_rows:,} nodes, {len(questions)} questions")
    print(f"{'ms':<24}{'median':>9}{'by bare':>9}")
    for name, each in took.items():
        peer = "bare hybrid" if "auto" in name or "hybrid" in name else "bare search"
        ratio = np.median(each) / np.median(took[peer])
        print(f"{name:<24}{np.median(each):9.1f}{ratio:9.2f}")


def main(folder: str, sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as at:
        index = HierarchicalIndex.build(folder, Path(at) / "index")
        rows = index.store.client.open_table("nodes").to_arrow()
        texts = rows.filter(pc.equal(rows["level"], 0))["text"].to_pylist()[
            :: max(1, len(rows) // 120)
        ]
        questions = [
            QueryBundle(words, embedding=index.embed_model.get_query_embedding(words))
            for words in (" ".join(text.split()[:9]) for text in texts[:QUESTIONS])
        ]
        for n in sizes:
            with tempfile.TemporaryDirectory(dir=at) as here:
                compare(rows, questions, here, n)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/query.py FOLDER [NODES...]")
    main(sys.argv[1], [int(n) for n in sys.argv[2:]] or list(NODES))
