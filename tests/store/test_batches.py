"""A table read a few rows at a time."""

import pytest
from llama_index.core.schema import TextNode
from records import revise

from hierindex import HierarchyStore
from hierindex.errors import GenerationError
from hierindex.store import snapshot as snapshots

N = 23


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "BATCH", 5)
    store = HierarchyStore(tmp_path / "index")
    store.add([TextNode(id_=f"{i:02}", text="x", embedding=[float(i), 1.0]) for i in range(N)])
    return store


def test_they_have_each_row_once_after_writes_that_leave_gaps(store) -> None:
    for i in range(6):
        new = TextNode(id_=f"new {i}", text="y", embedding=[1.0, float(i)])
        changed = TextNode(id_=f"{3 * i:02}", text="z", embedding=[0.0, 1.0])
        revise(store, [new, changed], [f"{3 * i + 1:02}"])
        rows = store.snapshot().columns("id", "text")
        expected = [*zip(*rows.values(), strict=True)]
        read = [
            (r["id"], r["text"])
            for b in store.snapshot().batches("id", "text")
            for r in b.to_pylist()
        ]
        assert read == expected
        assert len(read) == N


def test_a_deletion_leaves_nothing_to_read(store) -> None:
    batches = store.snapshot().batches("id")
    next(batches)
    store.delete_nodes([f"{i:02}" for i in range(N - 1)])
    with pytest.raises(GenerationError, match="removed"):
        next(batches)
    assert [batch["id"].to_pylist() for batch in store.snapshot().batches("id")] == [
        [f"{N - 1:02}"]
    ]
