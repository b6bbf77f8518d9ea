"""What a tree promises, on real texts and with the bundled model; skipped where they are absent."""

from pathlib import Path

import pytest

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    Node,
    RaptorHierarchy,
    SemanticHierarchy,
    read_documents,
)

WINDOW = 256


def check_tree(index: HierarchicalIndex, folder: Path) -> None:
    info = index.info()
    nodes = {node.node_id: node for node in index.store.get_nodes()}
    cuts = [level["nodes"] for level in info["levels"]]
    assert cuts == sorted(cuts, reverse=True)
    assert cuts[-1] == len(info["roots"]) == 1
    assert len(cuts) >= 3
    texts = {document.id_: document.text for document in read_documents(folder)[0]}
    for node in nodes.values():
        record = Node.of(node)
        assert record.n_tokens <= WINDOW
        assert record.parents or node.node_id in info["roots"]
        assert all(parent in nodes for parent, _ in record.parents)
        for quote in record.quotes:
            document, start, end, *_ = quote.source
            assert texts[document][start:end] == node.text[quote.at : quote.to]


def test_two_documents(corpus, embed_model, tmp_path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for path in sorted(corpus("tech-books").iterdir())[:2]:
        (folder / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    hierarchy = SemanticHierarchy(embed_model=embed_model)
    index = HierarchicalIndex.build([folder], tmp_path / "index", hierarchy=hierarchy)
    check_tree(index, folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["warren-report", "tech-books", "meetings"])
@pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy])
def test_whole_corpus(corpus, embed_model, tmp_path, name, kind) -> None:
    hierarchy = kind(embed_model=embed_model)
    index = HierarchicalIndex.build([corpus(name)], tmp_path / "index", hierarchy=hierarchy)
    check_tree(index, corpus(name))
