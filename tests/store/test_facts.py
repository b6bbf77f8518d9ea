"""Facts of a whole tree, which indices answer, are those that its rows tell."""

from collections import defaultdict

import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from hierindex import DocumentHierarchy, HierarchicalIndex, RaptorHierarchy, SemanticHierarchy
from hierindex.jobs.revision import Origin, held_documents
from hierindex.store import search
from hierindex.tree.earlier import EarlierTree

COLUMNS = ("id", "level", "level_max", "parent_ids", "documents", "whole_document", "n_tokens")


def check_facts(index: HierarchicalIndex) -> None:
    snapshot = index.store.snapshot()
    rows = snapshot.select(*COLUMNS, *Origin._fields, "stale").to_pylist()
    chunks = [row for row in rows if row["level"] == 0]
    highest = max(row["level_max"] for row in rows)
    assert snapshot.highest_level() == highest
    origins = defaultdict(set)
    for row in chunks:
        origins[row["documents"][0]].add((row["document_hash"], row["read_from"]))
    held = held_documents(snapshot)
    assert held.keys() == origins.keys()
    assert snapshot.n_documents() == len(origins)
    for document, known in origins.items():
        hashes = {each for each, _ in known}
        assert held[document].document_hash == (min(hashes) if len(hashes) == 1 else "")
    several = any(len(row["documents"]) > 1 for row in rows)
    whole = max((row["level"] for row in rows if row["whole_document"]), default=0)
    assert EarlierTree(snapshot, (), ()).document_levels() == (whole if several else highest)
    told = index.info()
    assert {*told["roots"]} == {row["id"] for row in rows if not row["parent_ids"]}
    assert told["stale"] == sum(bool(row["stale"]) for row in rows)
    for level in told["levels"]:
        cut = [r["n_tokens"] for r in rows if r["level"] <= level["level"] <= r["level_max"]]
        assert (level["nodes"], level["tokens"]) == (len(cut), sum(cut))


@pytest.mark.parametrize(
    ("kind", "is_large"),
    [
        (SemanticHierarchy, True),
        (DocumentHierarchy, False),
        pytest.param(RaptorHierarchy, True, marks=pytest.mark.slow),
    ],
)
def test_they_stay_so_through_a_history(tmp_path, monkeypatch, kind, is_large):
    if is_large:  # all scalar indices are made
        monkeypatch.setattr(search, "SCALAR_ROWS", 0)
    (folder := tmp_path / "notes").mkdir()

    def write(name, n, what="boat"):
        lines = [f"In {name} the keeper met {what} {i} at gate {i % 5}." for i in range(n)]
        (folder / name).write_text("\n\n".join(lines))

    for i in range(5):
        write(f"{i}.txt", 3 * i + 1)
    hierarchy = kind(HashingEmbedding())
    index = HierarchicalIndex.build(folder, tmp_path / "index", hierarchy=hierarchy, chunk_size=40)
    made = index.store.snapshot().require().list_indices()
    assert ("previous_id" in {column for each in made for column in each.columns}) == is_large
    check_facts(index)
    write("3.txt", 12, "ferry")
    (folder / "1.txt").rename(folder / "renamed.txt")
    write("new.txt", 1)
    index.update()
    check_facts(index)
    index.delete("4.txt")
    check_facts(index)
    chunks = [n for n in index.store.get_nodes() if n.metadata["hierindex_level"] == 0]
    of_three = sorted(
        (n for n in chunks if n.ref_doc_id == "3.txt"), key=lambda n: n.start_char_idx
    )
    assert len(of_three) > 3
    for lost in (of_three[-1], of_three[1], of_three[0]):  # the last, a middle and the first one
        index.store.delete_nodes([lost.node_id])
        check_facts(index)
    index.update()
    check_facts(index)
    assert index.verify().ok
    beside = next(n for n in index.store.get_nodes() if n.ref_doc_id == "3.txt")
    added = TextNode(text="Added by others.", embedding=beside.embedding)
    added.relationships = {
        NodeRelationship.SOURCE: RelatedNodeInfo(node_id="3.txt"),
        NodeRelationship.PREVIOUS: RelatedNodeInfo(node_id=beside.node_id),
        NodeRelationship.NEXT: RelatedNodeInfo(node_id=beside.node_id),
    }
    index.store.add([added])
    check_facts(index)
    index.delete("2.txt")  # writes all rows again
    check_facts(index)
    index.update()
    check_facts(index)
    index.store.rollback()
    check_facts(index)
