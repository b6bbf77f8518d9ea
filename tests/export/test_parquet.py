"""Parquet, read by pyarrow."""

import json
import math
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from node_strategies import COLLECTIONS
from records import as_text_nodes

from hierindex import HierarchicalIndex, HierarchyStore, Node
from hierindex.export import to_parquet, to_tree
from hierindex.store import snapshot as snapshots


@pytest.fixture
def path(soft, tmp_path):
    assert to_parquet(soft, tmp_path / "nodes.parquet") == len(soft.store.get_nodes())
    return tmp_path / "nodes.parquet"


def test_pyarrow_reads_what_the_tree_holds(soft, path) -> None:
    table = pq.read_table(path)
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 64)
    rows = {row["id"]: row for row in table.to_pylist()}
    for node in to_tree(soft)["nodes"]:
        row = rows.pop(node["id"])
        for name in "level level_max kind text documents n_tokens".split():
            assert row[name] == node[name]
        assert row["child_ids"] == node["children"]
        parents = zip(row["parent_ids"], row["parent_weights"], strict=True)
        assert [{"id": parent, "weight": weight} for parent, weight in parents] == node["parents"]
        assert json.loads(row["metadata"]) == node["metadata"]
        unknown = dict.fromkeys(("page", "page_label", "section", "anchor"))
        assert [{**unknown, **c} for c in node["citations"]] == row["citations"]
    assert not rows


def test_it_is_written_in_batches(soft, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(snapshots, "BATCH", 5)
    n_nodes = to_parquet(soft, tmp_path / "nodes.parquet")
    file = pq.ParquetFile(tmp_path / "nodes.parquet")
    assert file.num_row_groups == math.ceil(n_nodes / 5)
    assert file.metadata.num_rows == n_nodes


@given(COLLECTIONS)
def test_round_trip_is_exact(made) -> None:
    given = as_text_nodes(made)
    with TemporaryDirectory() as folder:
        store = HierarchyStore(f"{folder}/index")
        store.add(given)
        to_parquet(HierarchicalIndex(store), f"{folder}/nodes.parquet")
        table = pq.read_table(f"{folder}/nodes.parquet")
    nodes = {node.id: node for node in map(Node.of, given)}
    for row in table.to_pylist():
        node = nodes.pop(row["id"])
        assert np.array_equal(np.float32(row["vector"]), np.float32(node.vector))
        assert (row["text"], row["documents"]) == (node.text, [*node.documents])
        assert json.loads(row["metadata"]) == node.metadata
        assert row["parent_weights"] == [weight for _, weight in node.parents]
        assert row["child_ids"] == [*node.children]
        assert [citation["page"] for citation in row["citations"]] == [
            span.page for span in node.citations
        ]
    assert not nodes
