"""Each check finds what it is for, and nothing else does; good indexes pass."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa
import pytest
from guarantees import inconsistent
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from records import replace_all
from store.trees import HIERARCHIES, tree
from verify.direct import written

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyStore,
    RaptorHierarchy,
    SemanticHierarchy,
    Verification,
)
from hierindex.cache import open_cache
from hierindex.store import search
from hierindex.store.rows import NAMES, schema

Row = dict[str, Any]
REPORT = {
    "usage": {"llm_calls": 0},
    "settings": {"embed_model": "hashing", "max_children": 4, "max_tokens": 3500},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """An index of four levels with a cache."""
    folder = tmp_path_factory.mktemp("whole") / "index"
    replace_all(HierarchyStore(folder), tree(), REPORT)
    with open_cache(str(folder)) as cache:
        cache.recall([])
    return folder


@pytest.fixture
def index(whole, tmp_path) -> Path:
    return copytree(whole, tmp_path / "index")


def verified(folder: Path, **options) -> Verification:
    return HierarchicalIndex.open(folder).verify(**options)


def failed(folder: Path) -> list[str]:
    return verified(folder).failed


def rows_of(folder: Path) -> dict[str, Row]:
    """All rows by id, the leaves of a.txt first, the root last."""
    batches = HierarchyStore(folder).snapshot().batches(*NAMES)
    rows = [row for batch in batches for row in batch.to_pylist()]
    return {row["id"]: row for row in sorted(rows, key=lambda row: row["level"])}


def overwrite(folder: Path, *rows: Row) -> None:
    """Write rows directly."""
    with written(folder) as table:
        changed = pa.Table.from_pylist(
            list(rows), schema(table.schema.field("vector").type.list_size)
        )
        table.merge_insert("id").when_matched_update_all().execute(changed, on_bad_vectors="null")


def delete(folder: Path, condition: str) -> None:
    """Delete rows directly."""
    with written(folder) as table:
        table.delete(condition)


def chunk(rows: dict[str, Row], i: int = 1) -> Row:
    """A chunk in the middle of a document."""
    return [row for row in rows.values() if row["previous_id"] and row["next_id"]][i]


def parent(rows: dict[str, Row]) -> Row:
    return rows[chunk(rows)["parent_ids"][0]]


def root(rows: dict[str, Row]) -> Row:
    return list(rows.values())[-1]


def with_record(row: Row, **changes) -> Row:
    return {**row, "record": json.dumps({**json.loads(row["record"]), **changes})}


def quotes_of(row: Row) -> list:
    return json.loads(row["record"])["quotes"]


def without_its_place(rows: dict[str, Row]) -> Row:
    at, to, (document, start, end, *rest), *others = quotes_of(root(rows))[0]
    far = [document, start + 10_000, end + 10_000, *rest]
    return with_record(root(rows), quotes=[[at, to, far, *others]])


BREAKS: dict[str, list[Callable[[dict[str, Row]], Row]]] = {
    "parents and children": [
        lambda rows: {**parent(rows), "child_ids": parent(rows)["child_ids"][1:]},
        lambda rows: {**parent(rows), "child_ids": [*parent(rows)["child_ids"], "nobody"]},
        lambda rows: {**chunk(rows), "parent_ids": [], "parent_weights": []},
        lambda rows: {**chunk(rows), "parent_ids": ["nobody"]},
    ],
    "previous and next": [
        lambda rows: {**chunk(rows), "next_id": ""},
        lambda rows: {**chunk(rows), "previous_id": "nobody"},
    ],
    "vectors": [
        lambda rows: {**root(rows), "vector": [2 * x for x in root(rows)["vector"]]},
        lambda rows: {**chunk(rows), "vector": [0.0] * len(chunk(rows)["vector"])},
        lambda rows: {**chunk(rows), "vector": [float("inf"), *chunk(rows)["vector"][1:]]},
        lambda rows: {**chunk(rows), "vector": None},
    ],
    "quotes": [
        lambda rows: {**root(rows), "text": root(rows)["text"].replace(" met ", " saw ")},
        lambda rows: {**chunk(rows, 0), "text": chunk(rows, 0)["text"].upper()},
        without_its_place,
        lambda rows: with_record(root(rows), quotes=[[0, 10_000, *quotes_of(root(rows))[0][2:]]]),
        lambda rows: with_record(root(rows), quotes=[[0, 1, *quotes_of(root(rows))[0][2:]]]),
    ],
}


@pytest.mark.parametrize(
    ("check", "change"),
    [
        pytest.param(check, change, id=f"{check} {i}")
        for check, changes in BREAKS.items()
        for i, change in enumerate(changes)
    ],
)
def test_a_broken_row_fails_one_check(index, check, change) -> None:
    overwrite(index, change(rows_of(index)))
    outcome = verified(index)
    assert outcome.failed == [check]
    (broken,) = [each for each in outcome.checks if not each.ok]
    assert 0 < len(broken.problems) <= broken.count
    assert all(problem.where in rows_of(index) for problem in broken.problems if problem.where)


@pytest.mark.parametrize(
    ("check", "column", "value"),
    [
        ("readable", "metadata", "{"),
        ("readable", "metadata", "[]"),
        ("readable", "record", "{}"),
        ("readable", "node", "null"),
        ("readable", "source", "source"),
    ],
)
def test_columns_that_are_not_those_of_a_node(index, check, column, value) -> None:
    overwrite(index, {**root(rows_of(index)), column: value})
    assert failed(index) == [check]


def test_an_unreadable_chunk_leaves_quotes_without_their_place(index) -> None:
    overwrite(index, {**chunk(rows_of(index), 0), "record": "{"})
    assert {"readable"} <= set(failed(index)) <= {"readable", "quotes"}


def test_an_index_that_lacks_rows(index, monkeypatch) -> None:
    monkeypatch.setattr(search, "UNINDEXED_ROWS", (0, 0))
    overwrite(index, chunk(rows_of(index)))
    assert failed(index) == ["indices"]
    assert verified(index, repair=True).ok


@pytest.mark.parametrize("kind", HIERARCHIES)
def test_a_good_index_passes(tmp_path, kind) -> None:
    replace_all(HierarchyStore(tmp_path), tree(kind), REPORT)
    outcome = verified(tmp_path, repair=True)
    assert (outcome.ok, outcome.repaired, outcome.left) == (True, (), ())
    checked = {check.name: check.checked for check in outcome.checks}
    assert {*BREAKS, "readable", "indices", "files"} <= {*checked}
    assert not [name for name, n in checked.items() if not n and name != "cache"]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (SemanticHierarchy, {"max_levels": 1}),
        (RaptorHierarchy, {"scope": "document"}),
        (DocumentHierarchy, {"group_documents": False}),
    ],
)
def test_trees_of_several_roots_pass(tmp_path, kind, options) -> None:
    store = HierarchyStore(tmp_path)
    replace_all(store, tree(kind, **options), REPORT)
    assert failed(tmp_path) == inconsistent(HierarchicalIndex(store)) == []
    store.delete("a.txt")
    assert failed(tmp_path) == []


def test_an_empty_index_passes(index) -> None:
    delete(index, "true")
    assert failed(index) == []


class TestPipelines:
    """What a pipeline writes may have several trees, and vectors of any length."""

    def test_vectors_of_a_model_of_the_pipeline_may_have_any_length(self, tmp_path) -> None:
        nodes = tree()
        for node in nodes:
            if node.metadata["hierindex_level"] == 0:
                node.embedding = [3 * x for x in node.embedding]
        HierarchyStore(tmp_path).add(nodes)
        assert failed(tmp_path) == []
        replace_all(HierarchyStore(tmp_path), nodes, REPORT)
        assert failed(tmp_path) == ["vectors"]

    def test_nodes_of_no_hierarchy(self, tmp_path) -> None:
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="a.txt")}
        HierarchyStore(tmp_path).add(
            [
                TextNode(text="one", embedding=[1.0, 2.0], relationships=source),
                TextNode(text="two", embedding=[1.0, 2.0], metadata={"pages": [1, 2]}),
            ]
        )
        assert failed(tmp_path) == []

    def test_what_a_deletion_leaves_is_stale_and_no_error(self, index) -> None:
        store, rows = HierarchyStore(index), rows_of(index)
        store.delete("a.txt")
        outcome = verified(index)
        assert outcome.failed == []
        assert outcome.stale > 0
        assert "hierindex update" in outcome.left[0]
        assert outcome.nodes < len(rows)

    def test_a_deleted_chunk_of_a_summary_that_stays(self, index) -> None:
        rows = rows_of(index)
        HierarchyStore(index).delete_nodes([chunk(rows)["id"]])
        outcome = verified(index)
        assert (outcome.failed, outcome.stale) == ([], 1)


def test_lost_rows_are_named_and_left(index) -> None:
    rows = rows_of(index)
    delete(index, f"id = '{chunk(rows)['id']}'")
    outcome = verified(index, repair=True)
    assert outcome.failed == ["parents and children", "previous and next", "quotes"]
    assert outcome.repaired == ()
    assert "hierindex build" in outcome.left[0]
