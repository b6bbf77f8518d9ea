"""Trees do not depend on the parts in which documents are read and grown."""

import random
from dataclasses import replace

import pytest
from edited_index import KINDS, MODEL
from histories import insert, text
from llama_index.core.schema import Document, TextNode

from hierindex import HierarchicalIndex, HierarchyStore, RaptorHierarchy, SemanticHierarchy
from hierindex.errors import InputError
from hierindex.indexing import build
from hierindex.indexing.parts import parted

OPTIONS = [
    *({"kind": kind} for kind in KINDS),
    {"kind": RaptorHierarchy, "scope": "document"},
    {"kind": SemanticHierarchy, "max_levels": 1},
]


def documents(seed):
    draw = random.Random(seed)
    texts = {"first.md": "The bell rang at the gate."}
    texts |= {f"{i}.md": text(draw) for i in range(6)} | {"last.md": "The bell rang."}
    return texts | {"copy.md": texts["0.md"], "short.md": "A boat left the pier at night."}


def hierarchy(kind, **options):
    return kind(MODEL, max_children=3, summary_tokens=60, **options)


def held(index):
    return {node.node_id: node.to_dict() for node in index.store.get_nodes()}


def given(texts):
    """Documents without a source, whose order the index alone knows."""
    return [Document(text=text, id_=name) for name, text in texts.items()]


@pytest.mark.spread
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("most", [1, 20])
def test_after_a_build_an_edit_and_a_regrowth(tmp_path, monkeypatch, options, most):
    indices, texts = {}, documents(0)
    for size in (build.PART, most):
        monkeypatch.setattr(build, "PART", size)
        indices[size] = HierarchicalIndex.build(
            given(texts), tmp_path / str(size), hierarchy=hierarchy(**options), chunk_size=60
        )
    whole, in_parts = indices.values()
    assert held(whole) == held(in_parts)
    first, second = (
        [replace(level, silhouette=None, cohesion=None) for level in index.last_build.statistics]
        for index in indices.values()
    )
    assert first == second

    edited = dict(texts)
    for seed in range(3):
        insert(random.Random(seed), edited)
    del edited["1.md"]
    for size, index in indices.items():
        monkeypatch.setattr(build, "PART", size)
        index.update(given(edited))
        index.delete("1.md")
    assert held(whole) == held(in_parts)
    for size, index in indices.items():
        monkeypatch.setattr(build, "PART", size)
        index.regrow()
    assert held(whole) == held(in_parts)


def test_memory_holds_a_part_of_the_nodes(tmp_path, monkeypatch):
    """What was written to the file is not kept until the end."""
    kept, usual = [], SemanticHierarchy.grow
    monkeypatch.setattr(build, "PART", 1)

    def grow(*args, **kwargs):
        grown = usual(*args, **kwargs)
        kept.append(len(grown.nodes))
        return grown

    monkeypatch.setattr(SemanticHierarchy, "grow", grow)
    texts = documents(1)
    index = HierarchicalIndex.build(
        given(texts),
        tmp_path,
        hierarchy=hierarchy(SemanticHierarchy),
        chunk_size=60,
    )
    levels = index.info()["levels"]
    assert kept[0] < 2 * len(texts) < sum(level["nodes"] for level in levels) / 2


def test_progress_counts_all_documents(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "PART", 1)
    seen = []
    texts = documents(2)
    HierarchicalIndex.build(
        given(texts),
        tmp_path,
        hierarchy=hierarchy(SemanticHierarchy),
        progress=lambda stage, done, total, *cost: seen.append((stage, done, total)),
    )
    n = len(texts)
    assert [step for step in seen if step[0] == "split"] == [("split", i + 1, n) for i in range(n)]


@pytest.mark.parametrize("is_set_aside", [False, True])
def test_vectors_of_parts_have_one_dimension(tmp_path, is_set_aside):
    chunks = [
        TextNode(text="The bell rang.", id_=str(n), embedding=[1.0] + [0.0] * n) for n in (2, 3)
    ]
    with HierarchyStore(tmp_path).row_file() as rows:
        aside = rows.add if is_set_aside else None
        with pytest.raises(InputError, match=r"one dimension, got \[3, 4\]"):
            hierarchy(SemanticHierarchy).grow([chunks[:1], chunks[1:]], aside=aside)


def test_a_large_document_is_a_part():
    sizes = {"a": 2, "b": 3, "c": 9, "d": 1}
    assert [*parted(sizes, 5)] == [["a", "b"], ["c"], ["d"]]
    assert [*parted({}, 5)] == []
