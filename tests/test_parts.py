"""Trees do not depend on the parts in which documents are read and grown."""

import gc
import random
from datetime import date
from itertools import islice

import numpy as np
import pytest
from edited_index import KINDS, MODEL
from histories import insert, text
from indexes import documents_of
from llama_index.core.schema import TextNode
from records import as_chunks, as_plain
from scale.models import SmallPools

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyStore,
    Node,
    RaptorHierarchy,
    SemanticHierarchy,
    sentence_splitter,
)
from hierindex.cache import Cache
from hierindex.errors import InputError
from hierindex.jobs.job import Job
from hierindex.progress import silent
from hierindex.store.rows import row_of
from hierindex.store.temporary_files import RowFile
from hierindex.tree.growth import Sink, grow_above, grow_documents

OPTIONS = [
    *({"kind": kind} for kind in KINDS),
    {"kind": RaptorHierarchy, "scope": "document"},
    {"kind": SemanticHierarchy, "max_levels": 1},
]


def documents(seed):
    draw = random.Random(seed)
    texts = {"first.md": "The bell rang at the gate."}
    texts |= {f"{i}.md": text(draw) for i in range(4)} | {"last.md": "The bell rang."}
    return texts | {"copy.md": texts["0.md"], "short.md": "A boat left the pier at night."}


def hierarchy(kind, **options):
    return kind(MODEL, max_children=3, summary_tokens=60, **options)


def grow(hierarchy, parts, aside):
    recipe = hierarchy.recipe(Cache(), silent)
    grown = (grow_documents(recipe, chunks, finish=True) for chunks in parts)
    return grow_above(recipe, grown, aside=aside)


def held(index):
    return as_plain(index.store.get_nodes())


def as_rows(rows):
    """Rows in order, with vectors as the table has them."""
    return [row | {"vector": np.float32(row["vector"]).tolist()} for row in rows]


def by_id(rows):
    return sorted(as_rows(rows), key=lambda row: row["id"])


@pytest.mark.parametrize(
    ("most", "options"),
    [
        (1, {"kind": SemanticHierarchy}),
        (20, {"kind": DocumentHierarchy}),
        (1, {"kind": SmallPools}),
        pytest.param(20, {"kind": SmallPools, "max_levels": 1}, marks=pytest.mark.slow),
        pytest.param(20, {"kind": RaptorHierarchy, "scope": "document"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_after_a_build_an_edit_and_a_regrowth(tmp_path, monkeypatch, most, options):
    texts = documents(0)
    edited = dict(texts)
    for seed in range(3):
        insert(random.Random(seed), edited)
    del edited["1.md"]
    seen = []
    for size in (Job.part, most):
        monkeypatch.setattr(Job, "part", size)
        index = HierarchicalIndex.build(
            documents_of(texts), tmp_path / str(size), hierarchy=hierarchy(**options), chunk_size=60
        )
        states = [held(index), index.last_build.statistics]
        index.update(documents_of(edited), hierarchy=hierarchy(**options))
        index.delete("1.md", hierarchy=hierarchy(**options))
        states.append(held(index))
        index.regrow(hierarchy(**options))
        seen.append([*states, held(index)])
    whole, in_parts = seen
    assert whole == in_parts


def test_memory_holds_a_part_of_the_nodes(tmp_path, monkeypatch):
    """What was written to the file is not kept until the end."""
    written, usual = [], RowFile.add
    monkeypatch.setattr(Job, "part", 1)

    def add(file, rows):
        rows = [*rows]
        written.append(len(rows))
        usual(file, rows)

    monkeypatch.setattr(RowFile, "add", add)
    texts = documents(1)
    index = HierarchicalIndex.build(
        documents_of(texts), tmp_path, hierarchy=hierarchy(SemanticHierarchy), chunk_size=60
    )
    n_nodes = sum(level["nodes"] for level in index.info()["levels"])
    assert sum(written) == len(held(index))
    assert written[-1] < n_nodes / 2


@pytest.mark.spread
@pytest.mark.parametrize("most", [3, 20])
@pytest.mark.parametrize("sections", ["Part › {}", ""])
def test_pools_wait_in_a_file_and_give_the_tree_that_is_grown_at_once(tmp_path, most, sections):
    grouping = hierarchy(SmallPools)
    talk = {"talk.txt": "The solar cell of the town clock is old. " * 20}
    chunks = as_chunks(sentence_splitter(MODEL, 60)(documents_of(documents(3) | talk)))
    for number, chunk in enumerate(chunks):
        chunk.metadata |= {"section": sections.format(number // 2), "when": ["today", None]}
    at_once, finished = grouping.grow([chunks]), []
    with RowFile(HierarchyStore(tmp_path).table.connection) as waiting:
        aside = Sink(finished.extend, waiting, most)
        grown = grow(grouping, [chunks[:10], chunks[10:21], chunks[21:]], aside)
        assert len(waiting) == len(chunks)
    assert grown.nodes == []
    finished, at_once_rows = [*map(row_of, finished)], map(row_of, at_once.nodes)
    assert as_rows(finished) == as_rows(at_once_rows)
    assert any("solar cell" in node.title for node in at_once.nodes)
    assert any(row["level"] == 0 < row["level_max"] and row["parent_ids"] for row in finished)
    assert grown.usage == at_once.usage
    assert grown.statistics == at_once.statistics


def test_leaves_are_not_in_memory_when_they_are_written(tmp_path):
    chunks = sentence_splitter(MODEL, 60)(documents_of(documents(4)))
    texts, alive = {chunk.text for chunk in chunks}, []

    def is_leaf(each):
        return type(each) is Node and each.level == 0 and each.text in texts

    def finished(rows):
        alive.extend(sum(map(is_leaf, gc.get_objects())) for _ in islice(rows, 0, None, 20))

    gc.collect()  # nodes of other tests
    with RowFile(HierarchyStore(tmp_path).table.connection) as waiting:
        parts = map(as_chunks, [chunks])
        grow(hierarchy(SmallPools), parts, Sink(finished, waiting, 5))
    assert len(alive) > len(chunks) / 20
    assert max(alive) < len(chunks) / 3


def test_what_cannot_wait_is_named(tmp_path):
    grouping = hierarchy(SmallPools)
    chunks = [TextNode(text=f"The bell rang {n} times.", id_=str(n)) for n in range(9)]
    chunks[3].metadata["when"] = date(2026, 1, 2)
    error = pytest.raises(InputError, match=r"Metadata of node .* must be JSON")
    connection = HierarchyStore(tmp_path).table.connection
    with RowFile(connection) as waiting, RowFile(connection) as rows, error:
        grow(grouping, [as_chunks(chunks)], Sink(rows.add, waiting, 5))
